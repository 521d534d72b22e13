"""What is not finite is noted where it is made, and Adam then moves nothing."""

import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import (
    AdamGroup,
    StepGuard,
    adam_step,
    kernel_arguments,
    not_finite,
)
from cuda_rasterizer.backends import kernels_of
from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cutoffs import CLASSIC
from cuda_rasterizer.step_guard import GRADIENT, GRADIENTS, LOSS, SEEN
from tests.cuda_rasterizer.raw_splats import COUNT, INTRINSICS, raw_splats

CPU = torch.device("cpu")
RATES = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-15}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_gradients_that_no_kernel_made_are_looked_at(name, wrong):
    gradients: dict[str, Tensor | None] = {name: torch.zeros(5, 3) for name in GRADIENTS}
    gradients["sh_rest"] = None if name != "sh_rest" else gradients["sh_rest"]
    guard = StepGuard(CPU)
    guard.look_at(gradients)
    assert guard.flags.tolist() == [0, 0]
    gradients[name][4, 1] = wrong
    guard.look_at(gradients)
    assert not_finite(int(guard.flags[0])) == (name,)
    assert int(guard.flags[1]) == GRADIENT


@pytest.mark.parametrize(("loss", "noted"), [(0.5, ()), (math.nan, (LOSS,)), (-math.inf, (LOSS,))])
def test_a_loss_is_noted_only_where_it_is_not_finite(loss, noted):
    guard = StepGuard(CPU)
    guard.note_loss(torch.tensor(loss))
    assert not_finite(int(guard.flags[0])) == noted


@pytest.mark.parametrize("place", [0, 40, COUNT - 1])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("incoming", "names"),
    [
        (4, {"sh_dc", "sh_rest", "means"}),  # colours reach the mean by the direction of view
        (3, {"opacities"}),
        (0, {"means"}),
    ],
)
def test_the_kernel_names_what_it_could_not_make_finite(kernels, place, wrong, incoming, names):
    """Each number comes from one splat: the first, one in the middle, and the last of a rest."""
    with torch.no_grad():
        inputs, view, gradients, wanted = _backward_of(kernels)
    gradients[incoming].view(COUNT, -1)[place] = wrong
    flags = torch.zeros(2, dtype=torch.int32)
    projected = kernels_of(kernels).project(inputs, view)
    assert (projected.radii[:, 0] > 0)[place]
    kernels_of(kernels).project_backward(inputs, view, projected.radii, gradients, wanted, flags)
    for name in GRADIENTS:
        written = getattr(wanted, name)
        assert (name in not_finite(int(flags[0]))) == (not bool(written.isfinite().all()))
    assert set(not_finite(int(flags[0]))) == names
    assert int(flags[1]) == SEEN | GRADIENT


def _backward_of(kernels: str):
    splats = raw_splats()
    inputs = kernel_arguments.SplatInputs(
        *(splats[name] for name in GRADIENTS),
        features=None,
        world_to_camera=torch.eye(4),
        intrinsics=INTRINSICS.clone(),
    )
    # wide, so that every splat is seen
    view = kernel_arguments.View(4000, 4000, 3, False, CLASSIC, raw=True)
    inputs.intrinsics[:2, 2] = 2000.0
    inputs.opacities.fill_(2.0)
    shapes = ((COUNT, 2), (COUNT, 3), (COUNT,), (COUNT,), (COUNT, 3))
    gradients = [torch.full(shape, 0.5) for shape in shapes]
    wanted = kernel_arguments.SplatGradients(
        *(torch.empty_like(splats[name]) for name in GRADIENTS), world_to_camera=None
    )
    return inputs, view, gradients, wanted


def test_only_gradients_that_somebody_asked_for_are_noted(kernels):
    inputs, view, gradients, wanted = _backward_of(kernels)
    gradients[4][3, 1] = math.nan
    radii = kernels_of(kernels).project(inputs, view).radii
    only = kernel_arguments.SplatGradients(
        *(wanted.scales if name == "scales" else None for name in GRADIENTS), world_to_camera=None
    )
    flags = torch.zeros(2, dtype=torch.int32)
    kernels_of(kernels).project_backward(inputs, view, radii, gradients, only, flags)
    assert not_finite(int(flags[0])) == ()


def group_of(parameter: Tensor) -> AdamGroup:
    return AdamGroup(
        parameter,
        torch.ones_like(parameter),
        torch.full_like(parameter, 0.1),
        torch.full_like(parameter, 0.2),
        0.01,
        7,
    )


@pytest.mark.parametrize(
    ("flags", "moves"),
    [((0, SEEN), True), ((0, SEEN | GRADIENT), True), ((0, 0), False), ((4, SEEN), False)],
)
@pytest.mark.parametrize("with_radii", [False, True])
def test_adam_moves_only_what_the_guard_lets_it(backend, flags, moves, with_radii):
    guard = StepGuard(CPU)
    guard.flags.copy_(torch.tensor(flags))
    guarded, free = group_of(torch.ones(COUNT, 3)), group_of(torch.ones(COUNT, 3))
    radii = torch.ones(COUNT, 2, dtype=torch.int32) if with_radii else None
    adam_step([guarded], **RATES, radii=radii, guard=guard, backend=backend)
    if moves:
        adam_step([free], **RATES, radii=radii, backend=backend)
    for name in ("parameter", "exp_avg", "exp_avg_sq"):
        assert torch.equal(getattr(guarded, name), getattr(free, name)), name


def test_what_was_not_finite_stays_noted_until_it_was_read():
    guard = StepGuard(CPU)
    guard.flags.copy_(torch.tensor([8, SEEN]))
    guard.begin(keep=True)
    assert guard.flags.tolist() == [8, 0]
    guard.begin(keep=False)
    assert guard.flags.tolist() == [0, 0]


def test_python_and_the_kernels_mean_the_same_bits():
    constants = sources.constants()
    for index, name in enumerate((*GRADIENTS, LOSS)):
        assert constants[f"not_finite_{name}"] == 1 << index
        assert not_finite(1 << index) == (name,)
    assert (constants["found_seen"], constants["found_gradient"]) == (SEEN, GRADIENT)
