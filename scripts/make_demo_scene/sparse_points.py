"""Sparse points as structure from motion would leave them, from the ray tracer's own surfaces.

Points lie on what the photos show, more of them where the picture has detail; each is slightly
off, and is listed in the photos that see it, with the pixel (slightly off, too) where they do.
"""

import dataclasses

import numpy as np

POSITION_NOISE = 0.0015  # scene units; about 0.2 pixels
PIXEL_NOISE = 0.3
LONGEST_TRACK = 3  # a long track says no more and costs space
BORDER_PX = 2.0


@dataclasses.dataclass(frozen=True)
class Point:
    """A sparse point: position, colour 0..255, its photos (numbers) and its pixels in them."""

    position: np.ndarray
    color: np.ndarray
    photos: list[int]
    pixels: list[tuple[float, float]]


def _interest(picture: np.ndarray) -> np.ndarray:
    """How likely a point is to be found at each pixel: local contrast over a floor."""
    gray = picture.astype(np.float64).mean(axis=2)
    rows, columns = np.gradient(gray)
    contrast = np.hypot(rows, columns)
    return np.asarray(np.minimum(contrast, 60.0) + 6.0)


def sparse_points(
    pictures: list[np.ndarray],
    depths: list[np.ndarray],
    poses: list[np.ndarray],
    focal: float,
    count: int,
    seed: int,
) -> list[Point]:
    """About `count` points, an equal share from each photo, seen by at least two photos."""
    random = np.random.default_rng(seed)
    height, width = depths[0].shape
    share = -(-count // len(pictures))
    points = []
    for number, (picture, depth, pose) in enumerate(zip(pictures, depths, poses, strict=True)):
        likely = _interest(picture).reshape(-1)
        chosen = random.choice(width * height, 2 * share, replace=False, p=likely / likely.sum())
        found = 0
        for pixel in chosen:
            row, column = divmod(int(pixel), width)
            flat = np.array([column + 0.5 - width / 2, row + 0.5 - height / 2, focal]) / focal
            ray = pose[:3, :3] @ (flat / np.linalg.norm(flat))
            true = pose[:3, 3] + float(depth[row, column]) * ray
            seen = _seen_by(true, depths, poses, focal)
            others = [view for view in seen if view[0] != number]
            if not others:
                continue
            random.shuffle(others)
            own = [view for view in seen if view[0] == number]
            views = sorted((own + others)[:LONGEST_TRACK])
            noise = random.normal(0.0, PIXEL_NOISE, (len(views), 2))
            points.append(
                Point(
                    true + random.normal(0.0, POSITION_NOISE, 3),
                    picture[row, column],
                    [view for view, _, _ in views],
                    [
                        (x + dx, y + dy)
                        for (_, x, y), (dx, dy) in zip(views, noise.tolist(), strict=True)
                    ],
                )
            )
            found += 1
            if found == share:
                break
    return points


def _seen_by(
    position: np.ndarray, depths: list[np.ndarray], poses: list[np.ndarray], focal: float
) -> list[tuple[int, float, float]]:
    """Photos that see a place, with its pixel: inside the picture and not behind something."""
    height, width = depths[0].shape
    all_poses = np.stack(poses)
    offset = position - all_poses[:, :3, 3]
    local = np.einsum("nji,nj->ni", all_poses[:, :3, :3], offset)
    distance = np.linalg.norm(offset, axis=1)
    safe = np.maximum(local[:, 2], 1e-6)
    x = focal * local[:, 0] / safe + width / 2
    y = focal * local[:, 1] / safe + height / 2
    views = []
    for number in np.flatnonzero(local[:, 2] > 0).tolist():
        if not BORDER_PX <= x[number] <= width - BORDER_PX:
            continue
        if not BORDER_PX <= y[number] <= height - BORDER_PX:
            continue
        surface = float(depths[number][int(y[number]), int(x[number])])
        if abs(surface - distance[number]) < 0.004 * distance[number]:
            views.append((number, float(x[number]), float(y[number])))
    return views
