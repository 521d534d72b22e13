"""transforms.json: instant-ngp, nerfstudio, and the Blender form with one file a split.

`transform_matrix` is camera to world with OpenGL axes (x right, y up, z backward). Intrinsics
stand at the root or in a frame, where the frame's win. nerfstudio's seed cloud is in the frame of
the matrices, whatever `applied_transform` says was done to both.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
from jaxtyping import Float

from engine.cameras import invert_pose, opengl_to_opencv
from engine.dataset.loading import Loading
from engine.dataset.point_cloud import read_point_cloud
from engine.dataset.posed_files import LensGuess, PosedFile, PosedFiles
from engine.dataset.scene import LARGEST_COORDINATE, Distortion, Finding
from engine.errors import EngineError, SceneError

BLENDER_SPLITS = {"train": False, "test": True}  # split -> held out; "val" is not used
_BLENDER_HALF_SIZE = 1.3  # the cube the synthetic scenes live in (FACTS 1.1)
_SEED_CLOUDS = ("sparse_pc.ply", "points3D.ply", "points3d.ply")
_FISHEYES = ("OPENCV_FISHEYE", "FISHEYE")
_PERSPECTIVES = ("", "OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL")
Values = Mapping[str, object]


def read_transforms(path: Path, loading: Loading) -> PosedFiles:
    """One transforms.json, photos looked for beside it; raises SceneError naming file and key."""
    loading.report("Reading poses", path.name, 0, 1)
    root = _parse(path)
    findings: list[Finding] = []
    photos = _frames(path, root, None, findings, loading)
    points, colors = _seed_cloud(path, root, findings)
    return PosedFiles(
        format="transforms.json",
        source=path,
        photos=photos,
        photo_folders=(path.parent,),
        points=points,
        point_colors=colors,
        findings=tuple(findings),
    )


def read_blender(folder: Path, loading: Loading) -> PosedFiles:
    """transforms_train.json and, when present, transforms_test.json as the held-out photos."""
    findings: list[Finding] = []
    photos: list[PosedFile] = []
    paths = {split: folder / f"transforms_{split}.json" for split in BLENDER_SPLITS}
    present = {split: path for split, path in paths.items() if path.is_file()}
    if "train" not in present:
        raise SceneError(
            f"{folder} has a transforms_test.json but no transforms_train.json; expected the "
            "training photos there. Rename or export it.",
            path=folder,
        )
    for done, (split, path) in enumerate(present.items()):
        loading.report("Reading poses", path.name, done, len(present))
        held_out = BLENDER_SPLITS[split] if len(present) > 1 else None
        photos += _frames(path, _parse(path), held_out, findings, loading)
    train = paths["train"]
    points, colors = _seed_cloud(train, _parse(train), findings)
    return PosedFiles(
        format="Blender",
        source=train,
        photos=tuple(photos),
        photo_folders=(folder,),
        points=points,
        point_colors=colors,
        findings=tuple(findings),
        random_half_size=_BLENDER_HALF_SIZE,
    )


def _parse(path: Path) -> Values:
    try:
        root = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise SceneError(message, path=path) from error
    except json.JSONDecodeError as error:
        raise SceneError(
            f"{path}, line {error.lineno}, column {error.colno}: {error.msg}; expected JSON. The "
            "file is damaged or cut short; copy or export it again.",
            path=path,
            value=error.lineno,
        ) from error
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start} is not UTF-8; expected JSON text in UTF-8."
        raise SceneError(message, path=path) from error
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        message = f"{path} is not a sensible JSON file: {error}. Copy or export it again."
        raise SceneError(message, path=path) from error
    if not isinstance(root, dict) or not isinstance(root.get("frames"), list):
        raise SceneError(
            f"{path} has no list 'frames'; expected the transforms.json of instant-ngp, nerfstudio "
            "or Blender.",
            path=path,
        )
    return root


def _frames(
    path: Path, root: Values, held_out: bool | None, findings: list[Finding], loading: Loading
) -> tuple[PosedFile, ...]:
    frames = cast(list[object], root["frames"])
    if not frames:
        raise SceneError(f"{path} lists no frames; expected at least one photo.", path=path)
    photos: list[PosedFile] = []
    for index, frame in enumerate(frames):
        loading.poll()
        place = f"{path}, frame {index}"
        if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
            raise SceneError(
                f"{place} has no 'file_path'; expected the name of a photo.", path=path
            )
        name = frame["file_path"].replace("\\", "/")
        while name.startswith("./"):
            name = name[2:]
        pose = _pose(frame.get("transform_matrix"))
        if pose is None:
            message = (
                f"{place} ({name}): 'transform_matrix' is not a rigid 4x4 pose of finite numbers; "
                "the photo is left out. Export the poses again."
            )
            findings.append(Finding("pose_invalid", "warning", name, message))
            continue
        lens = _lens(path, f"{place} ({name})", {**root, **frame})
        photos.append(PosedFile(name, pose, lens, held_out))
    if not photos:
        raise SceneError(f"{findings[-1].message} No usable frame is left.", path=path)
    return tuple(photos)


def _pose(matrix: object) -> Float[np.ndarray, "4 4"] | None:
    """World to camera with OpenCV axes, or None when the matrix is no pose."""
    try:
        values = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if values.shape not in ((4, 4), (3, 4)) or not (np.abs(values) < LARGEST_COORDINATE).all():
        return None
    pose = np.eye(4)
    pose[:3] = values[:3]
    left, stretch, right = np.linalg.svd(pose[:3, :3])
    # A uniform scale in the matrix does not move the camera's centre: only the rotation counts.
    if stretch[2] <= 0 or stretch[0] > 1.01 * stretch[2] or np.linalg.det(pose[:3, :3]) < 0:
        return None
    pose[:3, :3] = left @ right
    return invert_pose(opengl_to_opencv(pose))


def _lens(path: Path, place: str, values: Values) -> Distortion | LensGuess:
    model, extras = _distortion(path, place, values)
    width, height = _number(path, place, values, "w"), _number(path, place, values, "h")
    fx, fy, field_x, field_y = (
        _number(path, place, values, key)
        for key in ("fl_x", "fl_y", "camera_angle_x", "camera_angle_y")
    )
    if fx is None and fy is None and field_x is None and field_y is None:
        raise SceneError(
            f"{place} says nothing of the lens; expected 'fl_x' (pixels) or 'camera_angle_x' "
            "(radians), at the root or in the frame.",
            path=path,
        )
    for key, value, limit in (
        ("fl_x", fx, np.inf),
        ("fl_y", fy, np.inf),
        ("camera_angle_x", field_x, np.pi),
        ("camera_angle_y", field_y, np.pi),
    ):
        if value is not None and not 0 < value < limit:
            below = "" if limit == np.inf else f" and below {limit:.3g}"
            raise SceneError(f"{place}: '{key}' is {value}; expected above 0{below}.", path=path)
    center_x, center_y = _number(path, place, values, "cx"), _number(path, place, values, "cy")
    guess = LensGuess(model, field_x, field_y, fx, fy, center_x, center_y, extras)
    if width is None or height is None:
        return guess
    if width < 1 or height < 1:
        raise SceneError(f"{place}: 'w' x 'h' is {width}x{height}; expected pixels.", path=path)
    return guess.lens(round(width), round(height))


def _distortion(path: Path, place: str, values: Values) -> tuple[str, tuple[float, ...]]:
    """The COLMAP model and its extra parameters that say the same as k1, k2, ... here."""
    name = str(values.get("camera_model") or "").upper()
    k1, k2, k3, k4, p1, p2 = (
        _number(path, place, values, key) or 0.0 for key in ("k1", "k2", "k3", "k4", "p1", "p2")
    )
    if values.get("is_fisheye") or name in _FISHEYES:
        return "OPENCV_FISHEYE", (k1, k2, k3, k4)
    if name not in _PERSPECTIVES and name != "FULL_OPENCV":
        raise SceneError(
            f"{place}: found the camera model {name!r}; expected OPENCV, OPENCV_FISHEYE or "
            "PINHOLE. Export perspective photos.",
            path=path,
            value=name,
        )
    if k4 and name != "FULL_OPENCV":
        raise SceneError(
            f"{place}: 'k4' is {k4} in a perspective camera, where writers disagree on its "
            "meaning; expected 0. Undistort the photos before, or export with k1, k2, k3, p1, p2.",
            path=path,
            value=k4,
        )
    if name == "FULL_OPENCV":
        k5, k6 = (_number(path, place, values, key) or 0.0 for key in ("k5", "k6"))
        return "FULL_OPENCV", (k1, k2, p1, p2, k3, k4, k5, k6)
    if k3:
        return "FULL_OPENCV", (k1, k2, p1, p2, k3, 0.0, 0.0, 0.0)
    if any((k1, k2, p1, p2)):
        return "OPENCV", (k1, k2, p1, p2)
    return "PINHOLE", ()


def _number(path: Path, place: str, values: Values, key: str) -> float | None:
    value = values.get(key)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (abs(value) < LARGEST_COORDINATE)
    ):
        raise SceneError(
            f"{place}: '{key}' is {value!r}; expected a finite number.", path=path, value=value
        )
    return float(value)


def _seed_cloud(path: Path, root: Values, findings: list[Finding]) -> tuple[np.ndarray, np.ndarray]:
    named = root.get("ply_file_path")
    folder = path.parent
    nothing = np.empty((0, 3)), np.empty((0, 3), np.uint8)
    if isinstance(named, str) and named:
        cloud = folder / named.replace("\\", "/")
        if not cloud.is_file():
            beside = folder / cloud.name
            if not beside.is_file():
                message = f"The seed cloud {cloud}, named in {path.name}, does not exist."
                findings.append(Finding("seed_cloud_missing", "warning", named, message))
                return nothing
            cloud = beside
    else:
        present = [folder / name for name in _SEED_CLOUDS if (folder / name).is_file()]
        if not present:
            return nothing
        cloud = present[0]
        message = f"{cloud.name} lies beside {path.name} and is used as the seed cloud."
        findings.append(Finding("seed_cloud_found", "ok", cloud.name, message))
    try:
        points, colors, notes = read_point_cloud(cloud)
    except EngineError as error:
        message = f"{error} The seed cloud is not used."
        findings.append(Finding("seed_cloud_unreadable", "warning", cloud.name, message))
        return nothing
    findings += notes
    return points, colors
