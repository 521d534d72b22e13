"""The points that splats start from: the sparse points, or random ones where there are none."""

import numpy as np
import torch
from jaxtyping import Float, UInt8

from engine.dataset.geometry import camera_extent
from engine.dataset.scene import Scene
from engine.settings import Settings

_NEAREST, _FARTHEST = 0.25, 4.0  # depth of random points, in camera extents
_GREY = 128


def initial_points(
    scene: Scene, settings: Settings, generator: torch.Generator
) -> tuple[Float[np.ndarray, "n 3"], UInt8[np.ndarray, "n 3"]]:
    """Positions in the engine's frame and colours, at most `max_splats` of them, all finite.

    A scene without sparse points gets `random_points` grey ones: in its own cube round the file's
    origin where it has one (Blender), else spread through what the training cameras see. The same
    generator state gives the same points.
    """
    cap = settings.densify.max_splats
    # numpy's generator: its draws do not depend on the torch build
    seed = int(torch.randint(2**62, (1,), generator=generator))
    random = np.random.default_rng(seed)
    finite = np.asarray(np.isfinite(scene.points).all(axis=1))
    points, colors = scene.points[finite], scene.point_colors[finite]
    if len(points) == 0:
        count = min(settings.scene.random_points, cap)
        made = _in_cube(scene, count, random)
        if made is None:
            made = _before_cameras(scene, count, random)
        return made, np.full((count, 3), _GREY, dtype=np.uint8)
    if len(points) > cap:
        kept = np.sort(random.choice(len(points), cap, replace=False))
        points, colors = points[kept], colors[kept]
    return points, colors


def _in_cube(
    scene: Scene, count: int, random: np.random.Generator
) -> Float[np.ndarray, "n 3"] | None:
    half = scene.random_half_size
    if half is None:
        return None
    return scene.frame.to_engine(random.uniform(-half, half, (count, 3)))


def _before_cameras(
    scene: Scene, count: int, random: np.random.Generator
) -> Float[np.ndarray, "n 3"]:
    """Points on random rays of random training photos, so that every one is seen by some."""
    cameras = [photo.camera for photo in scene.training]
    extent = camera_extent(scene)
    chosen = random.integers(len(cameras), size=count)
    place = random.uniform(size=(count, 2))
    depth = extent * np.exp(random.uniform(np.log(_NEAREST), np.log(_FARTHEST), count))
    points = np.empty((count, 3))
    for index, camera in enumerate(cameras):
        mine = chosen == index
        x = (place[mine, 0] * camera.width - camera.cx) / camera.fx
        y = (place[mine, 1] * camera.height - camera.cy) / camera.fy
        rays = np.stack([x, y, np.ones_like(x)], axis=1) * depth[mine, None]
        points[mine] = rays @ camera.camera_to_world[:3, :3].T + camera.center
    return points
