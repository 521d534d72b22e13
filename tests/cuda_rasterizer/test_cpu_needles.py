"""Thin and wide splats at every angle, on every instruction set, pixel by pixel.

The CPU finds the vectors of pixels in which a splat can count by one evaluation a row and chunk,
on the line on which the exponent is largest; a needle is where that could miss one. In splats that
change slowly it multiplies from row to row instead of evaluating exponentials.
"""

import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import CLASSIC, cpu_backend
from cuda_rasterizer.projected import Projected

pytestmark = pytest.mark.usefixtures("fast_backend", "each_instruction_set")

WIDTH, HEIGHT, OPACITY = 61, 43, 0.9
ANGLES = [math.pi * (k + 0.123) / 37 for k in range(37)]


def needle(angle: float, along: float, across: float, x: float, y: float) -> Projected:
    """One splat on the screen; `along` and `across` are its standard deviations in pixels."""
    c, s = math.cos(angle), math.sin(angle)
    p, q = 1 / along**2, 1 / across**2
    conic = (p * c * c + q * s * s, (p - q) * c * s, p * s * s + q * c * c)
    # Far more than the ellipse reaches; the kernels find its exact reach themselves.
    radius = math.ceil(4 * max(along, across))
    return Projected(
        means_2d=torch.tensor([[x, y]]),
        conics=torch.tensor([conic]),
        depths=torch.tensor([2.0]),
        opacities=torch.tensor([OPACITY]),
        colors=torch.ones(1, 3),
        radii=torch.tensor([[radius, radius]], dtype=torch.int32),
    )


def exponents_of(splat: Projected) -> tuple[Tensor, Tensor]:
    """(h, w) in float64 of the same float32 numbers: the exponent, and its largest error."""
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    dx = x + 0.5 - splat.means_2d[0, 0].double()
    dy = y + 0.5 - splat.means_2d[0, 1].double()
    a, b, c = splat.conics[0].double()
    terms = (-0.5 * a * dx * dx, -b * dx * dy, -0.5 * c * dy * dy)
    # Each term is good to a few roundings of float32 (6e-8), and so is what it is made of.
    return terms[0] + terms[1] + terms[2], 1e-6 * sum(term.abs() for term in terms)


def assert_drawn_as_it_should_be(splat: Projected) -> int:
    """Compares every pixel; returns how many the needle surely counts at."""
    _, alpha, _, _ = cpu_backend.blend(
        *(splat, None, WIDTH, HEIGHT, CLASSIC), with_depth=False, for_backward=False
    )
    exponent, error = exponents_of(splat)
    low, high = (OPACITY * (exponent + sign * (error + 1e-5)).exp() for sign in (-1, 1))
    counts, misses = low > CLASSIC.alpha_floor, high < CLASSIC.alpha_floor
    assert (alpha[counts].double() >= low[counts] - 1e-6).all()
    assert (alpha[counts].double() <= high[counts] + 1e-6).all()
    assert not alpha[misses].any()
    return int(counts.sum())


@pytest.mark.parametrize("across", [0.15, 0.5])
@pytest.mark.parametrize("place", [(30.2, 20.9), (-300.0, 21.3), (31.0, 900.5)])
def test_a_needle_counts_at_every_pixel_at_which_it_should_and_at_no_other(across, place):
    counted = 0
    for angle in ANGLES:
        splat = needle(angle, 400.0, across, *place)
        counted += assert_drawn_as_it_should_be(splat)
    # So that it crosses the picture wherever its mean lies.
    x, y = place
    for target in ((4.5, 7.5), (30.5, 20.5), (59.5, 41.5)):
        angle = math.atan2(target[1] - y, target[0] - x)
        counted += assert_drawn_as_it_should_be(needle(angle, 400.0, across, x, y))
    assert counted > 100


@pytest.mark.parametrize("along", [2.0, 5.0, 16.0, 60.0])
@pytest.mark.parametrize("across", [0.9, 1.6, 4.0, 15.0])
# At a pixel's centre, where the exponent is 0; beside the picture; far from it.
@pytest.mark.parametrize("place", [(30.5, 20.5), (-3.3, 44.2), (31.0, 70.5)])
def test_a_wide_splat_is_drawn_as_its_exponentials_say(along, across, place):
    counted = sum(
        assert_drawn_as_it_should_be(needle(angle, along, across, *place)) for angle in ANGLES[::4]
    )
    assert counted > 0 or along < 16
