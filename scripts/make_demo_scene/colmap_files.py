"""Writes a COLMAP model: cameras.bin, images.bin and points3D.bin, little-endian, one pinhole."""

import struct
from pathlib import Path

import numpy as np

from scripts.make_demo_scene.sparse_points import Point

PINHOLE = 1  # COLMAP's number of the model with fx, fy, cx, cy


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """The unit quaternion (w, x, y, z), w >= 0, of a rotation matrix (3, 3)."""
    r = rotation
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], 0, 0, 0],
            [r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], 0, 0],
            [r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1], 0],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r.trace()],
        ]
    )  # Bar-Itzhack 2000: the eigenvector of the largest eigenvalue is (x, y, z, w)
    _, vectors = np.linalg.eigh(k)
    x, y, z, w = vectors[:, -1]
    result = np.array([w, x, y, z])
    return np.asarray(result if w >= 0 else -result)


def write_model(
    folder: Path,
    names: list[str],
    poses: list[np.ndarray],
    points: list[Point],
    *,
    width: int,
    height: int,
    focal: float,
) -> None:
    """Write the three files; `poses` are camera-to-world, OpenCV axes, in the order of `names`."""
    folder.mkdir(parents=True, exist_ok=True)
    camera = struct.pack("<QiiQQ", 1, 1, PINHOLE, width, height)
    camera += struct.pack("<4d", focal, focal, width / 2, height / 2)
    (folder / "cameras.bin").write_bytes(camera)

    seen: list[list[tuple[float, float, int]]] = [[] for _ in names]
    body = [struct.pack("<Q", len(points))]
    for number, point in enumerate(points, 1):
        track = []
        for photo, (x, y) in zip(point.photos, point.pixels, strict=True):
            track += [photo + 1, len(seen[photo])]
            seen[photo].append((x, y, number))
        error = 0.4  # pixels, as the noise of `sparse_points` gives
        body.append(struct.pack("<Q3d3Bd", number, *point.position, *point.color, error))
        body.append(struct.pack(f"<Q{len(track)}i", len(track) // 2, *track))
    (folder / "points3D.bin").write_bytes(b"".join(body))

    body = [struct.pack("<Q", len(names))]
    for number, (name, pose) in enumerate(zip(names, poses, strict=True)):
        rotation = pose[:3, :3].T
        shift = -rotation @ pose[:3, 3]
        body.append(struct.pack("<i7di", number + 1, *quaternion(rotation), *shift, 1))
        body.append(name.encode() + b"\0" + struct.pack("<Q", len(seen[number])))
        body += [struct.pack("<ddq", *observation) for observation in seen[number]]
    (folder / "images.bin").write_bytes(b"".join(body))
