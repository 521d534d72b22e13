"""From names in a pose file to photos on the disk with cameras that fit them."""

import dataclasses
from pathlib import Path, PurePosixPath

from engine.cameras import Camera
from engine.dataset.findings import counted_photos, only_name
from engine.dataset.images import training_size
from engine.dataset.lenses import is_pinhole, resized_lens
from engine.dataset.loading import Loading
from engine.dataset.photo_files import (
    Match,
    PhotoFolder,
    PhotoHeader,
    is_photo_there,
    read_header,
)
from engine.dataset.posed_files import LensGuess, PosedFile, PosedFiles
from engine.dataset.scene import Distortion, Finding, Photo, Severity
from engine.dataset.undistort import PinholeView, pinhole_view
from engine.errors import SceneError
from engine.plain_files import is_folder
from engine.wording import counted

_POSED_BUT_LOST = ("distortion_invalid", "entry_invalid", "pose_invalid")  # readers' findings
_LEAST_KEPT = 0.5  # of a photo's area; below, the distortion was likely estimated badly


@dataclasses.dataclass(frozen=True, eq=False)
class MatchedPhoto:
    """A photo that can be used, still in the frame of the files and not yet split."""

    posed: PosedFile
    photo: Photo
    has_alpha: bool


@dataclasses.dataclass(frozen=True)
class _Fit:
    """How a file and its camera go together."""

    lens: Distortion  # at the size of the picture after a rotation
    rotate: bool
    scale: float  # picture width / width that the camera says


def match_photos(
    posed: PosedFiles, resolution: int, loading: Loading
) -> tuple[list[MatchedPhoto], list[Finding]]:
    """Every photo that can be used, sorted by name, and what was noticed on the way.

    Raises SceneError when there is none.
    """
    folder = _photo_folder(posed, loading)
    matcher = _Matcher(folder, resolution)
    for done, item in enumerate(posed.photos):
        loading.report("Looking at photos", item.name, done, len(posed.photos))
        matcher.add(item)
    if not matcher.photos:
        raise _nothing_matched(posed, folder, matcher)
    findings = [*matcher.summary(), *_unmatched(posed, folder, matcher)]
    return sorted(matcher.photos, key=lambda item: item.photo.name), findings


class _Matcher:
    """Collects photos and findings one pose at a time."""

    def __init__(self, folder: PhotoFolder, resolution: int) -> None:
        self.folder = folder
        self.photos: list[MatchedPhoto] = []
        self.findings: list[Finding] = []
        self.missing: list[str] = []
        self.used: dict[Path, str] = {}
        self._resolution = resolution
        self._matched: dict[Match, list[str]] = {}
        self._scaled: dict[float, list[str]] = {}

    def add(self, posed: PosedFile) -> None:
        """Take in one photo, or say why not."""
        found = self.folder.find(posed.name)
        if found is None:
            self.missing.append(posed.name)
            path = self.folder.folder / posed.name
            what = "is a folder, not a photo" if is_folder(path) else "does not exist"
            message = (
                f"{path} {what}; its pose is left out. Put the photo back if it should be used."
            )
            self._note("photo_missing", "warning", posed.name, message)
            return
        path, how = found
        if path in self.used:
            message = (
                f"{posed.name} leads to {path.name}, which {self.used[path]} uses already; the "
                "second pose is left out. Give every photo a name of its own."
            )
            self._note("photo_twice", "warning", posed.name, message)
            return
        self.used[path] = posed.name
        code = "photo_unreadable"
        try:
            header = read_header(path)
            code = "photo_size_mismatch"
            fit = _fit(path, posed.lens, header)
            code = "distortion_invalid"
            view = pinhole_view(fit.lens)
        except SceneError as error:
            self._note(code, "warning", posed.name, f"{error} The photo is left out.")
            return
        name = posed.name
        if how in (Match.SUFFIX, Match.BASE_NAME) or PurePosixPath(name).is_absolute():
            name = self.folder.relative_name(path)
        photo = _make_photo(name, path, posed, fit, view, self._resolution)
        self.photos.append(MatchedPhoto(posed, photo, header.has_alpha))
        self._remember(name, how, fit, view)

    def _note(self, code: str, severity: Severity, file: str, message: str) -> None:
        self.findings.append(Finding(code, severity, file, message))

    def _remember(self, name: str, how: Match, fit: _Fit, view: PinholeView) -> None:
        self._matched.setdefault(how, []).append(name)
        if fit.scale != 1.0:
            self._scaled.setdefault(round(fit.scale, 4), []).append(name)
        if not is_pinhole(fit.lens) and view.kept_share < _LEAST_KEPT:
            message = (
                f"Undistorting {name} keeps only {view.kept_share:.0%} of its area (as "
                f"{view.width}x{view.height}). Either the lens is a very wide fish-eye or its "
                "distortion was estimated badly; then calibrate again, with a simpler model."
            )
            self._note("little_area_kept", "warning", name, message)

    def summary(self) -> list[Finding]:
        """Every finding, with one for each thing that happened to several photos."""
        for how in (Match.FOLDED, Match.STEM, Match.BASE_NAME):
            if names := self._matched.get(how):
                message = f"{counted_photos(names)} found {how.value}, such as {names[0]}."
                self._note(f"matched_{how.name.lower()}", "warning", only_name(names), message)
        for scale, names in self._scaled.items():
            message = (
                f"{counted_photos(names)} found at {scale:g} times the size that the camera says; "
                "focal length and principal point are scaled along."
            )
            is_usual = abs(1 / scale - round(1 / scale)) < 0.02  # a half, a quarter, ...
            if not is_usual:
                message += " Check that photos and poses belong together."
            self._note("photos_scaled", "ok" if is_usual else "warning", only_name(names), message)
        return self.findings


