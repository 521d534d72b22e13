"""COLMAP's camera models: their parameters, and how each bends a ray on its way to the picture.

A lens maps normalised coordinates (x/z, y/z of a point before the camera) to pixels of the file.
Pixel centres are at +0.5, as everywhere. Formulas: the COLMAP documentation of camera models,
OpenCV's calibration page (OPENCV, FULL_OPENCV, fish-eye), Devernay and Faugeras 2001 (FOV),
Fitzgibbon 2001 (division), Project Aria (RAD_TAN_THIN_PRISM_FISHEYE), Khomutenko 2016 (EUCM).
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from engine.dataset.scene import Distortion

Points = Float[np.ndarray, "n 2"]
_Extras = tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class LensModel:
    """One of COLMAP's camera models; `distort` maps normalised points (n, 2) to bent ones."""

    name: str
    identifier: int
    focal_count: int  # 1: f, 2: fx and fy
    extra_count: int  # parameters after the principal point
    distort: Callable[[Points, _Extras], Points]
    always_bends: bool = False  # bends even where every extra parameter is 0

    @property
    def parameter_count(self) -> int:
        """How many numbers a file gives for this model."""
        return self.focal_count + 2 + self.extra_count


def _straight(points: Points, extras: _Extras) -> Points:
    return points


def _polynomial(points: Points, extras: _Extras) -> Points:
    """Radial factor 1 + k1 r^2 + k2 r^4 + ..., of as many terms as there are extras."""
    r2 = np.sum(points * points, axis=1, keepdims=True)
    factor = np.ones_like(r2)
    power = r2
    for k in extras:
        factor = factor + k * power
        power = power * r2
    return np.asarray(points * factor)


def _tangential(points: Points, p1: float, p2: float) -> Points:
    x, y = points[:, 0], points[:, 1]
    r2 = x * x + y * y
    dx = 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    dy = 2 * p2 * x * y + p1 * (r2 + 2 * y * y)
    return np.stack([dx, dy], axis=1)


def _opencv(points: Points, extras: _Extras) -> Points:
    k1, k2, p1, p2 = extras
    return np.asarray(_polynomial(points, (k1, k2)) + _tangential(points, p1, p2))


def _full_opencv(points: Points, extras: _Extras) -> Points:
    k1, k2, p1, p2, k3, k4, k5, k6 = extras
    r2 = np.sum(points * points, axis=1, keepdims=True)
    above = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
    below = 1 + r2 * (k4 + r2 * (k5 + r2 * k6))
    return np.asarray(points * (above / below) + _tangential(points, p1, p2))


def _equidistant(points: Points, extras: _Extras = ()) -> Points:
    """The ideal fish-eye: the distance from the centre is the angle from the axis."""
    r = np.sqrt(np.sum(points * points, axis=1, keepdims=True))
    small = r < 1e-8
    safe = np.where(small, 1.0, r)
    return np.asarray(points * np.where(small, 1.0, np.arctan(safe) / safe))


def _fisheye(points: Points, extras: _Extras) -> Points:
    return np.asarray(_polynomial(_equidistant(points), extras))


def _thin_prism(points: Points, extras: _Extras) -> Points:
    k1, k2, p1, p2, k3, k4, sx1, sy1 = extras
    bent = _equidistant(points)
    r2 = np.sum(bent * bent, axis=1, keepdims=True)
    prism = r2 * np.array([[sx1, sy1]])
    return np.asarray(_polynomial(bent, (k1, k2, k3, k4)) + _tangential(bent, p1, p2) + prism)


def _radial_tangential_thin_prism(points: Points, extras: _Extras) -> Points:
    k, (p0, p1), (s0, s1, s2, s3) = extras[:6], extras[6:8], extras[8:]
    bent = _polynomial(_equidistant(points), k)
    r2 = np.sum(bent * bent, axis=1, keepdims=True)
    prism = r2 * np.array([[s0, s2]]) + r2 * r2 * np.array([[s1, s3]])
    return np.asarray(bent + _tangential(bent, p1, p0) + prism)


def _field_of_view(points: Points, extras: _Extras) -> Points:
    (omega,) = extras
    if abs(omega) < 1e-6:  # the limit of the formula below
        return points
    r = np.sqrt(np.sum(points * points, axis=1, keepdims=True))
    slope = 2 * np.tan(omega / 2)
    small = r < 1e-8
    safe = np.where(small, 1.0, r)
    return np.asarray(
        points * np.where(small, slope / omega, np.arctan(safe * slope) / (safe * omega))
    )


