"""A training step without autograd has the bits of one with it, by every backend."""

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import (
    RasterizerError,
    SplatInputs,
    StepGuard,
    View,
    draw_for_training,
    l1_ssim,
    l1_ssim_with_gradient,
    not_finite,
    rasterize,
)
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT
from cuda_rasterizer.step_guard import GRADIENT, GRADIENTS, LOSS, SEEN
from tests.cuda_rasterizer.raw_splats import COUNT, INTRINSICS, SIZE, raw_splats

CPU = torch.device("cpu")
BACKGROUND = torch.tensor([0.2, 0.5, 0.9])


def splats(*, behind: bool = False) -> SplatInputs:
    inputs = SplatInputs(
        **raw_splats(), features=None, world_to_camera=torch.eye(4), intrinsics=INTRINSICS
    )
    if behind:
        inputs.means[:, 2] -= 100.0
    return inputs


def view_of(degree: int = 3, antialiased: bool = False) -> View:
    return View(*SIZE, degree, antialiased, GSPLAT if antialiased else CLASSIC, raw=True)


def photo() -> Tensor:
    random = torch.Generator().manual_seed(6)
    return torch.randint(0, 256, (SIZE[1], SIZE[0], 3), generator=random, dtype=torch.uint8)


def by_autograd(inputs: SplatInputs, view: View, rest_learns: bool, backend: str):
    """Colour, values of the loss, gradients by name, and that of the centres."""
    leaves = {name: getattr(inputs, name).clone().requires_grad_() for name in GRADIENTS}
    rest = leaves["sh_rest"] if rest_learns else leaves["sh_rest"].detach()
    rendering = rasterize(
        *(leaves[name] for name in ("means", "quaternions", "scales", "opacities")),
        world_to_camera=inputs.world_to_camera,
        intrinsics=inputs.intrinsics,
        width=view.width,
        height=view.height,
        sh=leaves["sh_dc"] if view.sh_degree == 0 else (leaves["sh_dc"], rest),
        sh_degree=view.sh_degree,
        background=BACKGROUND,
        cutoffs=view.cutoffs,
        antialiased=view.antialiased,
        raw=True,
        depth=False,
        backend=backend,
    )
    rendering.means_2d.retain_grad()
    terms = l1_ssim(rendering.color, photo(), 0.2, backend=backend)
    terms.loss.backward()
    gradients = {name: leaf.grad for name, leaf in leaves.items()}
    return rendering, terms.values, gradients, rendering.means_2d.grad


def passed(inputs: SplatInputs, view: View, backend: str, *, rest_learns: bool = True):
    """The same without autograd, and the guard that watched."""
    guard = StepGuard(CPU)
    picture = draw_for_training(
        *(inputs, view, BACKGROUND), rest_learns=rest_learns, guard=guard, backend=backend
    )
    values, gradient = l1_ssim_with_gradient(picture.color, photo(), 0.2, guard, backend)
    return picture, values, *picture.differentiate(gradient), guard


@pytest.mark.parametrize(
    ("degree", "rest_learns", "antialiased"),
    [(3, True, False), (3, False, False), (0, True, False), (2, True, True)],
)
def test_it_has_the_bits_of_a_step_with_autograd(backend, degree, rest_learns, antialiased):
    inputs, view = splats(), view_of(degree, antialiased)
    rendering, values, gradients, centers = by_autograd(inputs, view, rest_learns, backend)
    handed = dataclasses.replace(inputs, sh_rest=None) if degree == 0 else inputs
    picture, found_values, found, found_centers, guard = passed(
        handed, view, backend, rest_learns=rest_learns
    )
    assert torch.equal(picture.color, rendering.color)
    assert torch.equal(picture.radii, rendering.radii)
    assert torch.equal(found_values, values)
    for name in GRADIENTS:
        if gradients[name] is None:
            assert getattr(found, name) is None, name
        else:
            assert torch.equal(getattr(found, name), gradients[name]), name
    assert torch.equal(found_centers, centers)
    assert guard.flags.tolist() == [0, SEEN | GRADIENT]


def test_the_gradients_are_those_of_plain_torch(kernels):
    exact = {f.name: getattr(splats(), f.name) for f in dataclasses.fields(SplatInputs)}
    doubled = {name: None if t is None else t.double() for name, t in exact.items()}
    _, _, truth, centers, _ = passed(SplatInputs(**doubled), view_of(), "reference")
    _, _, found, found_centers, _ = passed(splats(), view_of(), kernels)
    for name in GRADIENTS:
        expected = getattr(truth, name)
        # of float32 through 67 layers; the largest gradient sets the scale
        torch.testing.assert_close(
            getattr(found, name).double(), expected, rtol=2e-3, atol=2e-4 * expected.abs().max()
        )
    torch.testing.assert_close(
        found_centers.double(), centers, rtol=2e-3, atol=2e-4 * centers.abs().max()
    )


def test_a_picture_without_splats_notes_nothing_and_has_gradients_of_zero_or_none(backend):
    _, values, found, _, guard = passed(splats(behind=True), view_of(), backend)
    assert values.isfinite().all()
    assert guard.flags.tolist() == [0, 0]
    for name in GRADIENTS:
        gradient = getattr(found, name)
        assert gradient is None or not gradient.any(), name


def test_a_loss_that_is_not_finite_is_noted_and_so_are_its_gradients(backend):
    guard = StepGuard(CPU)
    picture = draw_for_training(
        *(splats(), view_of(), BACKGROUND), rest_learns=True, guard=guard, backend=backend
    )
    broken = picture.color.clone()
    broken[3, 4, 1] = math.nan
    _, gradient = l1_ssim_with_gradient(broken, photo(), 0.2, guard, backend)
    assert not_finite(int(guard.flags[0])) == (LOSS,)
    picture.differentiate(torch.full_like(gradient, math.nan))
    assert not_finite(int(guard.flags[0])) == (LOSS, *GRADIENTS)


def test_no_graph_is_recorded_though_the_splats_are_leaves(backend):
    leaves = splats()
    for name in GRADIENTS:
        getattr(leaves, name).requires_grad_()
    picture, values, found, centers, _ = passed(leaves, view_of(), backend)
    assert not any(tensor.requires_grad for tensor in (picture.color, values, found.means, centers))
    assert leaves.means.grad is None


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"features": torch.zeros(COUNT, 3)}, "raw splats with spherical harmonics"),
        ({"opacities": torch.zeros(COUNT - 1)}, "opacities are .*expected 67 rows"),
        ({"scales": torch.zeros(COUNT, 3, dtype=torch.float64)}, "scales are .*float64"),
        ({"intrinsics": torch.eye(3, dtype=torch.float64)}, "intrinsics are .*float64"),
        ({"quaternions": torch.zeros(4, COUNT).T}, "quaternions are not contiguous"),
    ],
)
def test_splats_that_kernels_would_misread_are_refused(fast_backend, changes, match):
    inputs = dataclasses.replace(splats(), **changes)
    with pytest.raises(RasterizerError, match=match):
        passed(inputs, view_of(), fast_backend)
