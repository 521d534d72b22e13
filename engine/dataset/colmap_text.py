"""COLMAP's text model files: cameras.txt, images.txt, points3D.txt.

The layout is the one of COLMAP's documentation, "Output format". A name is everything after the
camera id, spaces included. Each image has two lines; the second, its 2-D points, may be empty.
Errors name the file, the line and what should have been there.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.dataset.colmap_model import (
    LARGEST_IDENTIFIER,
    ModelImage,
    ModelPoints,
    check_pose,
    make_lens,
)
from engine.dataset.loading import Loading
from engine.dataset.scene import Distortion
from engine.errors import SceneError

_IMAGE_LINE = "IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME"
_CAMERA_LINE = "CAMERA_ID MODEL WIDTH HEIGHT PARAMS..."
_POINT_LINE = "POINT3D_ID X Y Z R G B ERROR TRACK..."


def _lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines without the comments; blank ones are kept."""
    try:
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


def read_cameras(path: Path) -> dict[int, Distortion]:
    """The lenses by camera id."""
    cameras: dict[int, Distortion] = {}
    for number, line in _lines(path):
        words = line.split()
        if not words:
            continue
        try:
            identifier, width, height = int(words[0]), int(words[2]), int(words[3])
            values = tuple(float(word) for word in words[4:])
        except (ValueError, IndexError) as error:
            raise _bad_line(path, number, line, f"'{_CAMERA_LINE}'") from error
        place = f"{path}, line {number}, camera {identifier}"
        cameras[identifier] = make_lens(path, place, words[1], values, width, height)
    return cameras


def read_images(path: Path, loading: Loading) -> list[ModelImage]:
    """The poses in file order."""
    images: list[ModelImage] = []
    lines = iter(_lines(path))
    for number, line in lines:
        loading.poll()
        if not line.strip():
            continue
        image = _parse_image(path, number, line, lines)
        images.append(image)
    return images


def _parse_image(
    path: Path, number: int, line: str, lines: Iterator[tuple[int, str]]
) -> ModelImage:
    words = line.split(maxsplit=9)
    try:
        identifier, camera = int(words[0]), int(words[8])
        pose = np.array([float(word) for word in words[1:8]])
        name = words[9].strip()
    except (ValueError, IndexError) as error:
        raise _bad_line(path, number, line, f"'{_IMAGE_LINE}'") from error
    check_pose(path, f"{path}, line {number}, image {name}", pose[:4], pose[4:])
    number, line = next(lines, (number, ""))  # a last image without points may lack its line
    try:
        values = np.array(line.split(), dtype=np.float64)
        triples = values.reshape(-1, 3)
    except ValueError as error:
        expected = f"the 2-D points of {name} as 'X Y POINT3D_ID', any number of them or none"
        raise _bad_line(path, number, line, expected) from error
    seen = triples[(triples[:, 2] >= 0) & (triples[:, 2] < LARGEST_IDENTIFIER)]
    points = seen[:, 2].astype(np.int64)
    return ModelImage(identifier, pose[:4], pose[4:], camera, name, seen[:, :2], points)


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
