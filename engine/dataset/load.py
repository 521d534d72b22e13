"""Opening a scene: which format it is, its photos, the split, the frame, the check."""

import contextlib
import dataclasses
from pathlib import Path

import numpy as np

from engine.dataset.checks import check_geometry
from engine.dataset.findings import with_photo_counts
from engine.dataset.geometry import camera_centers, frame_of, pose_in_frame
from engine.dataset.layout import find_layout
from engine.dataset.loading import Cancelled, Loading, Progress
from engine.dataset.photo_files import is_mask_name
from engine.dataset.photo_matching import MatchedPhoto, match_photos
from engine.dataset.posed_files import PosedFiles
from engine.dataset.scene import LARGEST_COORDINATE, Finding, Scene
from engine.errors import SceneError
from engine.plain_files import is_unicode, with_escapes
from engine.ply import PlyError
from engine.resolution import require_sensible_width
from engine.settings import Settings
from engine.wording import counted


def load_scene(
    path: Path,
    settings: Settings,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Scene:
    """The scene at `path`: a folder, a model folder, or a transforms.json. No photo is decoded.

    What can be worked around becomes a finding; a scene that cannot be trained on raises
    SceneError, a resolution that makes no sense SettingError. `progress(stage, file, done, total)`
    is called in this thread. `cancelled()` is asked many times a second and ends in
    LoadingCancelled.
    """
    loading = Loading(progress, cancelled)
    with contextlib.suppress(RuntimeError):  # ~name of nobody: then it is a name like any other
        path = path.expanduser()
    require_sensible_width(settings)
    path = path.absolute()
    if not is_unicode(path):
        raise SceneError(
            f"The name {with_escapes(path)} has bytes that are no UTF-8, so that no run can note "
            "where its scene is. Rename the folder.",
            path=path,
        )
    try:
        return _load(path, settings, loading)
    except PlyError as error:
        raise SceneError(str(error), path=error.path) from error
    except OSError as error:
        message = f"{error.filename or path} cannot be read: {error.strerror or error}."
        raise SceneError(message, path=path) from error


def _load(path: Path, settings: Settings, loading: Loading) -> Scene:
    layout = find_layout(path, loading)
    posed = _finite_points(layout.read(loading))
    matched, findings = match_photos(posed, settings.scene.resolution, loading)
    masks = _unused_masks(posed, layout.root, [item.photo.path for item in matched], loading)
    findings = [*layout.findings, *posed.findings, *masks, *findings]
    split, note = _split(matched, settings.scene.test_every)
    findings += note
    training = [item.photo.camera for item, out in zip(matched, split, strict=True) if not out]
    frame = frame_of(camera_centers(training), posed.points)
    loading.report("Checking", layout.root.name, 0, 1)
    findings += check_geometry(posed, matched, split, frame, loading)
    photos = tuple(
        dataclasses.replace(
            item.photo,
            camera=item.photo.camera.moved(pose_in_frame(item.posed.world_to_camera, frame)),
            held_out=held_out,
        )
        for item, held_out in zip(matched, split, strict=True)
    )
    scene = Scene(
        name=layout.root.name,
        path=path,
        photos=photos,
        points=frame.to_engine(posed.points),
        point_colors=posed.point_colors,
        frame=frame,
        findings=tuple(findings),
        has_alpha=any(item.has_alpha for item in matched),
        random_half_size=posed.random_half_size,
    )
    return with_photo_counts(scene)


def _unused_masks(
    posed: PosedFiles, root: Path, photos: list[Path], loading: Loading
) -> list[Finding]:
    """One finding for all masks: in a folder, beside the photos, named by the poses.

    Transparency would say something else of the masked parts: that nothing is there, not that it
    does not matter. So masks are not taken for it.
    """
    found: dict[str, str] = {}
    for name in ("masks", "mask"):
        if (root / name).is_dir():
            found[name] = f"the folder {root / name}"
    if beside := _masks_beside(photos, loading):
        first = beside[0].name
        found[first] = f"{counted(len(beside), 'file')} beside the photos, such as {first}"
    if posed.masks:
        found[posed.source.name] = f"{counted(posed.masks, 'mask')} named in {posed.source.name}"
    if not found:
        return []
    message = (
        f"There are masks, which are not used ({'; '.join(found.values())}): every photo is "
        "trained on in full, and what is masked comes out in the model. To cut something out, "
        "make it transparent in the photos themselves (PNG): there the model learns to be empty."
    )
    return [Finding("masks_unused", "warning", next(iter(found)), message)]


def _masks_beside(photos: list[Path], loading: Loading) -> list[Path]:
    used, masks = set(photos), []
    for folder in sorted({photo.parent for photo in photos}):
        loading.poll()
        masks += [item for item in folder.iterdir() if is_mask_name(item.name) and item not in used]
    return sorted(masks)


def _finite_points(posed: PosedFiles) -> PosedFiles:
    finite = np.asarray((np.abs(posed.points) < LARGEST_COORDINATE).all(axis=1))
    if finite.all():
        return posed
    dropped = counted(int((~finite).sum()), "sparse point")
    message = (
        f"Left out {dropped} whose coordinates are not finite or {LARGEST_COORDINATE:g} and more."
    )
    rows = np.cumsum(finite) - 1
    photos = tuple(
        item
        if item.observations is None
        else dataclasses.replace(
            item,
            observations=dataclasses.replace(
                item.observations,
                pixels=item.observations.pixels[finite[item.observations.points]],
                points=rows[item.observations.points[finite[item.observations.points]]],
            ),
        )
        for item in posed.photos
    )
    return dataclasses.replace(
        posed,
        photos=photos,
        points=posed.points[finite],
        point_colors=posed.point_colors[finite],
        findings=(*posed.findings, Finding("points_dropped", "warning", "", message)),
    )


def _split(matched: list[MatchedPhoto], test_every: int) -> tuple[list[bool], list[Finding]]:
    """Which photos are held out: by the files' own split, else every n-th name."""
    own = [item.posed.held_out for item in matched]
    if all(value is not None for value in own):
        split = [bool(value) for value in own]
    else:
        split = [test_every > 0 and place % test_every == 0 for place in range(len(matched))]
    if all(split):
        message = (
            f"{counted(len(split), 'photo')} would be held out, and none left to train on; so none "
            "is, and there is nothing to measure on. Raise 'hold out every' or add photos."
        )
        return [False] * len(split), [Finding("nothing_held_out", "warning", "", message)]
    return split, []
