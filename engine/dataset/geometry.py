"""Sizes and directions of a whole scene: extent, up, pivot, frame."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from engine.cameras import Camera
from engine.dataset.scene import Scene, SceneFrame

_TRIPOD = 0.01  # cameras closer together than this share of the points' spread say nothing
_SMALLEST, _LARGEST = 0.1, 100.0  # extents outside are scaled to 1


def camera_centers(cameras: Sequence[Camera]) -> Float[np.ndarray, "n 3"]:
    """Where the cameras stand."""
    return np.array([camera.center for camera in cameras], dtype=np.float64).reshape(-1, 3)


def spread_of(points: Float[np.ndarray, "n 3"]) -> float:
    """The median distance of points from their median, 0 for none."""
    if len(points) == 0:
        return 0.0
    distances = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    return float(np.median(distances))


def extent_of(
    centers: Float[np.ndarray, "n 3"], points: Float[np.ndarray, "m 3"]
) -> tuple[float, bool]:
    """The camera extent, and whether it had to be taken from the points.

    1.1 times the largest distance of a camera from their mean (FACTS 1.1). Where all cameras stand
    at one place, the spread of the points; where there are none either, 1.
    """
    from_cameras = 1.1 * float(np.linalg.norm(centers - centers.mean(axis=0), axis=1).max())
    spread = spread_of(points)
    if from_cameras > _TRIPOD * spread and from_cameras > 1e-9:
        return from_cameras, False
    return (spread if spread > 0 else 1.0), True


def camera_extent(scene: Scene) -> float:
    """The extent of the training cameras in the engine's frame, the unit of several settings."""
    centers = camera_centers([photo.camera for photo in scene.training])
    return extent_of(centers, scene.points)[0]


def frame_of(centers: Float[np.ndarray, "n 3"], points: Float[np.ndarray, "m 3"]) -> SceneFrame:
    """The engine's frame: centred on the training cameras, scaled where float32 would suffer."""
    middle = centers.mean(axis=0)
    extent, _ = extent_of(centers, points)
    scale = 1.0 if _SMALLEST <= extent <= _LARGEST else 1.0 / extent
    return SceneFrame((float(middle[0]), float(middle[1]), float(middle[2])), scale)


def pose_in_frame(
    world_to_camera: Float[np.ndarray, "4 4"], frame: SceneFrame
) -> Float[np.ndarray, "4 4"]:
    """A pose of the files in the engine's frame; camera coordinates are scaled along."""
    pose = np.array(world_to_camera, dtype=np.float64)
    pose[:3, 3] = (pose[:3, :3] @ np.array(frame.offset) + pose[:3, 3]) * frame.scale
    return pose


def scene_up(scene: Scene) -> tuple[float, float, float]:
    """The mean upward direction of the photos, a unit vector."""
    mean = np.mean([photo.camera.up for photo in scene.photos], axis=0)
    length = float(np.linalg.norm(mean))
    if length < 1e-3:  # photos look every way up, none is better than another
        mean, length = scene.photos[0].camera.up, 1.0
    x, y, z = (float(value) for value in mean / length)
    return x, y, z


def scene_pivot(scene: Scene) -> tuple[float, float, float]:
    """Where to turn around at first: the sparse points' median, else where the cameras look."""
    if len(scene.points):
        point = np.median(scene.points, axis=0)
    else:
        cameras = [photo.camera for photo in scene.photos]
        point = _point_looked_at(cameras, camera_extent(scene))
    x, y, z = (float(value) for value in point)
    return x, y, z


def _point_looked_at(cameras: Sequence[Camera], extent: float) -> Float[np.ndarray, "3"]:
    """The point nearest to all viewing axes; ahead of the cameras where the axes are parallel."""
    centers = camera_centers(cameras)
    forward = np.array([camera.forward for camera in cameras])
    across = np.eye(3) - forward[:, :, None] * forward[:, None, :]  # (n, 3, 3)
    matrix = across.sum(axis=0)
    if np.linalg.cond(matrix) < 1e4:
        target = np.einsum("nij,nj->i", across, centers)
        return np.asarray(np.linalg.solve(matrix, target))
    return np.asarray((centers + extent * forward).mean(axis=0))
