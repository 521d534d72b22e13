"""What everybody else is told about a scene once its cameras are known."""

import numpy as np

from engine.dataset.initial_points import camera_extent
from engine.dataset.scene import Scene
from engine.messages import FindingSummary, PhotoSummary, SceneOpened

Vector = tuple[float, float, float]


def scene_opened(run_id: int, scene: Scene) -> SceneOpened:
    """The event for a scene; its arrays are copies that nobody writes."""
    points = np.array(scene.points, dtype=np.float32).reshape(-1, 3)
    colors = np.array(scene.point_colors, dtype=np.uint8).reshape(-1, 3)
    points.flags.writeable = colors.flags.writeable = False
    return SceneOpened(
        run_id=run_id,
        name=scene.name,
        path=scene.path,
        photos=tuple(
            PhotoSummary(photo.name, photo.path, photo.camera, photo.held_out, photo)
            for photo in scene.photos
        ),
        points=points,
        point_colors=colors,
        findings=tuple(
            FindingSummary(item.code, item.severity, item.file, item.message)
            for item in scene.findings
        ),
        up=_up(scene),
        pivot=_pivot(scene),
        extent=camera_extent(scene),
    )


def _up(scene: Scene) -> Vector:
    """The mean of the cameras' upward directions; the first camera's where they cancel."""
    ups = np.array([photo.camera.up for photo in scene.photos])
    mean = ups.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return _vector(mean / length if length > 1e-3 else ups[0])


def _pivot(scene: Scene) -> Vector:
    """The median of the sparse points; without any, the point nearest to all lines of sight."""
    if len(scene.points):
        return _vector(np.median(scene.points, axis=0))
    normal, target = np.zeros((3, 3)), np.zeros(3)
    for photo in scene.photos:
        forward = photo.camera.forward
        across = np.eye(3) - np.outer(forward, forward)
        normal += across
        target += across @ photo.camera.center
    if np.linalg.cond(normal) < 1e6:
        return _vector(np.linalg.solve(normal, target))
    first = scene.photos[0].camera  # parallel lines of sight meet nowhere
    return _vector(first.center + first.forward)


def _vector(values: np.ndarray) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z
