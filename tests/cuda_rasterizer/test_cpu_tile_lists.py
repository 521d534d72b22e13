"""Which tiles a splat is dealt to, against closed forms in float64, on every instruction set."""

import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import CLASSIC
from cuda_rasterizer.cpu_backend import Binning
from cuda_rasterizer.projected import Projected

pytestmark = pytest.mark.usefixtures("fast_backend", "each_instruction_set")

WIDTH, HEIGHT, TILE = 261, 190, 16  # 17 by 12 tiles, the last ones cut
ACROSS, DOWN = -(-WIDTH // TILE), -(-HEIGHT // TILE)
COUNT = 301  # no multiple of any vector
OPACITY = 0.8
TAU = math.log(OPACITY / CLASSIC.alpha_floor)


def splats(dtype: torch.dtype) -> Projected:
    """Of all angles, from a fifth of a pixel to wider than eight tiles, some beyond the edges."""
    random = torch.Generator().manual_seed(11)
    deviations = torch.exp(6.0 * torch.rand(COUNT, 2, generator=random) - 1.6)
    angle = math.pi * torch.rand(COUNT, generator=random)
    p, q = (1 / deviations.double() ** 2).unbind(1)
    c, s = angle.double().cos(), angle.double().sin()
    conics = torch.stack([p * c * c + q * s * s, (p - q) * c * s, p * s * s + q * c * c], dim=1)
    size = torch.tensor([WIDTH, HEIGHT])
    return Projected(
        means_2d=((1.2 * torch.rand(COUNT, 2, generator=random) - 0.1) * size).to(dtype),
        conics=conics.to(dtype),
        depths=torch.rand(COUNT, generator=random).to(dtype) + 1,
        opacities=torch.full((COUNT,), OPACITY, dtype=dtype),
        colors=torch.ones(COUNT, 3, dtype=dtype),
        # Far more than an ellipse reaches; binning finds that itself.
        radii=(4 * deviations.amax(1, keepdim=True)).ceil().int().repeat(1, 2),
    )


def has_pixels(projected: Projected) -> Tensor:
    """(splats, rows, columns) of tiles: whether a pixel's centre in it surely counts."""
    y, x = torch.meshgrid(torch.arange(HEIGHT) + 0.5, torch.arange(WIDTH) + 0.5, indexing="ij")
    found = torch.zeros(COUNT, DOWN * TILE, ACROSS * TILE, dtype=torch.bool)
    conics, means = projected.conics.double().tolist(), projected.means_2d.double().tolist()
    for i, ((a, b, c), (mean_x, mean_y)) in enumerate(zip(conics, means, strict=True)):
        dx, dy = x.double() - mean_x, y.double() - mean_y
        form = a * dx * dx + 2 * b * dx * dy + c * dy * dy
        # What is in float32 is good to some roundings of the largest term.
        found[i, :HEIGHT, :WIDTH] = form <= 2 * TAU * (1 - 1e-4)
    return found.reshape(COUNT, DOWN, TILE, ACROSS, TILE).any(4).any(2)


def is_near(projected: Projected) -> Tensor:
    """(splats, rows, columns) of tiles: whether the ellipse comes near one of its pixels' centres.

    Rectangles of centres are wider by twice the kernels' slack here, and by a part of the splat.
    """
    a, b, c = (part[:, None, None] for part in projected.conics.double().unbind(1))
    mean, deviation = projected.means_2d.double(), projected.radii[:, :1].double() / 4
    margin = 0.05 + 3e-3 * deviation  # tile_bound_slack twice, 1e-3 of tau, a box's 1e-4

    def sides(tiles: int, axis: int) -> tuple[Tensor, Tensor]:
        first = torch.arange(tiles).double() * TILE  # of whole tiles, beyond the picture's edge too
        centre = mean[:, axis, None] - 0.5
        return first - margin - centre, first + TILE - 1 + margin - centre

    left, right = (side[:, None, :] for side in sides(ACROSS, 0))
    top, bottom = (side[:, :, None] for side in sides(DOWN, 1))

    def form(x: Tensor, y: Tensor) -> Tensor:
        return a * x * x + 2 * b * x * y + c * y * y

    def within(low: Tensor, value: Tensor, high: Tensor) -> Tensor:
        return torch.maximum(low, torch.minimum(value, high))

    on_sides = [form(x, within(top, -b / c * x, bottom)) for x in (left, right)]
    on_sides += [form(within(left, -b / a * y, right), y) for y in (top, bottom)]
    least = torch.stack(on_sides).amin(0)
    inside = (left <= 0) & (right >= 0) & (top <= 0) & (bottom >= 0)
    return inside | (least <= 2 * TAU * (1 + 1e-3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_splat_is_dealt_to_the_tiles_that_its_ellipse_reaches_and_to_no_others(dtype):
    projected = splats(dtype)
    lists = Binning(projected, CLASSIC, for_backward=True).run(WIDTH, HEIGHT)
    dealt = torch.zeros(COUNT, DOWN * ACROSS, dtype=torch.int64)
    lengths = lists.tile_offsets.diff()
    tiles = torch.arange(DOWN * ACROSS).repeat_interleave(lengths)
    dealt.index_put_((lists.instance_splats.long(), tiles), torch.tensor(1), accumulate=True)
    assert int(dealt.max()) == 1
    found = dealt.reshape(COUNT, DOWN, ACROSS) > 0
    assert not (has_pixels(projected) & ~found).any()
    columns, rows = found.any(1).sum(1), found.any(2).sum(1)
    has_corners = (columns > 1) & (rows > 1)  # a row or a column of tiles is dealt to as a whole
    assert has_corners.sum() > COUNT // 2
    assert not (found & ~is_near(projected))[has_corners].any()
    assert columns.max() > 8  # wider than the bits of counting can tell
    assert torch.equal(lists.splat_offsets.diff(), dealt.sum(1))
