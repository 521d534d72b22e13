"""From a distorted photo to a pinhole one, in memory.

The pinhole camera is the largest upright rectangle of rays that all arrive inside the photo, so
that no pixel is black. Its focal lengths are the lens's own, so that the middle keeps its
sharpness, unless that would make far more pixels than the photo has (wide fish-eyes). The
mapping runs from the pinhole picture to the photo, which is the direction the formulas are in;
nothing is inverted but the place of one pixel.
"""

import dataclasses
import math
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float

from engine.dataset.lenses import Intrinsics, Points, intrinsics_of, is_pinhole, to_pixels
from engine.dataset.scene import Distortion
from engine.errors import SceneError

_ANGLES = 180  # directions in which the border of the photo is looked for
_STEPS = 80
_WIDEST = math.tan(math.radians(75.0))  # from the axis; a pinhole picture beyond is mostly corners
_MOST_PIXELS = 1.5  # times those of the photo
_MOST_NODE_STEP = 4  # pixels between exact values of the sampling grid
_NODE_FOCAL = 18  # pixels of focal length for a step of 1; the error goes as step^2 / focal


@dataclasses.dataclass(frozen=True)
class PinholeView:
    """The pinhole camera (without a pose) that a distorted photo is turned into."""

    width: int
    height: int
    intrinsics: Intrinsics
    kept_share: float  # of the photo's area that is still seen

    def rays(self, pixels: Points) -> Points:
        """Normalised coordinates (n, 2) of pixels (n, 2)."""
        inner = self.intrinsics
        return np.asarray((pixels - [inner.cx, inner.cy]) / [inner.fx, inner.fy])


@lru_cache(maxsize=4096)
def pinhole_view(lens: Distortion) -> PinholeView:
    """The pinhole camera for a lens; raises SceneError when its distortion makes no sense."""
    inner = intrinsics_of(lens)
    if is_pinhole(lens):
        return PinholeView(lens.width, lens.height, inner, 1.0)
    middle = _ray_of_middle(lens)
    left, top, right, bottom = _largest_rectangle(lens, middle)
    wide, high = (right - left) * inner.fx, (bottom - top) * inner.fy
    shrink = min(1.0, math.sqrt(_MOST_PIXELS * lens.width * lens.height / (wide * high)))
    fx, fy = inner.fx * shrink, inner.fy * shrink
    width, height = int(wide * shrink + 1e-6), int(high * shrink + 1e-6)
    if width < 1 or height < 1:
        raise _nonsense(lens, "leaves no picture")
    # What the rounding down takes away is taken from both sides alike.
    cx = -left * fx - (wide * shrink - width) / 2
    cy = -top * fy - (high * shrink - height) / 2
    view = PinholeView(width, height, Intrinsics(fx, fy, cx, cy), 0.0)
    return dataclasses.replace(view, kept_share=_kept_share(lens, view))


def _nonsense(lens: Distortion, what: str) -> SceneError:
    return SceneError(
        f"The lens {lens.model} with the parameters {list(lens.parameters)} at {lens.width}x"
        f"{lens.height} {what}. Its distortion was estimated badly; calibrate again, with a "
        "simpler model.",
        value=lens.parameters,
    )


def _is_inside(lens: Distortion, pixels: Points) -> np.ndarray:
    limit = [lens.width, lens.height]
    with np.errstate(invalid="ignore"):
        return np.asarray(((pixels >= 0) & (pixels <= limit)).all(axis=-1))


@np.errstate(over="ignore", invalid="ignore")  # of a lens that makes no sense, refused below
def _ray_of_middle(lens: Distortion) -> Points:
    """The ray (1, 2) that arrives in the middle of the photo, by Newton's method."""
    inner = intrinsics_of(lens)
    target = np.array([[lens.width / 2, lens.height / 2]])
    ray = (target - [inner.cx, inner.cy]) / [inner.fx, inner.fy]
    for _ in range(50):  # a handful of steps for any lens that can be used
        miss = to_pixels(lens, ray) - target
        if np.abs(miss).max() < 1e-3:
            return np.asarray(ray)
        if not np.isfinite(miss).all():
            break
        slope, determinant = _jacobian(lens, ray)
        if not abs(determinant[0]) > 1e-12:
            break
        ray = ray - np.linalg.solve(slope[0], miss[0])[None]
    raise _nonsense(lens, "sends no ray to the middle of the photo")


