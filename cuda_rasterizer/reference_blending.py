"""Front-to-back compositing in plain torch: the truth that the kernels are held to.

The picture is cut into tiles only to bound memory; within one, every splat of its list meets every
pixel. What is drawn is decided first, without a graph (`_decide`); the values then follow from the
decisions by the textbook formula, so that autograd gives gradients of any order.
"""

import dataclasses
import math

import torch
from torch import Tensor

from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.projected import Blended, Projected

TILE_SIZE = 16

# Depths are known about ten times better than alphas (one dot product against a projection and an
# exponential), so a relative depth gap counts this much more towards the margin.
DEPTH_MARGIN_WEIGHT = 10.0


@dataclasses.dataclass(frozen=True)
class _Decisions:
    """What happens to each splat at each pixel; all (splats, pixels), front to back."""

    met: Tensor  # the pixel had not stopped before this splat
    passed: Tensor  # met, and its alpha is drawn or stops the pixel
    kept: Tensor  # drawn
    next_transmittance: Tensor


@dataclasses.dataclass(frozen=True)
class _Tile:
    """A part of the picture in pixels; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


def blend(
    projected: Projected,
    *,
    background: Tensor | None,
    width: int,
    height: int,
    cutoffs: Cutoffs,
    with_depth: bool = True,
    margins: bool = False,
) -> Blended:
    """Composite the seen splats (radii above 0) by ascending depth, equal depths by index.

    At a pixel centre (i + 0.5, j + 0.5) alpha = min(ceiling, o exp(power)); alphas under the floor
    are skipped; the splat that would take the transmittance under `stop_transmittance` (or to
    it, with `stop_inclusive`) is not drawn and the pixel stays stopped. Beyond the ceiling no
    gradient goes through alpha, while colour and depth keep theirs. `background` is (c,) or
    (height, width, c); None is black.

    With `margins` each pixel also says how far the nearest decision was (no graph; inf where none
    was taken). Where that is large, rounding cannot have changed what was drawn. It is the least of

    - |raw alpha / floor - 1| and |raw alpha / ceiling - 1| of each splat met before the stop,
    - |next transmittance / stop - 1| of each splat that is drawn or stops the pixel,
    - ten times the depth gap between consecutive such splats, relative to the farther one,
    - the distance, in standard deviations, to a box that `footprint_cap` draws within the floor.
    """
    order = _depth_order(projected)
    channels = projected.colors.shape[1]
    if background is None:
        background = projected.colors.new_zeros(channels)
    backdrop = background.to(projected.colors).expand(height, width, channels)
    rows = []
    for top in range(0, height, TILE_SIZE):
        tiles = []
        for left in range(0, width, TILE_SIZE):
            tile = _Tile(left, top, min(left + TILE_SIZE, width), min(top + TILE_SIZE, height))
            listed = order[_touches(projected, order, tile)]
            tiles.append(
                _blend_tile(projected, listed, tile, backdrop, cutoffs, with_depth, margins)
            )
        rows.append(_join(tiles, dim=1))
    return _join(rows, dim=0)


def _depth_order(projected: Projected) -> Tensor:
    """Indices of the seen splats, front to back; ties by index."""
    seen = (projected.radii > 0).all(-1).nonzero().squeeze(1)
    return seen[projected.depths.detach()[seen].argsort(stable=True)]


def _blend_tile(
    projected: Projected,
    listed: Tensor,
    tile: _Tile,
    backdrop: Tensor,
    cutoffs: Cutoffs,
    with_depth: bool,
    margins: bool,
) -> Blended:
    """The tile's pixels from the splats `listed` front to back."""
    pixels = _pixel_centers(tile, projected.means_2d)  # (pixels, 2)
    offsets = projected.means_2d[listed, None, :] - pixels  # (splats, pixels, 2)
    power = _power(offsets, projected.conics[listed, None, :])
    raw = projected.opacities[listed, None] * power.clamp(max=0).exp()
    with torch.no_grad():
        inside = power <= 0  # rounding alone makes it positive
        if math.isfinite(cutoffs.footprint_cap):
            inside &= (offsets.abs() <= projected.radii[listed, None, :]).all(-1)
        decisions = _decide(raw, inside, cutoffs)

    alphas = torch.where(decisions.kept, raw.clamp(max=cutoffs.alpha_ceiling), 0.0)
    ones = torch.ones_like(pixels[None, :, 0])
    transmittance = torch.cat([ones, 1 - alphas]).cumprod(dim=0)  # (splats + 1, pixels)
    weights = alphas * transmittance[:-1]  # T alpha, T exclusive of the splat itself

    shape = (tile.bottom - tile.top, tile.right - tile.left)
    behind = backdrop[tile.top : tile.bottom, tile.left : tile.right].flatten(0, 1)
    color = weights.T @ projected.colors[listed] + transmittance[-1, :, None] * behind
    depth = (weights.T @ projected.depths[listed]).reshape(shape) if with_depth else None
    margin = None
    if margins:
        detached = (projected.depths.detach()[listed], raw.detach(), offsets.detach())
        margin = _margin(projected, listed, *detached, decisions, cutoffs).reshape(shape)
    return Blended(
        color=color.reshape(*shape, -1),
        alpha=weights.sum(dim=0).reshape(shape),
        depth=depth,
        margin=margin,
    )


