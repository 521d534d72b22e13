"""What COLMAP's two kinds of model file have in common."""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8

from engine.dataset.lenses import MODELS_BY_NAME
from engine.dataset.scene import LARGEST_COORDINATE, Distortion
from engine.errors import SceneError

LARGEST_IDENTIFIER = 2**62
_LARGEST_SIDE = 1_000_000  # pixels; more is damage


@dataclasses.dataclass(frozen=True, eq=False)
class ModelImage:
    """One entry of images.bin or images.txt; only 2-D points that belong to a 3-D point."""

    identifier: int
    quaternion: Float[np.ndarray, "4"]  # (w, x, y, z), world to camera
    translation: Float[np.ndarray, "3"]
    camera: int
    name: str  # with forward slashes
    pixels: Float[np.ndarray, "n 2"]
    point_ids: Int[np.ndarray, "n"]


@dataclasses.dataclass(frozen=True, eq=False)
class ModelPoints:
    """The sparse points of a model."""

    ids: Int[np.ndarray, "n"]
    positions: Float[np.ndarray, "n 3"]
    colors: UInt8[np.ndarray, "n 3"]


def unknown_model(path: Path, place: str, found: str) -> SceneError:
    """The error for a camera model that is not COLMAP's or cannot be made a pinhole."""
    return SceneError(
        f"{place}: found the camera model {found}; expected one of {', '.join(MODELS_BY_NAME)}. "
        "Undistort the photos with COLMAP (image_undistorter) and open the result.",
        path=path,
        value=found,
    )


def make_lens(
    path: Path, place: str, model: str, values: tuple[float, ...], width: int, height: int
) -> Distortion:
    """A lens whose numbers make sense; raises SceneError that begins with `place`."""
    if model not in MODELS_BY_NAME:
        raise unknown_model(path, place, model)
    expected = MODELS_BY_NAME[model].parameter_count
    if len(values) != expected:
        raise SceneError(
            f"{place}: found {len(values)} parameters; the model {model} has {expected}.",
            path=path,
            value=values,
        )
    focal = values[: MODELS_BY_NAME[model].focal_count]
    usable = bool((np.abs(values) < LARGEST_COORDINATE).all())  # false for NaN too
    sides = (width, height)
    if not (min(sides) >= 1 and max(sides) <= _LARGEST_SIDE and usable and min(focal) > 0):
        raise SceneError(
            f"{place}: found a size of {width}x{height} and the parameters {list(values)}; "
            "expected 1 to a million pixels a side, finite parameters of a sensible size and "
            "positive focal lengths.",
            path=path,
            value=values,
        )
    return Distortion(model, values, width, height)


def check_pose(
    path: Path,
    place: str,
    quaternion: Float[np.ndarray, "4"],
    translation: Float[np.ndarray, "3"],
) -> None:
    """Raises SceneError when a pose is not finite or its quaternion is zero."""
    pose = np.concatenate([quaternion, translation])
    usable = bool((np.abs(pose) < LARGEST_COORDINATE).all())  # false for NaN too
    if not usable or np.linalg.norm(quaternion) < 1e-9:
        raise SceneError(
            f"{place}: found the quaternion {quaternion.tolist()} and the translation "
            f"{translation.tolist()}; expected finite numbers of a sensible size and a "
            "quaternion that is not zero.",
            path=path,
        )
