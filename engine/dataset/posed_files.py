"""What a pose file says, before anything is made of it: the common result of all readers.

Everything is in the coordinates of the files and in float64; cameras have OpenCV axes. The files
named here need not exist: `engine.dataset.load` looks for them.
"""

import dataclasses
import math
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8

from engine.dataset.scene import Distortion, Finding


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """Which sparse points were seen where in one photo, by the program that made the poses."""

    pixels: Float[np.ndarray, "n 2"]
    points: Int[np.ndarray, "n"]  # rows of PosedFiles.points


@dataclasses.dataclass(frozen=True)
class LensGuess:
    """What a pose file says of a lens that does not say how large its photos are.

    Fields of view are in radians, the rest in pixels; at least one of the first four is given.
    """

    model: str
    field_x: float | None
    field_y: float | None
    focal_x: float | None
    focal_y: float | None
    center_x: float | None
    center_y: float | None
    extras: tuple[float, ...]

    def lens(self, width: int, height: int) -> Distortion:
        """The lens for a photo of that size; square pixels and a centred axis where unsaid."""
        fx = self.focal_x or _focal(width, self.field_x)
        fy = self.focal_y or _focal(height, self.field_y)
        cx = width / 2 if self.center_x is None else self.center_x
        cy = height / 2 if self.center_y is None else self.center_y
        return Distortion(self.model, (fx or fy, fy or fx, cx, cy, *self.extras), width, height)


def _focal(size: int, field: float | None) -> float:
    """The focal length in pixels that sees `field` radians over `size` pixels, 0 if unknown."""
    return 0.0 if field is None else size / (2 * math.tan(field / 2))


@dataclasses.dataclass(frozen=True, eq=False)
class PosedFile:
    """One photo as a pose file names it."""

    name: str  # as written there, with forward slashes
    world_to_camera: Float[np.ndarray, "4 4"]
    lens: Distortion | LensGuess
    held_out: bool | None = None  # None: the rule of every n-th name decides
    observations: Observations | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class PosedFiles:
    """All photos of one pose file (or a set of them) and the sparse points that belong to it."""

    format: str  # for people: "COLMAP, binary", "transforms.json", "Blender"
    source: Path  # the model folder or the JSON file
    photos: tuple[PosedFile, ...]
    photo_folders: tuple[Path, ...]  # where to look for the photos, the likeliest first
    points: Float[np.ndarray, "n 3"]
    point_colors: UInt8[np.ndarray, "n 3"]
    findings: tuple[Finding, ...] = ()
    masks: int = 0  # how many masks the poses name
    random_half_size: float | None = None
