"""Makes a transforms.json, which the engine opens, of the poses_bounds.npy of a scene of LLFF."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from engine.dataset.colmap_binary import read_points
from engine.dataset.loading import Loading
from engine.ply import write_ply_in_phases

IMAGES = "images_8"
POINTS = Path("sparse_orig/0/points3D.bin")  # in the frame of the poses


def write_transforms(llff: Path, folder: Path) -> Path:
    """Writes poses and points of `llff` into `folder`, the photos left where they are.

    A row of poses_bounds.npy is a matrix (3, 5) and two depths: columns of it are the camera's
    axes down, right and back, its place, and height, width and focal length of the full photo. So
    the axes of transforms.json, right, up and back, are columns 1, minus 0 and 2.
    """
    rows = np.load(llff / "poses_bounds.npy")[:, :15].reshape(-1, 3, 5)
    photos = sorted((llff / IMAGES).glob("*.png"))
    frames = []
    for matrix, photo in zip(rows, photos, strict=True):
        pose = np.eye(4)
        pose[:3] = np.stack([matrix[:, 1], -matrix[:, 0], matrix[:, 2], matrix[:, 3]], axis=1)
        frames.append({"file_path": str(photo.resolve()), "transform_matrix": pose.tolist()})
    with Image.open(photos[0]) as first:
        width, height = first.size
    focal = float(rows[0, 2, 4]) * width / float(rows[0, 1, 4])
    camera = {"fl_x": focal, "fl_y": focal, "cx": width / 2, "cy": height / 2}
    scene = {**camera, "w": width, "h": height, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(scene), encoding="utf-8")
    points = read_points(llff / POINTS, Loading())
    columns = [*points.positions.T, *points.colors.T]
    kinds = [(name, "f4") for name in "xyz"] + [(n, "u1") for n in ("red", "green", "blue")]
    cloud = np.empty(len(points.ids), kinds)
    for (name, _), column in zip(kinds, columns, strict=True):
        cloud[name] = column
    with (folder / "sparse_pc.ply").open("wb") as file:
        for _ in write_ply_in_phases(file, {"vertex": cloud}):
            pass
    return folder
