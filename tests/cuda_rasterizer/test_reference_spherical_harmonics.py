import math

import numpy as np
import pytest
import torch
from scipy.special import sph_harm_y

from cuda_rasterizer import spherical_harmonics
from cuda_rasterizer.errors import RasterizerError


def real_harmonic(degree: int, order: int, directions: np.ndarray) -> np.ndarray:
    """The real harmonic Y_lm of scipy's complex ones, in the sign that 3DGS files use.

    3DGS keeps the Condon-Shortley phase for both signs of m, where textbooks drop it.
    """
    x, y, z = directions.T
    polar, azimuth = np.arccos(z), np.arctan2(y, x)
    values = sph_harm_y(degree, abs(order), polar, azimuth)
    if order > 0:
        return np.asarray(math.sqrt(2) * values.real)
    if order < 0:
        return np.asarray(math.sqrt(2) * values.imag)
    return np.asarray(values.real)


def test_every_basis_function_equals_scipys_real_harmonic():
    directions = np.random.default_rng(1).normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ours = spherical_harmonics.basis(torch.from_numpy(directions), 3).numpy()
    index = 0
    for degree in range(4):
        for order in range(-degree, degree + 1):
            expected = real_harmonic(degree, order, directions)
            # Both in float64; scipy goes through arccos, which costs a few digits.
            np.testing.assert_allclose(
                ours[:, index], expected, atol=1e-12, err_msg=f"degree {degree}, order {order}"
            )
            index += 1
    assert index == 16


AXES = {
    "+x": (1.0, 0.0, 0.0),
    "-x": (-1.0, 0.0, 0.0),
    "+y": (0.0, 1.0, 0.0),
    "-y": (0.0, -1.0, 0.0),
    "+z": (0.0, 0.0, 1.0),
    "-z": (0.0, 0.0, -1.0),
}


@pytest.mark.parametrize(
    ("coefficient", "bright", "dark"), [(1, "-y", "+y"), (2, "+z", "-z"), (3, "-x", "+x")]
)
def test_a_single_first_band_coefficient_brightens_one_axis_and_darkens_its_opposite(
    coefficient, bright, dark
):
    coefficients = torch.zeros(6, 4, 3, dtype=torch.float64)
    coefficients[:, coefficient, 1] = 0.5
    directions = torch.tensor(list(AXES.values()), dtype=torch.float64)
    colors = spherical_harmonics.color(coefficients, 7.0 * directions)
    expected = torch.full((6, 3), 0.5, dtype=torch.float64)
    change = 0.5 * math.sqrt(3 / (4 * math.pi))
    expected[list(AXES).index(bright), 1] += change
    expected[list(AXES).index(dark), 1] -= change
    torch.testing.assert_close(colors, expected, rtol=0, atol=1e-14)


def test_a_colour_below_zero_is_black_and_has_no_gradient_but_above_one_is_kept():
    coefficients = torch.tensor([[[-3.0, 3.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    colors = spherical_harmonics.color(coefficients, torch.tensor([[0.0, 0.0, 1.0]]).double())
    assert colors[0, 0] == 0
    assert colors[0, 1] > 1
    colors.sum().backward()
    c0 = spherical_harmonics.C0
    torch.testing.assert_close(
        coefficients.grad, torch.tensor([[[0.0, c0, c0]]], dtype=torch.float64)
    )


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_coefficient_count_names_the_degree(degree):
    assert spherical_harmonics.degree_of((degree + 1) ** 2) == degree


@pytest.mark.parametrize("count", [0, 2, 15, 25])
def test_a_count_that_is_no_degree_is_refused(count):
    with pytest.raises(RasterizerError, match="expected 1, 4, 9 or 16"):
        spherical_harmonics.degree_of(count)
