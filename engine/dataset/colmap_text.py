"""COLMAP's text model files: cameras.txt, images.txt, points3D.txt.

The layout is the one of COLMAP's documentation, "Output format". A name is everything after the
camera id, spaces included. Each image has two lines; the second, its 2-D points, may be empty.
Errors name the file, the line and what should have been there.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from engine.dataset.colmap_model import (
    LARGEST_IDENTIFIER,
    ModelImage,
    ModelPoints,
    check_pose,
    make_lens,
)
from engine.dataset.loading import Loading
from engine.dataset.scene import Distortion, Finding
from engine.errors import SceneError
from engine.plain_files import require_plain_file

_IMAGE_LINE = "IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME"
_CAMERA_LINE = "CAMERA_ID MODEL WIDTH HEIGHT PARAMS..."
_POINT_LINE = "POINT3D_ID X Y Z R G B ERROR TRACK..."


def _lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines without the comments; blank ones are kept."""
    try:
        require_plain_file(path)
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise SceneError(message, path=path) from error
    numbered = enumerate(text.split("\n"), start=1)
    return [(n, line.rstrip("\r")) for n, line in numbered if not line.lstrip().startswith("#")]


def _bad_line(path: Path, number: int, line: str, expected: str) -> SceneError:
    found = line.strip()[:120]
    message = f"{path}, line {number}: found {found!r}; expected {expected}."
    return SceneError(message, path=path, value=number)


def read_cameras(path: Path) -> dict[int, Distortion | SceneError]:
    """The lenses by camera id, or in their place why they cannot be used."""
    cameras: dict[int, Distortion | SceneError] = {}
    for number, line in _lines(path):
        words = line.split()
        if not words:
            continue
        wrong = _bad_line(path, number, line, f"'{_CAMERA_LINE}'")
        try:
            identifier = int(words[0])
        except ValueError as error:
            raise wrong from error
        place = f"{path}, line {number}, camera {identifier}"
        try:
            width, height = int(words[2]), int(words[3])
            values = tuple(float(word) for word in words[4:])
            cameras[identifier] = make_lens(path, place, words[1], values, width, height)
        except SceneError as error:
            cameras[identifier] = error
        except (ValueError, IndexError):
            cameras[identifier] = wrong
    return cameras


def read_images(path: Path, loading: Loading) -> tuple[list[ModelImage], list[Finding]]:
    """The poses in file order, and a finding for each line that cannot be used.

    An image's second line is passed over whatever it holds, unless it is an image's first line:
    where one is missing, only its own image suffers.
    """
    images: list[ModelImage] = []
    findings: list[Finding] = []
    lines = _lines(path)
    place = 0
    while place < len(lines):
        loading.poll()
        number, line = lines[place]
        place += 1
        if not line.strip():
            continue
        points = (number, "")  # a last image without points may lack its line
        if place < len(lines) and not _is_image_line(lines[place][1]):
            points = lines[place]
            place += 1
        name = f"{path.name}, line {number}"
        code = "entry_invalid"
        try:
            identifier, pose, camera, name = _parse_image(path, number, line)
            code = "pose_invalid"
            check_pose(path, f"{path}, line {number}, image {name}", pose[:4], pose[4:])
        except SceneError as error:
            findings.append(Finding(code, "warning", name, f"{error} The photo is left out."))
            continue
        pixels, ids = np.empty((0, 2)), np.empty(0, np.int64)
        try:
            pixels, ids = _parse_observations(path, *points, name)
        except SceneError as error:
            message = f"{error} The check goes without them."
            findings.append(Finding("observations_invalid", "warning", name, message))
        images.append(ModelImage(identifier, pose[:4], pose[4:], camera, name, pixels, ids))
    return images, findings


def _parse_image(
    path: Path, number: int, line: str
) -> tuple[int, Float[np.ndarray, "7"], int, str]:
    """Image id, quaternion and translation, camera id and name."""
    try:
        return _image_words(line)
    except (ValueError, IndexError) as error:
        raise _bad_line(path, number, line, f"'{_IMAGE_LINE}'") from error


def _image_words(line: str) -> tuple[int, Float[np.ndarray, "7"], int, str]:
    words = line.split(maxsplit=9)
    identifier, camera = int(words[0]), int(words[8])
    pose = np.array([float(word) for word in words[1:8]])
    return identifier, pose, camera, words[9].strip().replace("\\", "/")


def _is_image_line(line: str) -> bool:
    """Whether a line reads like the first of an image: nine numbers, then a name."""
    try:
        name = _image_words(line)[-1]
    except (ValueError, IndexError):
        return False
    try:
        _numbers(name)
    except ValueError:
        return True
    return False


def _numbers(line: str) -> Float[np.ndarray, "n"]:
    return np.array(line.split(), dtype=np.float64)


def _parse_observations(
    path: Path, number: int, line: str, name: str
) -> tuple[Float[np.ndarray, "n 2"], Int[np.ndarray, "n"]]:
    """Pixels and point ids of the 2-D points that belong to a 3-D point."""
    try:
        triples = _numbers(line).reshape(-1, 3)
    except ValueError as error:
        expected = f"the 2-D points of {name} as 'X Y POINT3D_ID', any number of them or none"
        raise _bad_line(path, number, line, expected) from error
    seen = triples[(triples[:, 2] >= 0) & (triples[:, 2] < LARGEST_IDENTIFIER)]
    return seen[:, :2], seen[:, 2].astype(np.int64)


def read_points(path: Path, loading: Loading) -> ModelPoints:
    """The sparse points; their tracks are passed over, for the images hold the same facts."""
    ids: list[int] = []
    positions: list[list[float]] = []
    colors: list[list[int]] = []
    for index, (number, line) in enumerate(_lines(path)):
        if index % 16_384 == 0:
            loading.poll()
        words = line.split(maxsplit=8)
        if not words:
            continue
        try:
            ids.append(int(words[0]))
            positions.append([float(words[1]), float(words[2]), float(words[3])])
            color = [int(words[4]), int(words[5]), int(words[6])]
            float(words[7])
        except (ValueError, IndexError) as error:
            raise _bad_line(path, number, line, f"'{_POINT_LINE}'") from error
        if not 0 <= ids[-1] < LARGEST_IDENTIFIER:
            raise _bad_line(path, number, line, f"'{_POINT_LINE}' with an id from 0 to 2^62")
        if min(color) < 0 or max(color) > 255:
            raise _bad_line(path, number, line, f"'{_POINT_LINE}' with colours from 0 to 255")
        colors.append(color)
    return ModelPoints(
        np.array(ids, dtype=np.int64),
        np.array(positions, dtype=np.float64).reshape(-1, 3),
        np.array(colors, dtype=np.uint8).reshape(-1, 3),
    )