def _touches(projected: Projected, order: Tensor, tile: _Tile) -> Tensor:
    """Which splats of `order` have a box that reaches the tile, with a pixel to spare.

    The spare pixel changes no picture; it lets the margin see splats that only just miss.
    """
    means = projected.means_2d.detach()[order]
    reach = projected.radii[order] + 1
    low = means.new_tensor([tile.left, tile.top])
    high = means.new_tensor([tile.right, tile.bottom])
    return ((means + reach >= low) & (means - reach <= high)).all(-1)


def _pixel_centers(tile: _Tile, like: Tensor) -> Tensor:
    x = torch.arange(tile.left, tile.right, dtype=like.dtype, device=like.device) + 0.5
    y = torch.arange(tile.top, tile.bottom, dtype=like.dtype, device=like.device) + 0.5
    rows, columns = torch.meshgrid(y, x, indexing="ij")
    return torch.stack([columns.flatten(), rows.flatten()], dim=-1)


def _power(offsets: Tensor, conics: Tensor) -> Tensor:
    """-d^T Q d / 2 for Q = [[A, B], [B, C]]."""
    dx, dy = offsets.unbind(-1)
    a, b, c = conics.unbind(-1)
    return -0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy


def _decide(raw: Tensor, inside: Tensor, cutoffs: Cutoffs) -> _Decisions:
    bright = inside & (raw >= cutoffs.alpha_floor)
    alphas = torch.where(bright, raw.clamp(max=cutoffs.alpha_ceiling), 0.0)
    # Had nothing stopped it, the transmittance would go on falling; so once under the stop it
    # stays there, and comparing each value alone finds everything from the stopping splat on.
    next_transmittance = (1 - alphas).cumprod(dim=0)
    if cutoffs.stop_inclusive:
        stopped = next_transmittance <= cutoffs.stop_transmittance
    else:
        stopped = next_transmittance < cutoffs.stop_transmittance
    met = torch.cat([torch.zeros_like(stopped[:1]), stopped[:-1]]).logical_not()
    return _Decisions(met, met & bright, bright & ~stopped, next_transmittance)


def _margin(
    projected: Projected,
    listed: Tensor,
    depths: Tensor,
    raw: Tensor,
    offsets: Tensor,
    decisions: _Decisions,
    cutoffs: Cutoffs,
) -> Tensor:
    """(pixels,) as `Blended.margin` describes it."""
    margins = [
        _alpha_margin(raw, decisions, cutoffs),
        _stop_margin(decisions, cutoffs),
        _depth_margin(depths, decisions),
        _box_margin(projected, listed, offsets, decisions, cutoffs),
    ]
    return torch.stack(margins).amin(dim=0)


def _alpha_margin(raw: Tensor, decisions: _Decisions, cutoffs: Cutoffs) -> Tensor:
    to_ceiling = _relative_distance(raw, cutoffs.alpha_ceiling)
    to_floor = _relative_distance(raw, cutoffs.alpha_floor)
    return _smallest(torch.minimum(to_ceiling, to_floor), decisions.met)


def _stop_margin(decisions: _Decisions, cutoffs: Cutoffs) -> Tensor:
    distance = _relative_distance(decisions.next_transmittance, cutoffs.stop_transmittance)
    return _smallest(distance, decisions.passed)


def _depth_margin(depths: Tensor, decisions: _Decisions) -> Tensor:
    passed = decisions.passed
    latest = torch.where(passed, depths[:, None], -math.inf)
    if latest.shape[0] > 0:
        latest = latest.cummax(dim=0).values
    before = torch.cat([torch.full_like(latest[:1], -math.inf), latest[:-1]])
    gap = (depths[:, None] - before) / depths[:, None]
    return _smallest(DEPTH_MARGIN_WEIGHT * gap, passed)


def _box_margin(
    projected: Projected, listed: Tensor, offsets: Tensor, decisions: _Decisions, cutoffs: Cutoffs
) -> Tensor:
    """Distance to the edge of a box that cuts the Gaussian above its floor (by the cap)."""
    a, b, c = projected.conics.detach()[listed].unbind(-1)
    determinant = a * c - b * b
    deviations = torch.stack([c, a], dim=-1).div(determinant[:, None]).sqrt()  # (splats, 2)
    reach = (2 * (projected.opacities.detach()[listed] / cutoffs.alpha_floor).log()).sqrt()
    capped = reach > cutoffs.footprint_cap
    to_edge = (offsets.abs() - projected.radii[listed, None, :]).abs() / deviations[:, None, :]
    return _smallest(to_edge.amin(dim=-1), decisions.met & capped[:, None])


def _relative_distance(values: Tensor, threshold: float) -> Tensor:
    if threshold <= 0:
        return torch.full_like(values, math.inf)  # a threshold of zero decides nothing
    return (values / threshold - 1).abs()


def _smallest(distances: Tensor, where: Tensor) -> Tensor:
    """(pixels,) the least of `distances` (splats, pixels) at `where`; inf where there is none."""
    masked = torch.where(where, distances, math.inf)
    return torch.cat([masked, masked.new_full((1, masked.shape[1]), math.inf)]).amin(dim=0)


def _join(parts: list[Blended], dim: int) -> Blended:
    depths = [part.depth for part in parts if part.depth is not None]
    margins = [part.margin for part in parts if part.margin is not None]
    return Blended(
        color=torch.cat([part.color for part in parts], dim=dim),
        alpha=torch.cat([part.alpha for part in parts], dim=dim),
        depth=torch.cat(depths, dim=dim) if depths else None,
        margin=torch.cat(margins, dim=dim) if margins else None,
    )
