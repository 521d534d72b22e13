"""COLMAP's binary model files: cameras.bin, images.bin, points3D.bin (little-endian).

The layout is the one of COLMAP's documentation, "Output format". Errors name the file, the byte
and what should have been there.
"""

import struct
from pathlib import Path

import numpy as np

from engine.dataset.colmap_model import (
    ModelImage,
    ModelPoints,
    check_pose,
    make_lens,
    unknown_model,
)
from engine.dataset.lenses import MODELS_BY_IDENTIFIER
from engine.dataset.loading import Loading
from engine.dataset.scene import Distortion, Finding
from engine.errors import SceneError
from engine.plain_files import require_plain_file

_MAX_NAME = 4096  # bytes; no file system allows longer ones, so the file is damaged
_OBSERVATION = np.dtype([("xy", "<f8", 2), ("point", "<i8")])
_POINT = np.dtype(
    [("id", "<u8"), ("xyz", "<f8", 3), ("rgb", "u1", 3), ("error", "<f8"), ("track", "<u8")]
)
_REMEDY = "Copy it again or write the model anew."


class _Reader:
    """Takes values from a file's bytes; `what` says what is being read, for the errors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.what = "the number of entries"
        self.position = 0
        try:
            require_plain_file(path)
            self.data = path.read_bytes()
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}."
            raise SceneError(message, path=path) from error

    def need(self, size: int) -> int:
        """Steps over `size` bytes and returns where they begin."""
        start = self.position
        if start + size > len(self.data):
            raise SceneError(
                f"{self.path} is cut short: {self.what} needs {size} bytes at byte {start}, the "
                f"file ends at byte {len(self.data)}. {_REMEDY}",
                path=self.path,
                value=start,
            )
        self.position += size
        return start

    def integers(self, layout: str) -> tuple[int, ...]:
        """The integers of a struct layout (without byte order)."""
        return struct.unpack_from("<" + layout, self.data, self.need(struct.calcsize("<" + layout)))

    def doubles(self, count: int) -> tuple[float, ...]:
        """So many float64 values."""
        return struct.unpack_from(f"<{count}d", self.data, self.need(8 * count))

    def count(self, smallest_entry: int) -> int:
        """A number of entries, refused when the rest of the file cannot hold so many."""
        (number,) = self.integers("Q")
        rest = len(self.data) - self.position
        if number * smallest_entry > rest:
            raise SceneError(
                f"{self.path} is cut short or damaged: {self.what} at byte {self.position - 8} is "
                f"{number}, too many for the {rest} bytes that follow. {_REMEDY}",
                path=self.path,
                value=number,
            )
        return number

    def text(self) -> str:
        """A string that ends with a zero byte."""
        end = self.data.find(b"\0", self.position, self.position + _MAX_NAME)
        if end < 0:
            raise SceneError(
                f"{self.path} is cut short or damaged: {self.what} at byte {self.position} has no "
                f"end. {_REMEDY}",
                path=self.path,
                value=self.position,
            )
        raw = self.data[self.position : end]
        self.position = end + 1
        return raw.decode("utf-8", errors="replace")


def read_cameras(path: Path) -> dict[int, Distortion | SceneError]:
    """The lenses by camera id, or in their place why they cannot be used."""
    reader = _Reader(path)
    cameras: dict[int, Distortion | SceneError] = {}
    for index in range(reader.count(24)):
        reader.what = f"camera {index + 1}"
        start = reader.position
        identifier, model_id, width, height = reader.integers("iiQQ")
        place = f"{path}, byte {start}, camera {identifier}"
        model = MODELS_BY_IDENTIFIER.get(model_id)
        if model is None:
            raise unknown_model(path, place, f"with id {model_id}")
        values = reader.doubles(model.parameter_count)
        try:
            cameras[identifier] = make_lens(path, place, model.name, values, width, height)
        except SceneError as error:
            cameras[identifier] = error
    return cameras


def read_images(path: Path, loading: Loading) -> tuple[list[ModelImage], list[Finding]]:
    """The poses in file order, and a finding for each that makes no sense."""
    reader = _Reader(path)
    images: list[ModelImage] = []
    findings: list[Finding] = []
    for index in range(reader.count(73)):
        loading.poll()
        reader.what = f"image {index + 1}"
        start = reader.position
        (identifier,) = reader.integers("i")
        pose = np.array(reader.doubles(7))
        (camera,) = reader.integers("i")
        reader.what = f"the name of image {index + 1}"
        name = reader.text().replace("\\", "/")
        reader.what = f"the number of 2-D points of image {index + 1} ({name})"
        count = reader.count(_OBSERVATION.itemsize)
        offset = reader.need(count * _OBSERVATION.itemsize)
        rows = np.frombuffer(reader.data, dtype=_OBSERVATION, count=count, offset=offset)
        try:
            check_pose(path, f"{path}, byte {start}, image {name}", pose[:4], pose[4:])
        except SceneError as error:
            message = f"{error} The photo is left out."
            findings.append(Finding("pose_invalid", "warning", name, message))
            continue
        seen = rows[rows["point"] >= 0]
        pixels, points = seen["xy"].astype(np.float64), seen["point"].astype(np.int64)
        images.append(ModelImage(identifier, pose[:4], pose[4:], camera, name, pixels, points))
    return images, findings


def read_points(path: Path, loading: Loading) -> ModelPoints:
    """The sparse points; their tracks are passed over, for the images hold the same facts."""
    reader = _Reader(path)
    count = reader.count(_POINT.itemsize)
    entries: list[bytes] = []
    track_length = struct.Struct("<Q")
    for index in range(count):
        if index % 65_536 == 0:
            loading.poll()
        reader.what = f"point {index + 1} of {count}"
        start = reader.need(_POINT.itemsize)
        entries.append(reader.data[start : reader.position])
        reader.need(8 * track_length.unpack_from(reader.data, start + _POINT.itemsize - 8)[0])
    rows = np.frombuffer(b"".join(entries), dtype=_POINT)
    return ModelPoints(rows["id"].astype(np.int64), rows["xyz"].astype(np.float64), rows["rgb"])
