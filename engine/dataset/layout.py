"""Which format lies in a folder, and where its parts are.

A user may name the scene's folder, the model folder, the JSON file or the folder of photos.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.dataset.colmap import (
    choose_model,
    looks_like_model,
    model_kind,
    read_model,
    refuse_incomplete,
)
from engine.dataset.loading import Loading
from engine.dataset.photo_files import is_photo_name
from engine.dataset.point_cloud import holds_splats
from engine.dataset.posed_files import PosedFiles
from engine.dataset.scene import Finding
from engine.dataset.transforms_json import read_blender, read_transforms
from engine.errors import EngineError, SceneError
from engine.plain_files import is_there, listed, require_plain_file
from engine.ply import read_ply_header
from engine.scene_names import EXPECTED_SCENE, require_existing
from engine.wording import counted

_MODEL_PARENTS = ("sparse", "colmap/sparse", "colmap", "sparse_txt", "distorted/sparse")
_PHOTO_FOLDERS = ("images", "input", "image", "imgs", "photos", "rgb", "frames")
_BLENDER_NAMES = ("transforms_train.json", "transforms_test.json", "transforms_val.json")


@dataclasses.dataclass(frozen=True)
class Layout:
    """A scene that was found: the folder it is named after, and how to read its poses."""

    root: Path
    read: Callable[[Loading], PosedFiles]
    findings: tuple[Finding, ...] = ()


def find_layout(path: Path, loading: Loading) -> Layout:
    """What to read for `path`; raises SceneError that says what was looked for and found."""
    require_existing(path)
    if not path.is_dir():
        require_plain_file(path)
        return _layout_of_file(path, loading)
    found = _layout_of_folder(path, loading)
    if found is None and path.parent != path and is_photo_folder(path):
        above = _layout_of_folder(path.parent, loading)
        if above is not None:
            message = f"{path.name} is the photo folder of the scene {above.root}, which is opened."
            note = Finding("scene_above", "ok", path.name, message)
            return dataclasses.replace(above, findings=(*above.findings, note))
    if found is None:
        raise _nothing_found(path)
    return found


def is_photo_folder(folder: Path) -> bool:
    """Whether photos lie directly in the folder."""
    return any(map(_is_photo, folder.iterdir()))


def _is_photo(item: Path) -> bool:
    return is_photo_name(item.name) and not item.is_dir()


def _layout_of_file(path: Path, loading: Loading) -> Layout:
    if path.suffix.lower() == ".json":
        if path.name in _BLENDER_NAMES:
            return Layout(path.parent, partial(read_blender, path.parent))
        return Layout(path.parent, partial(read_transforms, path))
    if path.suffix.lower() == ".ply":
        raise SceneError(f"{path} is {_what_ply(path)}, not a scene; {EXPECTED_SCENE}.", path=path)
    if path.stem in ("cameras", "images", "points3D") and path.suffix in (".bin", ".txt"):
        return _model_layout(path.parent, _larger_siblings(path.parent, loading))
    raise SceneError(f"{path} is a single file, not a scene; {EXPECTED_SCENE}.", path=path)


def _what_ply(path: Path) -> str:
    try:
        splats = holds_splats(read_ply_header(path))
    except EngineError:
        return "not a readable PLY file"
    return "a file of splats (the result of a training)" if splats else "a point cloud"


def _layout_of_folder(path: Path, loading: Loading) -> Layout | None:
    if looks_like_model(path):
        return _model_layout(path, _larger_siblings(path, loading))
    if path.name in ("sparse", "sparse_txt") and (models := _models_below(path)):
        chosen, notes = choose_model(models, loading)
        return _model_layout(chosen, tuple(notes))
    for name in _MODEL_PARENTS:
        parent = path / name
        models = [parent] if model_kind(parent) else _models_below(parent)
        if models:
            chosen, notes = choose_model(models, loading)
            return _model_layout(chosen, (*notes, *_other_formats(path)), root=path)
    if is_there(path / "transforms.json"):
        return Layout(path, partial(read_transforms, path / "transforms.json"))
    if any(is_there(path / name) for name in _BLENDER_NAMES[:2]):
        return Layout(path, partial(read_blender, path))
    has_bounds = (path / "poses_bounds.npy").is_file()
    remark = " The poses in poses_bounds.npy (LLFF) are not read here." if has_bounds else ""
    for name in (*_MODEL_PARENTS, "sparse_orig"):
        for folder in (path / name, *_subfolders(path / name)):
            if looks_like_model(folder):
                raise refuse_incomplete(folder, remark)
    return None


def _larger_siblings(model: Path, loading: Loading) -> tuple[Finding, ...]:
    """A finding when the model that was named is not the largest of its scene."""
    models = _models_below(model.parent) if model_kind(model) else []
    if len(models) < 2 or not model.name.isdigit():
        return ()
    largest, _ = choose_model(models, loading)
    if largest == model:
        return ()
    message = (
        f"{model.parent.name}/{largest.name} has more photos than {model.parent.name}/"
        f"{model.name}, which is used because it was named. Open {model.parent.name} for the "
        "largest."
    )
    return (Finding("model_smaller", "warning", model.name, message),)


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    inside = (item for item in folder.iterdir() if item.is_dir() and item.name[0] != ".")
    return sorted(inside, key=lambda item: (not item.name.isdigit(), len(item.name), item.name))


def _models_below(folder: Path) -> list[Path]:
    return [item for item in _subfolders(folder) if model_kind(item)]


def _model_layout(model: Path, findings: tuple[Finding, ...], root: Path | None = None) -> Layout:
    """A COLMAP model; its photos are looked for beside it and in the folders above."""
    places: list[Path] = []
    above = [root] if root is not None else [model, *list(model.absolute().parents)[:3]]
    for folder in [*above, model.parent]:
        places += [folder / name for name in _PHOTO_FOLDERS]
        places += [item for item in _subfolders(folder) if item.name.startswith("images_")]
    places += above
    existing = tuple(dict.fromkeys(place for place in places if place.is_dir()))
    if root is None:
        root = next((item.parent for item in existing if item.name in _PHOTO_FOLDERS), model)
    return Layout(root, partial(read_model, model, existing), findings)


def _other_formats(path: Path) -> tuple[Finding, ...]:
    beside = [name for name in ("transforms.json", _BLENDER_NAMES[0]) if (path / name).is_file()]
    if not beside:
        return ()
    message = (
        f"{path.name} holds a COLMAP model and {beside[0]}; the COLMAP model is used. Open the "
        "JSON file itself to use that instead."
    )
    return (Finding("two_formats", "warning", beside[0], message),)


def _nothing_found(path: Path) -> SceneError:
    items = sorted(item for item in path.iterdir() if not item.name.startswith("."))
    files = [item.name for item in items if not item.is_dir()]
    photos = [name for name in files if is_photo_name(name)]
    photo_folders = [item for item in _subfolders(path) if is_photo_folder(item)]
    plys = [name for name in files if name.lower().endswith(".ply")]
    if "run.toml" in files:
        what = (
            f"{path} is the folder of a run, not a scene. Continue the run with --resume, or name "
            "the scene that it was trained on."
        )
    elif not items:
        what = f"{path} is an empty folder; {EXPECTED_SCENE}."
    elif "poses_bounds.npy" in files:
        what = (
            f"{path} has poses only as poses_bounds.npy (LLFF), which is not read here; "
            f"{EXPECTED_SCENE}. Convert it with nerfstudio or run COLMAP on the photos."
        )
    elif photos or photo_folders:
        where = "" if photos else f" in {photo_folders[0].name}/"
        count = len(photos) or sum(map(_is_photo, photo_folders[0].iterdir()))
        what = (
            f"{path} holds {counted(count, 'photo')}{where} but no poses: training needs to know "
            f"where each was taken; {EXPECTED_SCENE}. Run COLMAP on the photos (automatic "
            "reconstruction), then open the folder that has images/ and sparse/."
        )
    elif plys:
        kind = _what_ply(path / plys[0])
        what = f"{path} holds {plys[0]}, {kind}, but no photos with poses; {EXPECTED_SCENE}."
    else:
        shown = ", ".join(map(listed, items[:5])) + (", ..." if len(items) > 5 else "")
        what = f"{path} is not a scene: found {shown}; {EXPECTED_SCENE}."
    return SceneError(what, path=path)
