"""The sparse points as a picture, shown until the first frame of the splats arrives."""

import numpy as np
from jaxtyping import Float, UInt8

from engine.cameras import Camera

MOST_POINTS = 60_000  # more would not be told apart, and this keeps it under 10 ms


def points_picture(
    camera: Camera,
    points: Float[np.ndarray, "n 3"],
    colors: UInt8[np.ndarray, "n 3"],
    background: tuple[int, int, int],
    dot_px: int = 2,
) -> UInt8[np.ndarray, "height width 4"]:
    """Each point as a square of `dot_px` pixels, near ones over far ones; RGBA8."""
    pixels = np.empty((camera.height, camera.width, 4), dtype=np.uint8)
    pixels[:] = (*background, 255)
    stride = max(1, -(-len(points) // MOST_POINTS))
    places, depths = camera.project(np.asarray(points[::stride], dtype=np.float64))
    ahead = depths > 1e-9
    inside = ahead & (np.abs(places - (camera.cx, camera.cy)) < 1e6).all(axis=1)
    order = np.argsort(-depths[inside], kind="stable")  # far ones first, near ones paint over
    corner = np.floor(places[inside][order] - (dot_px - 1) / 2).astype(np.int64)
    chosen = colors[::stride][inside][order]
    for down in range(dot_px):
        for right in range(dot_px):
            x, y = corner[:, 0] + right, corner[:, 1] + down
            seen = (x >= 0) & (x < camera.width) & (y >= 0) & (y < camera.height)
            pixels[y[seen], x[seen], :3] = chosen[seen]
    return pixels
