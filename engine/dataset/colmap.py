"""COLMAP models: which files make one, and the choice among several.

A model is a folder with cameras, images and, if all is well, points3D, all .bin or all .txt.
Other files beside them (rigs, frames, project.ini) are of no concern: an image's own pose is
written in images whatever the rig.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Int

from engine.cameras import pose_from_quaternion
from engine.dataset import colmap_binary, colmap_text
from engine.dataset.colmap_model import ModelImage, ModelPoints
from engine.dataset.loading import Loading
from engine.dataset.posed_files import Observations, PosedFile, PosedFiles
from engine.dataset.scene import Distortion, Finding
from engine.errors import SceneError
from engine.plain_files import is_there, listed, require_plain_file

_KINDS = (".bin", ".txt")


def model_kind(folder: Path) -> str | None:
    """The suffix of the model whose cameras and images the folder holds, or None."""
    for kind in _KINDS:
        if is_there(folder / f"cameras{kind}") and is_there(folder / f"images{kind}"):
            return kind
    return None


def looks_like_model(folder: Path) -> bool:
    """Whether any file of a model is there, complete or not."""
    names = ("cameras", "images", "points3D")
    return any(is_there(folder / f"{name}{kind}") for kind in _KINDS for name in names)


def refuse_incomplete(folder: Path, remark: str = "") -> SceneError:
    """The error for a folder with some files of a model but not those that are needed."""
    present = sorted(listed(item) for item in folder.iterdir() if item.suffix in _KINDS)
    return SceneError(
        f"{folder} is an incomplete COLMAP model: found {', '.join(present)}; expected cameras and "
        "images, both .bin or both .txt. Without images there are no poses. Copy the missing file "
        f"or export the model again.{remark}",
        path=folder,
    )


def count_images(folder: Path, loading: Loading) -> int:
    """How many registered images a model has; raises SceneError when it cannot be read."""
    if model_kind(folder) == ".txt":
        return len(colmap_text.read_images(folder / "images.txt", loading)[0])
    return len(colmap_binary.read_images(folder / "images.bin", loading)[0])


def choose_model(folders: list[Path], loading: Loading) -> tuple[Path, list[Finding]]:
    """The model with the most registered images among several, and a finding that says so.

    Models that cannot be read lose against those that can, each with a finding; raises the
    SceneError of the first when none can be read.
    """
    if len(folders) == 1:
        return folders[0], []
    counts: dict[Path, int] = {}
    findings: list[Finding] = []
    errors: list[SceneError] = []
    for folder in folders:
        try:
            counts[folder] = count_images(folder, loading)
        except SceneError as error:
            errors.append(error)
            findings.append(Finding("model_unreadable", "warning", folder.name, str(error)))
    if not counts:
        raise errors[0]
    chosen = max(counts, key=lambda folder: counts[folder])
    total = sum(counts.values())
    others = ", ".join(f"{folder.name}: {n}" for folder, n in counts.items() if folder != chosen)
    if others:
        message = (
            f"COLMAP split this scene into {len(counts)} models; {chosen.parent.name}/"
            f"{chosen.name} has the most photos and is used: {counts[chosen]} of {total} (others: "
            f"{others}). The other photos are left out; open such a folder to train on them."
        )
        findings.append(Finding("model_chosen", "warning", chosen.name, message))
    return chosen, findings


def read_model(folder: Path, photo_folders: tuple[Path, ...], loading: Loading) -> PosedFiles:
    """Everything in one model folder; raises SceneError naming file and place."""
    kind = model_kind(folder)
    if kind is None:
        raise refuse_incomplete(folder)
    reader = colmap_binary if kind == ".bin" else colmap_text
    files = [folder / f"{name}{kind}" for name in ("cameras", "images", "points3D")]
    loading.report("Reading poses", files[0].name, 0, 3)
    cameras = reader.read_cameras(files[0])
    loading.report("Reading poses", files[1].name, 1, 3)
    images, findings = reader.read_images(files[1], loading)
    loading.report("Reading poses", files[2].name, 2, 3)
    points = ModelPoints(np.empty(0, np.int64), np.empty((0, 3)), np.empty((0, 3), np.uint8))
    if note := _no_points_in(files[2]):
        findings.append(note)
    elif files[2].exists():
        points = reader.read_points(files[2], loading)
    if not images and not findings:
        raise SceneError(
            f"{files[1]} lists no photos; expected at least one pose. COLMAP registered nothing: "
            "run it again, or open another model.",
            path=files[1],
        )
    order = np.argsort(points.ids, kind="stable")
    photos: list[PosedFile] = []
    for image in images:
        try:
            photos.append(_posed(files[0], image, cameras, points.ids, order))
        except SceneError as error:
            message = f"{error} The photo is left out."
            findings.append(Finding("distortion_invalid", "warning", image.name, message))
    if not photos:
        first = findings[0].message
        raise SceneError(f"No photo of {files[1]} can be used. {first}", path=files[1])
    return PosedFiles(
        format=f"COLMAP ({'binary' if kind == '.bin' else 'text'})",
        source=folder,
        photos=tuple(photos),
        photo_folders=photo_folders,
        points=points.positions,
        point_colors=points.colors,
        findings=tuple(findings),
    )


def _no_points_in(path: Path) -> Finding | None:
    """A finding when something else than a plain file stands in the place of the points."""
    try:
        require_plain_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}. The points are left out."
        return Finding("points_unreadable", "warning", path.name, message)
    return None


def _posed(
    cameras_file: Path,
    image: ModelImage,
    cameras: Mapping[int, Distortion | SceneError],
    point_ids: Int[np.ndarray, "n"],
    order: Int[np.ndarray, "n"],
) -> PosedFile:
    lens = cameras.get(image.camera)
    if isinstance(lens, SceneError):
        raise SceneError(f"{image.name} has no lens: {lens}", path=cameras_file) from lens
    if lens is None:
        known = ", ".join(str(identifier) for identifier in list(cameras)[:10])
        raise SceneError(
            f"{image.name} was taken with camera {image.camera}, which {cameras_file} does not "
            f"have (it has {known or 'none'}). The files belong to different models; export the "
            "model again.",
            path=cameras_file,
            value=image.camera,
        )
    places = np.searchsorted(point_ids, image.point_ids, sorter=order)
    inside = places < len(point_ids)
    rows = order[places[inside]]
    found = point_ids[rows] == image.point_ids[inside]
    return PosedFile(
        name=image.name,
        world_to_camera=pose_from_quaternion(image.quaternion, image.translation),
        lens=lens,
        observations=Observations(image.pixels[inside][found], rows[found]),
    )
