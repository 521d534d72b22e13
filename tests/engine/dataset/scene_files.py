"""Writes small scenes as other programs would leave them, for tests that open scenes.

`make_views` places cameras on a ring round textured points; `write_colmap` and
`write_transforms` put them on the disk with photos that show the points as dots.
"""

import dataclasses
import json
import math
import struct
from pathlib import Path

import numpy as np
from PIL import Image

from engine.cameras import Camera, opengl_to_opencv
from engine.dataset.lenses import MODELS_BY_NAME, to_pixels
from engine.dataset.scene import Distortion
from tests.looking import look_at

WIDTH, HEIGHT = 60, 40
PINHOLE = Distortion("PINHOLE", (55.0, 55.0, 30.0, 20.0), WIDTH, HEIGHT)


@dataclasses.dataclass
class SceneFiles:
    """A scene in memory that is about to be written; change what a test wants broken."""

    names: list[str]
    poses: list[np.ndarray]  # world to camera, (4, 4)
    points: np.ndarray  # (n, 3)
    colors: np.ndarray  # (n, 3) uint8
    lenses: dict[int, Distortion]
    cameras: list[int]  # the lens of each photo


def make_views(
    count: int = 10,
    points: int = 80,
    lens: Distortion = PINHOLE,
    names: list[str] | None = None,
    seed: int = 0,
) -> SceneFiles:
    """Cameras on a ring of radius 4 that look at a cloud of about unit size."""
    random = np.random.default_rng(seed)
    poses = []
    for index in range(count):
        angle = 2 * math.pi * index / count
        eye = np.array([4 * math.cos(angle), 4 * math.sin(angle), 1.0 + 0.2 * (index % 3)])
        poses.append(look_at(eye, np.zeros(3), np.array([0.0, 0.0, 1.0])))
    return SceneFiles(
        names=names or [f"photo_{index:03d}.png" for index in range(count)],
        poses=poses,
        points=random.uniform(-0.6, 0.6, (points, 3)),
        colors=random.integers(0, 256, (points, 3), dtype=np.uint8),
        lenses={1: lens},
        cameras=[1] * count,
    )


def moved(scene: SceneFiles, shift: tuple[float, float, float], scale: float = 1.0) -> SceneFiles:
    """The same scene at another place and of another size: x' = x * scale + shift."""
    poses = []
    for pose in scene.poses:
        new = pose.copy()
        new[:3, 3] = pose[:3, 3] * scale - pose[:3, :3] @ np.array(shift)
        poses.append(new)
    return dataclasses.replace(scene, poses=poses, points=scene.points * scale + shift)


def observations(scene: SceneFiles, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (n, 2) and point rows (n,) that one photo sees."""
    lens = scene.lenses[scene.cameras[index]]
    pose = scene.poses[index]
    local = scene.points @ pose[:3, :3].T + pose[:3, 3]
    rows = np.flatnonzero(local[:, 2] > 0)
    pixels = to_pixels(lens, local[rows, :2] / local[rows, 2:])
    inside = ((pixels >= 0) & (pixels <= [lens.width, lens.height])).all(axis=1)
    return pixels[inside], rows[inside]


def picture(scene: SceneFiles, index: int) -> Image.Image:
    """A grey gradient with a dot for each point."""
    lens = scene.lenses[scene.cameras[index]]
    ramp = np.linspace(40, 90, lens.width)[None, :, None]
    pixels = np.broadcast_to(ramp, (lens.height, lens.width, 3)).astype(np.uint8).copy()
    places, rows = observations(scene, index)
    for (x, y), row in zip(places, rows, strict=True):
        pixels[min(int(y), lens.height - 1), min(int(x), lens.width - 1)] = scene.colors[row]
    return Image.fromarray(pixels)


def write_photos(folder: Path, scene: SceneFiles) -> None:
    for index, name in enumerate(scene.names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(scene, index).save(path)


def write_colmap(
    root: Path,
    scene: SceneFiles,
    kind: str = "bin",
    model: str = "sparse/0",
    photos: bool = True,
    points: bool = True,
) -> Path:
    """Writes a COLMAP scene below `root` and returns the model's folder."""
    folder = root / model
    folder.mkdir(parents=True, exist_ok=True)
    if photos:
        write_photos(root / "images", scene)
    write = _write_binary if kind == "bin" else _write_text
    write(folder, scene, points)
    return folder


def quaternion(pose: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of a rotation, by the eigenvector of Bar-Itzhack's matrix."""
    r = pose[:3, :3]
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], 0, 0, 0],
            [r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], 0, 0],
            [r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1], 0],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], np.trace(r)],
        ]
    )
    x, y, z, w = np.linalg.eigh(k / 3)[1][:, -1]
    return np.array([w, x, y, z]) * (1 if w >= 0 else -1)


