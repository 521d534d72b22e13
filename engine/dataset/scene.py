"""A scene: posed photos and sparse points, whatever file format they came from.

Readers (`colmap`, `transforms_json`) fill a `Scene`; nothing here opens a picture. The scene is
already in the engine's frame: centred, and scaled only when its size would upset float32 or the
near plane. `SceneFrame` takes results back to the coordinates of the files.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, UInt8

from engine.cameras import Camera

LARGEST_COORDINATE = 1e12  # beyond, a number in a file is damage and not a place

Severity = Literal["ok", "warning", "error"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing the check of a scene found out; `file` is "" where no single file is meant."""

    code: str
    severity: Severity
    file: str
    message: str


@dataclasses.dataclass(frozen=True)
class Distortion:
    """A COLMAP camera model with all its parameters, as the file has them, at the file's size."""

    model: str  # COLMAP's name, such as "OPENCV"
    parameters: tuple[float, ...]
    width: int
    height: int


@dataclasses.dataclass(frozen=True, eq=False)
class Photo:
    """One posed photo.

    `camera` is the pinhole camera to train with: undistorted, at training resolution, in the
    engine's frame. Decoding, rotating, undistorting and resizing the file to it is
    `engine.dataset.images.load_photo`'s job.
    """

    name: str  # as in the model, with its sub-folders
    path: Path
    camera: Camera
    distortion: Distortion | None  # None: the file is already a pinhole picture
    rotate_by_exif: bool
    held_out: bool


@dataclasses.dataclass(frozen=True)
class SceneFrame:
    """engine = (file - offset) * scale; poses and points alike."""

    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scale: float = 1.0

    def to_engine(self, points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
        """Points of the files in the engine's frame, in float64."""
        return (np.asarray(points, dtype=np.float64) - self.offset) * self.scale

    def to_file(self, points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
        """Points of the engine in the coordinates of the files, in float64."""
        return np.asarray(points, dtype=np.float64) / self.scale + self.offset


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Everything known about a scene before its photos are decoded."""

    name: str
    path: Path
    photos: tuple[Photo, ...]  # sorted by name
    points: Float[np.ndarray, "n 3"]  # engine's frame; may be empty
    point_colors: UInt8[np.ndarray, "n 3"]
    frame: SceneFrame
    findings: tuple[Finding, ...]
    has_alpha: bool
    # Half edge of the cube for a random start, round the files' origin and in their units; None:
    # what the training cameras see.
    random_half_size: float | None

    @property
    def training(self) -> tuple[Photo, ...]:
        """The photos to train on."""
        return tuple(photo for photo in self.photos if not photo.held_out)

    @property
    def held_out(self) -> tuple[Photo, ...]:
        """The photos that only measure."""
        return tuple(photo for photo in self.photos if photo.held_out)
