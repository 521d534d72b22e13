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
    rasterize,
    step_guard,
)
from cuda_rasterizer.backends import kernels_of
from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cutoffs import CLASSIC
from cuda_rasterizer.step_guard import GRADIENT, GRADIENTS, LOSS, SEEN

CPU = torch.device("cpu")
COUNT = 67  # two warps and a rest of a third
RATES = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-15}


def leaves(count: int = COUNT) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(4)

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=random)

    splats = {
        "means": 0.4 * normal(3) + torch.tensor([0.0, 0.0, 3.0]),
        "quaternions": normal(4),
        "scales": 0.3 * normal(3) - 2.0,
        "opacities": normal(),
        "sh_dc": normal(1, 3),
        "sh_rest": 0.1 * normal(15, 3),
    }
    return {name: tensor.requires_grad_() for name, tensor in splats.items()}


def drawn(splats: dict[str, Tensor], guard: StepGuard, backend: str) -> Tensor:
    """A picture's sum of squares, as a loss of somebody's own."""
    shapes = (splats[name] for name in ("means", "quaternions", "scales", "opacities"))
    rendering = rasterize(
        *shapes,
        world_to_camera=torch.eye(4),
        intrinsics=torch.tensor([[30.0, 0, 16], [0, 30, 12], [0, 0, 1]]),
        width=32,
        height=24,
        sh=(splats["sh_dc"], splats["sh_rest"]),
        raw=True,
        guard=guard,
        backend=backend,
    )
    return rendering.color.square().sum()


def looked_at(guard: StepGuard, loss: Tensor, splats: dict[str, Tensor]) -> tuple[int, int]:
    guard.look_at(loss, {name: splats[name].grad for name in GRADIENTS})
    broken, found = guard.flags.tolist()
    return broken, found


def test_a_sound_step_notes_that_splats_were_seen_and_gradients_came(backend):
    splats, guard = leaves(), StepGuard(CPU)
    loss = drawn(splats, guard, backend)
    loss.backward()
    assert looked_at(guard, loss, splats) == (0, SEEN | GRADIENT)


def test_what_the_kernels_wrote_is_not_looked_at_again(kernels, monkeypatch):
    splats, guard = leaves(), StepGuard(CPU)
    loss = drawn(splats, guard, kernels)
    loss.backward()
    looked = []
    original = step_guard._is_broken

    def spied(numbers: Tensor) -> Tensor:
        looked.append(numbers)
        return original(numbers)

    monkeypatch.setattr(step_guard, "_is_broken", spied)
    looked_at(guard, loss, splats)
    assert [numbers.data_ptr() for numbers in looked] == [loss.data_ptr()]


def test_a_picture_without_splats_notes_nothing(backend):
    splats, guard = leaves(), StepGuard(CPU)
    with torch.no_grad():
        splats["means"] += torch.tensor([0.0, 0.0, -100.0])
    loss = drawn(splats, guard, backend)
    if loss.requires_grad:
        loss.backward()
    assert looked_at(guard, loss, splats) == (0, 0)


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("in_place", [False, True])
def test_a_gradient_that_somebody_else_spoils_is_found_whatever_drew(backend, name, in_place):
    splats, guard = leaves(), StepGuard(CPU)

    def spoil(gradient: Tensor) -> Tensor:
        spoilt = gradient if in_place else gradient.clone()
        spoilt[-1].fill_(math.inf)
        return spoilt

    splats[name].register_hook(spoil)
    loss = drawn(splats, guard, backend)
    loss.backward()
    broken, _ = looked_at(guard, loss, splats)
    assert not_finite(broken) == (name,)


def test_a_regulariser_of_ones_own_is_looked_at_beside_what_the_kernels_wrote(backend):
    splats, guard = leaves(), StepGuard(CPU)
    loss = drawn(splats, guard, backend) + (splats["scales"] * math.nan).sum()
    loss.backward()
    broken, _ = looked_at(guard, loss, splats)
    assert not_finite(broken) == (LOSS, "scales")


def test_a_loss_that_is_not_finite_is_noted(backend):
    splats, guard = leaves(), StepGuard(CPU)
    loss = drawn(splats, guard, backend) * math.nan
    loss.backward()
    broken, _ = looked_at(guard, loss, splats)
    assert not_finite(broken)[0] == LOSS
    assert set(not_finite(broken)[1:]) == set(GRADIENTS)


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
        inputs, view, gradients, wanted = _backward_of(leaves(), kernels)
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


def _backward_of(splats: dict[str, Tensor], kernels: str):
    inputs = kernel_arguments.SplatInputs(
        *(splats[name].detach() for name in GRADIENTS),
        features=None,
        world_to_camera=torch.eye(4),
        intrinsics=torch.tensor([[30.0, 0, 16], [0, 30, 12], [0, 0, 1]]),
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
    inputs, view, gradients, wanted = _backward_of(leaves(), kernels)
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