def _write_binary(folder: Path, scene: SceneFiles, points: bool) -> None:
    out = bytearray(struct.pack("<Q", len(scene.lenses)))
    for identifier, lens in scene.lenses.items():
        model = MODELS_BY_NAME[lens.model].identifier
        out += struct.pack("<iiQQ", identifier, model, lens.width, lens.height)
        out += struct.pack(f"<{len(lens.parameters)}d", *lens.parameters)
    (folder / "cameras.bin").write_bytes(out)
    out = bytearray(struct.pack("<Q", len(scene.names)))
    for index, name in enumerate(scene.names):
        pose = scene.poses[index]
        out += struct.pack("<i7d", index + 1, *quaternion(pose), *pose[:3, 3])
        out += struct.pack("<i", scene.cameras[index]) + name.encode() + b"\0"
        pixels, rows = observations(scene, index)
        out += struct.pack("<Q", len(rows) + 1)
        for (x, y), row in zip(pixels, rows, strict=True):
            out += struct.pack("<ddq", x, y, row + 1)
        out += struct.pack("<ddq", 1.0, 2.0, -1)  # a feature that became no point
    (folder / "images.bin").write_bytes(out)
    if points:
        out = bytearray(struct.pack("<Q", len(scene.points)))
        for row, (point, color) in enumerate(zip(scene.points, scene.colors, strict=True)):
            out += struct.pack("<Q3d3Bd", row + 1, *point, *color.tolist(), 0.5)
            out += struct.pack("<Qii", 1, 1, row)
        (folder / "points3D.bin").write_bytes(out)


def _write_text(folder: Path, scene: SceneFiles, points: bool) -> None:
    lines = ["# Camera list with one line of data per camera:"]
    for identifier, lens in scene.lenses.items():
        values = " ".join(repr(value) for value in lens.parameters)
        lines.append(f"{identifier} {lens.model} {lens.width} {lens.height} {values}")
    (folder / "cameras.txt").write_text("\n".join(lines) + "\n")
    lines = ["# Image list with two lines of data per image:"]
    for index, name in enumerate(scene.names):
        numbers = [*quaternion(scene.poses[index]), *scene.poses[index][:3, 3]]
        pose = " ".join(repr(float(value)) for value in numbers)
        lines.append(f"{index + 1} {pose} {scene.cameras[index]} {name}")
        pixels, rows = observations(scene, index)
        seen = zip(pixels, rows, strict=True)
        lines.append(" ".join(f"{float(x)!r} {float(y)!r} {row + 1}" for (x, y), row in seen))
    (folder / "images.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if points:
        lines = ["# 3D point list with one line of data per point:"]
        for row, (point, color) in enumerate(zip(scene.points, scene.colors, strict=True)):
            numbers = " ".join(repr(float(value)) for value in point)
            shade = " ".join(str(int(value)) for value in color)
            lines.append(f"{row + 1} {numbers} {shade} 0.5 1 {row}")
        (folder / "points3D.txt").write_text("\n".join(lines) + "\n")


def opengl_matrix(world_to_camera: np.ndarray) -> list[list[float]]:
    """The transform_matrix of a pose: camera to world, with OpenGL axes."""
    return opengl_to_opencv(np.linalg.inv(world_to_camera)).tolist()  # the flip is its own inverse


def transforms(scene: SceneFiles, **root: object) -> dict[str, object]:
    """The content of a transforms.json with the first lens at its root."""
    lens = next(iter(scene.lenses.values()))
    camera = Camera(np.eye(4), *lens.parameters[:4], lens.width, lens.height)
    return {
        "fl_x": camera.fx,
        "fl_y": camera.fy,
        "cx": camera.cx,
        "cy": camera.cy,
        "w": lens.width,
        "h": lens.height,
        **root,
        "frames": [
            {"file_path": f"images/{name}", "transform_matrix": opengl_matrix(pose)}
            for name, pose in zip(scene.names, scene.poses, strict=True)
        ],
    }


def write_transforms(
    root: Path, scene: SceneFiles, content: dict[str, object] | None = None
) -> Path:
    """Writes a nerfstudio-like scene below `root` and returns the JSON file."""
    write_photos(root / "images", scene)
    path = root / "transforms.json"
    path.write_text(json.dumps(transforms(scene) if content is None else content))
    return path


def write_blender(root: Path, scene: SceneFiles, test: int = 3) -> Path:
    """Writes transforms_train.json and, for the last `test` photos, transforms_test.json."""
    lens = next(iter(scene.lenses.values()))
    angle = 2 * math.atan(lens.width / (2 * lens.parameters[0]))
    border = len(scene.names) - test
    for split, indices in (
        ("train", range(border)),
        ("test", range(border, len(scene.names))),
    ):
        if not indices:
            continue
        frames = []
        for place, index in enumerate(indices):
            path = root / split / f"r_{place}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image = picture(scene, index).convert("RGBA")
            image.putalpha(200)
            image.save(path)
            matrix = opengl_matrix(scene.poses[index])
            frames.append({"file_path": f"./{split}/r_{place}", "transform_matrix": matrix})
        content = {"camera_angle_x": angle, "frames": frames}
        (root / f"transforms_{split}.json").write_text(json.dumps(content))
    return root