def _jacobian(lens: Distortion, rays: Points) -> tuple[np.ndarray, np.ndarray]:
    """The derivative (n, 2, 2) of pixels by rays, by differences, and its determinant (n,)."""
    delta = 1e-6
    columns = [
        (to_pixels(lens, rays + shift) - to_pixels(lens, rays - shift)) / (2 * delta)
        for shift in (np.array([[delta, 0.0]]), np.array([[0.0, delta]]))
    ]
    matrix = np.stack(columns, axis=2)
    determinant = matrix[:, 0, 0] * matrix[:, 1, 1] - matrix[:, 0, 1] * matrix[:, 1, 0]
    return matrix, determinant


def _reach(lens: Distortion, middle: Points, angles: np.ndarray) -> np.ndarray:
    """How far from the middle ray (n,) one may go in each direction (n,).

    The way ends where the photo does, or where the lens folds over, which a badly estimated
    polynomial does outside the points it was fitted to.
    """
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inner = intrinsics_of(lens)
    farthest = min(2 * _WIDEST, 4 * max(lens.width / inner.fx, lens.height / inner.fy))
    distances = np.linspace(0.0, farthest, _STEPS + 1)[1:]
    rays = middle + distances[:, None, None] * directions
    good = _is_good(lens, rays.reshape(-1, 2)).reshape(_STEPS, -1)
    first_bad = np.where(good.all(axis=0), _STEPS, np.argmin(good, axis=0))
    low = first_bad * farthest / _STEPS
    high = np.minimum(low + farthest / _STEPS, farthest)
    for _ in range(18):
        half = (low + high) / 2
        is_good = _is_good(lens, middle + half[:, None] * directions)
        low, high = np.where(is_good, half, low), np.where(is_good, high, half)
    return np.asarray(low)


def _is_good(lens: Distortion, rays: Points) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        inside = _is_inside(lens, to_pixels(lens, rays))
        unfolded = _jacobian(lens, rays)[1] > 0
        return np.asarray(inside & unfolded & (np.abs(rays) <= _WIDEST).all(axis=1))


