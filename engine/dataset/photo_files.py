"""Finding the file of a photo, and what its header says.

Names in pose files come from other machines and other programs: with back-slashes, without an
extension, with another one, as absolute paths. Each way of matching is tried in turn, and the
caller is told which one succeeded.
"""

import dataclasses
import errno
import os
import struct
import unicodedata
import zlib
from enum import Enum
from pathlib import Path, PurePosixPath

from PIL import Image, UnidentifiedImageError

from engine.dataset.loading import Loading
from engine.errors import SceneError
from engine.plain_files import is_there, require_plain_file

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".ppm", ".tga")
_UNREADABLE_SUFFIXES = (".exr", ".hdr", ".heic", ".heif", ".avif", ".dng", ".nef", ".cr2", ".arw")
_SIDE_FOLDERS = ("mask", "masks", "depth", "depths", "normal", "normals")
_SIDE_NAMES = ("_depth", "_normal", "_normals", "_mask", ".mask", "_albedo", "_alpha")
_MASK_NAMES = ("_mask", ".mask")  # photo_mask.png, photo_mask_0.png, photo.jpg.mask.png
_ORIENTATION = 0x0112
# What Pillow raises for damaged files, as met by cutting and changing bytes.
DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    TypeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)
Image.MAX_IMAGE_PIXELS = 1_000_000_000  # Pillow's own limit is less than cameras make today
TURNING_ORIENTATIONS = (5, 6, 7, 8)  # EXIF values that swap width and height


class Match(Enum):
    """How the file of a name was found."""

    EXACT = "as named"
    FOLDED = "in other letters (upper, lower, accents)"
    SUFFIX = "with an extension added"
    STEM = "by its stem, with another extension"
    BASE_NAME = "by its base name, in another folder"


@dataclasses.dataclass(frozen=True)
class PhotoHeader:
    """What can be known of a photo without decoding it."""

    width: int  # of the file, before any rotation
    height: int
    orientation: int  # EXIF's, 1 where unsaid
    has_alpha: bool

    @property
    def turns(self) -> bool:
        """Whether its EXIF orientation swaps width and height."""
        return self.orientation in TURNING_ORIENTATIONS


def read_header(path: Path) -> PhotoHeader:
    """Size, orientation and transparency; raises SceneError with the decoder's reason."""
    try:
        require_plain_file(path)
        with Image.open(path) as image:
            alpha = image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info
            # Of a PNG, getexif decodes the whole picture unless the chunk came before it.
            unsaid = image.format == "PNG" and "exif" not in image.info
            orientation = 1 if unsaid else image.getexif().get(_ORIENTATION, 1)
            size = image.size
    except DECODER_ERRORS as error:
        raise decoding_error(path, error) from error
    return PhotoHeader(*size, orientation if orientation in range(1, 9) else 1, alpha)


def decoding_error(path: Path, error: Exception) -> SceneError:
    """The error for a photo that cannot be read or decoded, with the decoder's own reason."""
    if isinstance(error, OSError) and error.strerror:
        return SceneError(f"{path} cannot be read: {error.strerror}.", path=path)
    is_unknown = isinstance(error, UnidentifiedImageError)
    reason = "it is in no picture format known here" if is_unknown else str(error)
    return SceneError(
        f"{path} cannot be decoded: {reason}. Copy it again or convert it to JPEG or PNG.",
        path=path,
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.parent / path.stem)


class PhotoFolder:
    """The photos below a folder, listed once; hidden folders and masks are passed over."""

    def __init__(self, folder: Path, loading: Loading) -> None:
        self.folder = folder
        self.names = sorted(_list(folder, loading))
        self._by_folded = _unique({name: _folded(name) for name in self.names})
        self._by_stem = _unique({name: _folded(_stem(name)) for name in self.names})
        self._by_base = _unique({name: _folded(PurePosixPath(name).name) for name in self.names})
        self._by_base_stem = _unique(
            {name: _folded(PurePosixPath(name).stem) for name in self.names}
        )

    def find(self, name: str) -> tuple[Path, Match] | None:
        """The file for a name of a pose file, or None; ambiguous matches count as none."""
        wanted = PurePosixPath(name)
        direct = self.folder / name  # an absolute name stays absolute
        if is_photo_there(direct):
            return direct, Match.EXACT
        for suffix in PHOTO_SUFFIXES:
            longer = Path(f"{direct}{suffix}")
            if is_photo_there(longer):
                return longer, Match.SUFFIX
        attempts = (
            (self._by_folded, _folded(name), Match.FOLDED),
            (self._by_stem, _folded(name), Match.SUFFIX),
            (self._by_stem, _folded(_stem(name)), Match.STEM),
            (self._by_base, _folded(wanted.name), Match.BASE_NAME),
            (self._by_base_stem, _folded(wanted.name), Match.BASE_NAME),
            (self._by_base_stem, _folded(wanted.stem), Match.BASE_NAME),
        )
        for table, key, how in attempts:
            if key in table:
                return self.folder / table[key], how
        return None

    def relative_name(self, path: Path) -> str:
        """A photo's name below this folder, or its whole path when it lies elsewhere."""
        try:
            return path.relative_to(self.folder).as_posix()
        except ValueError:
            return path.as_posix()


def _unique(keys: dict[str, str]) -> dict[str, str]:
    """The names by key, without the keys that several names share."""
    result: dict[str, str] = {}
    shared: set[str] = set()
    for name, key in keys.items():
        if key in result:
            shared.add(key)
        result[key] = name
    return {key: name for key, name in result.items() if key not in shared}


def _list(folder: Path, loading: Loading) -> list[str]:
    names: list[str] = []
    for parent, folders, files in os.walk(folder):
        loading.poll()
        folders[:] = [name for name in folders if not _is_aside(name)]
        inside = Path(parent).relative_to(folder)
        names += [(inside / name).as_posix() for name in files if is_photo_name(name)]
    return names


def _is_aside(name: str) -> bool:
    return name.startswith(".") or name.lower() in _SIDE_FOLDERS


def is_photo_there(path: Path) -> bool:
    """Whether the file exists; one whose name is longer than any file's does not."""
    try:
        return is_there(path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def is_photo_name(name: str) -> bool:
    """Whether a file name is a photo's: a picture, not hidden, no mask or depth map."""
    path = PurePosixPath(name)
    if path.name.startswith(".") or any(mark in path.stem.lower() for mark in _SIDE_NAMES):
        return False
    return path.suffix.lower() in PHOTO_SUFFIXES + _UNREADABLE_SUFFIXES


def is_mask_name(name: str) -> bool:
    """Whether a file name is that of a mask that lies beside its photo."""
    path = PurePosixPath(name)
    is_marked = any(mark in path.stem.lower() for mark in _MASK_NAMES)
    return is_marked and not name.startswith(".") and path.suffix.lower() in PHOTO_SUFFIXES
