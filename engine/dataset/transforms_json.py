"""transforms.json: instant-ngp, nerfstudio, and the Blender form with one file a split.

What one frame says is read in `transforms_frame`. nerfstudio's seed cloud is in the frame of the
matrices, whatever `applied_transform` says was done to both.
"""

import dataclasses
import json
from pathlib import Path
from typing import cast

import numpy as np

from engine.dataset.loading import Loading
from engine.dataset.point_cloud import read_point_cloud
from engine.dataset.posed_files import PosedFile, PosedFiles
from engine.dataset.scene import Finding
from engine.dataset.transforms_frame import Frame, Values
from engine.documents import UNREADABLE, problem_of
from engine.errors import EngineError, SceneError
from engine.plain_files import is_folder, is_there, require_plain_file

BLENDER_SPLITS = {"train": False, "test": True}  # split -> held out; "val" is not used
_BLENDER_HALF_SIZE = 1.3  # the cube the synthetic scenes live in (FACTS 1.1)
_SEED_CLOUDS = ("sparse_pc.ply", "points3D.ply", "points3d.ply")
_LEFT_OUT = " The photo is left out."


def read_transforms(path: Path, loading: Loading) -> PosedFiles:
    """One transforms.json, photos looked for beside it; raises SceneError naming file and key.

    A frame that cannot be used is a finding, as long as another one can.
    """
    loading.report("Reading poses", path.name, 0, 1)
    root = _parse(path)
    photos, findings = _frames(path, root, loading)
    _require_one(path, photos, findings)
    points, colors = _seed_cloud(path, root, findings)
    return PosedFiles(
        format="transforms.json",
        source=path,
        photos=tuple(photos),
        photo_folders=(path.parent,),
        points=points,
        point_colors=colors,
        findings=tuple(findings),
        masks=_masks(root),
    )


def read_blender(folder: Path, loading: Loading) -> PosedFiles:
    """transforms_train.json and, when present, transforms_test.json as the held-out photos."""
    paths = {split: folder / f"transforms_{split}.json" for split in BLENDER_SPLITS}
    present = {split: path for split, path in paths.items() if is_there(path)}
    if "train" not in present:
        raise SceneError(
            f"{folder} has a transforms_test.json but no transforms_train.json; expected the "
            "training photos there. Rename or export it.",
            path=folder,
        )
    findings: list[Finding] = []
    photos: dict[str, list[PosedFile]] = {}
    roots = {}
    for done, (split, path) in enumerate(present.items()):
        loading.report("Reading poses", path.name, done, len(present))
        roots[split] = _parse(path)
        photos[split], found = _frames(path, roots[split], loading)
        findings += found
    train = present["train"]
    _require_one(train, photos["train"], findings)
    points, colors = _seed_cloud(train, roots["train"], findings)
    is_split = bool(photos.get("test"))
    return PosedFiles(
        format="Blender",
        source=train,
        photos=tuple(
            dataclasses.replace(photo, held_out=BLENDER_SPLITS[split] if is_split else None)
            for split, frames in photos.items()
            for photo in frames
        ),
        photo_folders=(folder,),
        points=points,
        point_colors=colors,
        findings=tuple(findings),
        random_half_size=_BLENDER_HALF_SIZE,
        masks=sum(map(_masks, roots.values())),
    )


def _parse(path: Path) -> Values:
    try:
        require_plain_file(path)
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
    except UNREADABLE as error:
        message = f"{path} cannot be read: {problem_of(error)}. Copy or export it again."
        raise SceneError(message, path=path) from error
    if not isinstance(root, dict) or not isinstance(root.get("frames"), list):
        raise SceneError(
            f"{path} has no list 'frames'; expected the transforms.json of instant-ngp, nerfstudio "
            "or Blender.",
            path=path,
        )
    return root


def _frames(path: Path, root: Values, loading: Loading) -> tuple[list[PosedFile], list[Finding]]:
    """The frames that can be used, in their order, and a finding for each of the others."""
    photos: list[PosedFile] = []
    findings: list[Finding] = []
    for index, values in enumerate(cast(list[object], root["frames"])):
        loading.poll()
        name = f"{path.name}, frame {index}"
        code = "entry_invalid"
        try:
            frame = Frame(path, index, root, values)
            name = frame.name
            code = "pose_invalid"
            pose = frame.world_to_camera()
            code = "distortion_invalid"
            photos.append(PosedFile(name, pose, frame.lens()))
        except SceneError as error:
            findings.append(Finding(code, "warning", name, f"{error}{_LEFT_OUT}"))
    return photos, findings


def _require_one(path: Path, photos: list[PosedFile], findings: list[Finding]) -> None:
    if photos:
        return
    if not findings:
        raise SceneError(f"{path} lists no frames; expected at least one photo.", path=path)
    reason = findings[0].message.removesuffix(_LEFT_OUT)  # often one for the whole file
    raise SceneError(f"{reason} No frame can be used.", path=path)


def _masks(root: Values) -> int:
    """How many frames name a mask."""
    frames = cast(list[object], root["frames"])
    return sum(isinstance(frame, dict) and bool(frame.get("mask_path")) for frame in frames)


def _seed_cloud(path: Path, root: Values, findings: list[Finding]) -> tuple[np.ndarray, np.ndarray]:
    named = root.get("ply_file_path")
    folder = path.parent
    nothing = np.empty((0, 3)), np.empty((0, 3), np.uint8)
    if isinstance(named, str) and named:
        cloud = folder / named.replace("\\", "/")
        if not is_there(cloud):
            beside = folder / cloud.name
            if not is_there(beside):
                what = "is a folder, not a file" if is_folder(cloud) else "does not exist"
                message = f"The seed cloud {cloud}, named in {path.name}, {what}."
                findings.append(Finding("seed_cloud_missing", "warning", named, message))
                return nothing
            cloud = beside
    else:
        present = [folder / name for name in _SEED_CLOUDS if is_there(folder / name)]
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