def _division(points: Points, extras: _Extras) -> Points:
    (k,) = extras
    r2 = np.sum(points * points, axis=1, keepdims=True)
    inside = 1 - 4 * k * r2  # below 0: no point of the picture belongs to this ray
    return np.asarray(points * (2 / (1 + np.sqrt(np.where(inside < 0, np.nan, inside)))))


def _enhanced_unified(points: Points, extras: _Extras) -> Points:
    alpha, beta = extras
    inside = beta * np.sum(points * points, axis=1, keepdims=True) + 1  # below 0: as above
    root = np.sqrt(np.where(inside < 0, np.nan, inside))
    return np.asarray(points / (alpha * root + (1 - alpha)))


_MODELS = (
    LensModel("SIMPLE_PINHOLE", 0, 1, 0, _straight),
    LensModel("PINHOLE", 1, 2, 0, _straight),
    LensModel("SIMPLE_RADIAL", 2, 1, 1, _polynomial),
    LensModel("RADIAL", 3, 1, 2, _polynomial),
    LensModel("OPENCV", 4, 2, 4, _opencv),
    LensModel("OPENCV_FISHEYE", 5, 2, 4, _fisheye, always_bends=True),
    LensModel("FULL_OPENCV", 6, 2, 8, _full_opencv),
    LensModel("FOV", 7, 2, 1, _field_of_view),
    LensModel("SIMPLE_RADIAL_FISHEYE", 8, 1, 1, _fisheye, always_bends=True),
    LensModel("RADIAL_FISHEYE", 9, 1, 2, _fisheye, always_bends=True),
    LensModel("THIN_PRISM_FISHEYE", 10, 2, 8, _thin_prism, always_bends=True),
    LensModel(
        "RAD_TAN_THIN_PRISM_FISHEYE", 11, 2, 12, _radial_tangential_thin_prism, always_bends=True
    ),
    LensModel("SIMPLE_DIVISION", 12, 1, 1, _division),
    LensModel("DIVISION", 13, 2, 1, _division),
    LensModel("SIMPLE_FISHEYE", 14, 1, 0, _equidistant, always_bends=True),
    LensModel("FISHEYE", 15, 2, 0, _equidistant, always_bends=True),
    LensModel("EUCM", 16, 2, 2, _enhanced_unified),
)
MODELS_BY_NAME = {model.name: model for model in _MODELS}
MODELS_BY_IDENTIFIER = {model.identifier: model for model in _MODELS}


@dataclasses.dataclass(frozen=True)
class Intrinsics:
    """Focal lengths and principal point in pixels."""

    fx: float
    fy: float
    cx: float
    cy: float


def intrinsics_of(lens: Distortion) -> Intrinsics:
    """The focal lengths and principal point among the parameters of a lens."""
    values = lens.parameters
    if MODELS_BY_NAME[lens.model].focal_count == 1:
        return Intrinsics(values[0], values[0], values[1], values[2])
    return Intrinsics(*values[:4])


def extras_of(lens: Distortion) -> tuple[float, ...]:
    """The distortion parameters of a lens, those after the principal point."""
    return lens.parameters[MODELS_BY_NAME[lens.model].focal_count + 2 :]


def is_pinhole(lens: Distortion) -> bool:
    """Whether the lens bends nothing: no distortion in the model, or all of it zero."""
    model = MODELS_BY_NAME[lens.model]
    if model.name == "EUCM":
        return extras_of(lens)[0] == 0.0
    return not model.always_bends and not any(extras_of(lens))


def to_pixels(lens: Distortion, normalized: Points) -> Points:
    """Pixels of the file (n, 2) at which rays (x/z, y/z) of shape (n, 2) arrive.

    NaN where the model sends a ray nowhere.
    """
    inner = intrinsics_of(lens)
    bent = MODELS_BY_NAME[lens.model].distort(normalized, extras_of(lens))
    return np.asarray(bent * [inner.fx, inner.fy] + [inner.cx, inner.cy])


def resized_lens(lens: Distortion, width: int, height: int) -> Distortion:
    """The same lens for a file of another size; one focal length stays one (their mean)."""
    sx, sy = width / lens.width, height / lens.height
    focal_count = MODELS_BY_NAME[lens.model].focal_count
    scales = [(sx + sy) / 2] if focal_count == 1 else [sx, sy]
    factors = [*scales, sx, sy, *(1.0 for _ in extras_of(lens))]
    values = tuple(value * factor for value, factor in zip(lens.parameters, factors, strict=True))
    return Distortion(lens.model, values, width, height)