def _fit(path: Path, lens: Distortion | LensGuess, header: PhotoHeader) -> _Fit:
    """How to bring file and camera together; raises SceneError when they are of two shapes."""
    if isinstance(lens, LensGuess):
        return _Fit(lens.lens(header.width, header.height), False, 1.0)
    if (header.width, header.height) == (lens.width, lens.height):
        return _Fit(lens, False, 1.0)
    if header.turns and (header.height, header.width) == (lens.width, lens.height):
        return _Fit(lens, True, 1.0)
    if _same_shape(lens, header.width, header.height):
        scaled = resized_lens(lens, header.width, header.height)
        return _Fit(scaled, False, header.width / lens.width)
    if header.turns and _same_shape(lens, header.height, header.width):
        scaled = resized_lens(lens, header.height, header.width)
        return _Fit(scaled, True, header.height / lens.width)
    tag = f" (EXIF orientation {header.orientation})" if header.orientation != 1 else ""
    raise SceneError(
        f"{path} is {header.width}x{header.height}{tag} but its camera says {lens.width}x"
        f"{lens.height}. Photos and poses do not belong together: after undistorting, open the new "
        "folder with its own sparse/, or export photos or poses again.",
        path=path,
    )


def _same_shape(lens: Distortion, width: int, height: int) -> bool:
    """Whether a picture is the camera's, scaled and rounded to whole pixels."""
    scale = width / lens.width
    return abs(lens.height * scale - height) <= 0.5 + 0.5 * lens.height / lens.width


def _make_photo(
    name: str, path: Path, posed: PosedFile, fit: _Fit, view: PinholeView, resolution: int
) -> Photo:
    inner = view.intrinsics
    full = Camera(
        posed.world_to_camera, inner.fx, inner.fy, inner.cx, inner.cy, view.width, view.height
    )
    camera = full.resized(*training_size(view.width, view.height, resolution))
    distortion = None if is_pinhole(fit.lens) else fit.lens
    return Photo(name, path, camera, distortion, fit.rotate, held_out=False)


def _photo_folder(posed: PosedFiles, loading: Loading) -> PhotoFolder:
    """The folder where most of the photos are; the first of them when none has any."""
    if not posed.photo_folders:
        raise SceneError(
            f"{posed.source} has no photos beside it; expected a folder 'images' with "
            f"{posed.photos[0].name}.",
            path=posed.source,
        )
    best, most = posed.photo_folders[0], 0
    for folder in posed.photo_folders:
        loading.poll()
        present = sum(is_photo_there(folder / item.name) for item in posed.photos)
        if present > most:
            best, most = folder, present
    if most == 0:
        listed = [PhotoFolder(folder, loading) for folder in posed.photo_folders]
        return max(
            listed, key=lambda item: sum(item.find(p.name) is not None for p in posed.photos)
        )
    return PhotoFolder(best, loading)


def _nothing_matched(posed: PosedFiles, folder: PhotoFolder, matcher: _Matcher) -> SceneError:
    reasons = [item.message for item in matcher.findings if item.code != "photo_missing"]
    if reasons:  # some were found, none can be used: the first reason will do
        return SceneError(f"No photo can be used. {reasons[0]}", path=posed.source)
    wanted = ", ".join(matcher.missing[:3])
    present = ", ".join(folder.names[:3]) or "none"
    return SceneError(
        f"{posed.source} has {counted(len(posed.photos), 'pose')}, {folder.folder} has "
        f"{counted(len(folder.names), 'photo')}, and 0 of them match. The poses name {wanted}; the "
        f"photos are {present}. Rename the photos or put the right ones there.",
        path=posed.source,
    )


def _unmatched(posed: PosedFiles, folder: PhotoFolder, matcher: _Matcher) -> list[Finding]:
    """Photos on the disk that no pose names: left out by whoever made the poses."""
    source = f"{posed.source.parent.name}/{posed.source.name}"
    lost = [item for item in posed.findings if item.code in _POSED_BUT_LOST]
    found = [folder.find(item.file) for item in lost]
    paths = [*matcher.used, *(place[0] for place in found if place is not None)]
    used = {folder.relative_name(path) for path in paths}
    nameless = sum(
        item.code == "entry_invalid" and place is None
        for item, place in zip(lost, found, strict=True)
    )
    names = [name for name in folder.names if name not in used]
    if posed.source.is_relative_to(
        folder.folder
    ):  # a whole scene folder: other pictures are normal
        places = {PurePosixPath(name).parent for name in used}
        names = [name for name in names if PurePosixPath(name).parent in places]
    if len(names) <= nameless:  # theirs are the poses that name no photo, which is told
        return []
    why = "The program that made the poses could not place it."
    if nameless:
        why = f"{counted(nameless, 'pose')} there cannot be read; one may be its own."
    return [
        Finding(
            "photo_without_pose",
            "warning",
            name,
            f"{name} has no pose in {source}; it is not used. {why}",
        )
        for name in names
    ]
