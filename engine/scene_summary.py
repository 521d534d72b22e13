"""What everybody else is told about a scene once its cameras are known."""

import numpy as np

from engine.dataset.geometry import camera_extent, scene_pivot, scene_up
from engine.dataset.scene import Scene
from engine.messages import PhotoSummary, SceneOpened


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
        findings=scene.findings,
        up=scene_up(scene),
        pivot=scene_pivot(scene),
        extent=camera_extent(scene),
    )