def _largest_rectangle(lens: Distortion, middle: Points) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of the rays to keep."""
    angles = np.linspace(0.0, 2 * np.pi, _ANGLES, endpoint=False)
    reach = _reach(lens, middle, angles)
    border = middle + reach[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Each border ray belongs to the side of the photo that it leaves through. Where the lens folds
    # over before a side, none does; then that side is at first as far out as any border ray.
    offset = (to_pixels(lens, border) - [lens.width / 2, lens.height / 2]) / [
        lens.width,
        lens.height,
    ]
    sideways = np.abs(offset[:, 0]) > np.abs(offset[:, 1])
    x, y = border[:, 0], border[:, 1]
    rectangle = np.array(
        [
            np.max(x[sideways & (offset[:, 0] < 0)], initial=x.min()),
            np.max(y[~sideways & (offset[:, 1] < 0)], initial=y.min()),
            np.min(x[sideways & (offset[:, 0] > 0)], initial=x.max()),
            np.min(y[~sideways & (offset[:, 1] > 0)], initial=y.max()),
        ]
    )
    center = np.concatenate([middle[0], middle[0]])
    low, high = 0.0, 1.0
    if _is_good_rectangle(lens, rectangle):
        return _as_four(rectangle)
    for _ in range(14):  # to less than a tenth of a pixel
        half = (low + high) / 2
        if _is_good_rectangle(lens, center + half * (rectangle - center)):
            low = half
        else:
            high = half
    if low < 1e-3:
        raise _nonsense(lens, "leaves no picture")
    return _as_four(center + low * (rectangle - center))


def _as_four(values: np.ndarray) -> tuple[float, float, float, float]:
    left, top, right, bottom = (float(value) for value in values)
    return left, top, right, bottom


def _border_rays(left: float, top: float, right: float, bottom: float) -> Points:
    """Rays (n, 2) once around a rectangle."""
    along = np.linspace(0.0, 1.0, 65)[:-1]
    x, y = left + along * (right - left), top + along * (bottom - top)
    sides = [
        np.stack([x, np.full_like(x, top)], axis=1),
        np.stack([np.full_like(y, right), y], axis=1),
        np.stack([x[::-1] + (x[1] - x[0]), np.full_like(x, bottom)], axis=1),
        np.stack([np.full_like(y, left), y[::-1] + (y[1] - y[0])], axis=1),
    ]
    return np.concatenate(sides)


def _is_good_rectangle(lens: Distortion, rectangle: np.ndarray) -> bool:
    left, top, right, bottom = _as_four(rectangle)
    if left >= right or top >= bottom:
        return False
    # A hundredth of a pixel of slack, for the border was found by bisection.
    pixels = to_pixels(lens, _border_rays(left, top, right, bottom))
    limit = np.array([lens.width, lens.height])
    with np.errstate(invalid="ignore"):
        inside = bool(((pixels >= -0.01) & (pixels <= limit + 0.01)).all())
    return inside and bool((_jacobian(lens, _border_rays(left, top, right, bottom))[1] > 0).all())


def _kept_share(lens: Distortion, view: PinholeView) -> float:
    """The area of the photo inside the pinhole picture, by the shoelace formula."""
    corners = view.rays(np.array([[0.0, 0.0], [view.width, view.height]]))
    (left, top), (right, bottom) = corners
    x, y = to_pixels(lens, _border_rays(left, top, right, bottom)).T
    area = 0.5 * abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))))
    return min(1.0, area / (lens.width * lens.height))


@lru_cache(maxsize=2)
def sampling_grid(lens: Distortion) -> torch.Tensor:
    """Where each pinhole pixel lies in the photo: (1, height, width, 2), -1 to 1 edge to edge.

    Exact at every fourth pixel (closer for short lenses) and bilinear between: off by less than
    0.02 pixels for a strong fish-eye, and several times faster (0.9 megapixels: 0.22 s before).
    """
    view = pinhole_view(lens)
    shortest = min(view.intrinsics.fx, view.intrinsics.fy)
    step = max(1, min(_MOST_NODE_STEP, int(math.sqrt(shortest / _NODE_FOCAL))))
    nodes = _grid_nodes(lens, view, step)
    if not nodes.isfinite().all():  # the last may lie beyond the picture, and the lens end there
        step, nodes = 1, _grid_nodes(lens, view, 1)
    _, down, across, _ = nodes.shape
    full = torch.nn.functional.interpolate(
        nodes.permute(0, 3, 1, 2),
        size=((down - 1) * step + 1, (across - 1) * step + 1),
        mode="bilinear",
        align_corners=True,
    )
    return full[:, :, : view.height, : view.width].permute(0, 2, 3, 1).contiguous()


def _grid_nodes(lens: Distortion, view: PinholeView, step: int) -> torch.Tensor:
    """The grid (1, down, across, 2) at every `step`-th pixel, as far as the picture goes."""
    across, down = (-(-(size - 1) // step) + 1 for size in (view.width, view.height))
    columns, rows = np.meshgrid(np.arange(across) * step + 0.5, np.arange(down) * step + 0.5)
    pixels = np.stack([columns.ravel(), rows.ravel()], axis=1)
    places = to_pixels(lens, view.rays(pixels)) * [2 / lens.width, 2 / lens.height] - 1
    return torch.from_numpy(places.astype(np.float32)).reshape(1, down, across, 2)


def undistort(
    picture: Float[np.ndarray, "height width channels"], lens: Distortion
) -> Float[np.ndarray, "new_height new_width channels"]:
    """A float32 picture of the lens's size as its pinhole view sees it, bilinearly."""
    source = torch.from_numpy(picture).permute(2, 0, 1)[None]
    sampled = torch.nn.functional.grid_sample(
        source, sampling_grid(lens), mode="bilinear", padding_mode="border", align_corners=False
    )
    return np.ascontiguousarray(sampled[0].permute(1, 2, 0).numpy())
