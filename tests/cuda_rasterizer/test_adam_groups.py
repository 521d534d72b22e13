"""Adam over several tensors at once, against torch's own; and over seen splats only."""

import dataclasses

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import AdamGroup, RasterizerError, adam_step, native, set_threads
from tests.cuda_rasterizer.drawing import recorded_kernels

COUNT = 1003
# Rows of one, three, four and forty-five numbers, as a splat has them; more than a task's share.
ROWS: tuple[tuple[int, ...], ...] = ((3,), (1, 3), (15, 3), (3,), (4,), ())
RATES = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-15}


def random_groups(
    dtype: torch.dtype = torch.float32, seed: int = 1, count: int = COUNT
) -> list[AdamGroup]:
    """One group a parameter of a splat, with moments of some steps already taken."""
    random = torch.Generator().manual_seed(seed)

    def normal(row: tuple[int, ...]) -> Tensor:
        return torch.randn(count, *row, generator=random, dtype=torch.float64).to(dtype)

    return [
        AdamGroup(
            normal(row), normal(row), 0.1 * normal(row), 0.1 * normal(row).square(), 0.01 * n, 3 + n
        )
        for n, row in enumerate(ROWS, start=1)
    ]


def copies(groups: list[AdamGroup]) -> list[AdamGroup]:
    return [
        AdamGroup(
            *(t.clone() for t in (g.parameter, g.gradient, g.exp_avg, g.exp_avg_sq)), g.lr, g.step
        )
        for g in groups
    ]


def random_radii(count: int = COUNT) -> Tensor:
    """Unseen and seen splats in runs of all lengths, the first and the last unseen."""
    random = torch.Generator().manual_seed(9)
    seen = torch.rand(count, generator=random) < torch.linspace(0.0, 1.0, count)
    seen[-1:] = False
    return seen[:, None].int() * torch.tensor([[7, 5]], dtype=torch.int32)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest, backend: str) -> torch.dtype:
    """Each type of number that the backend takes."""
    if backend == "cuda" and request.param == torch.float64:
        pytest.skip("backend 'cuda' takes float32 alone")
    return request.param


def test_groups_take_the_steps_of_torch(backend, dtype):
    random = torch.Generator().manual_seed(2)
    ours = [torch.randn(50, *row, generator=random).to(dtype) for row in ROWS]
    theirs = [tensor.clone().requires_grad_() for tensor in ours]
    moments = [(torch.zeros_like(tensor), torch.zeros_like(tensor)) for tensor in ours]
    optimizer = torch.optim.Adam(
        [{"params": [tensor], "lr": 0.01 * (n + 1)} for n, tensor in enumerate(theirs)], eps=1e-15
    )
    for step in range(1, 21):
        groups = []
        for n, tensor in enumerate(ours):
            gradient = torch.randn(tensor.shape, generator=random).to(dtype)
            gradient *= 10.0 ** (step % 5 - 3)
            theirs[n].grad = gradient.clone()
            groups.append(AdamGroup(tensor, gradient, *moments[n], 0.01 * (n + 1), step))
        optimizer.step()
        adam_step(groups, **RATES, backend=backend)
    # A rounding a step, each a millionth part of a step of at most 0.06.
    tolerance = 6e-6 if dtype == torch.float32 else 1e-13
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other.detach(), rtol=0, atol=tolerance)


def test_the_splats_that_were_seen_move_and_the_others_keep_every_bit(backend, dtype):
    before, radii = random_groups(dtype), random_radii()
    everywhere, seen_only = copies(before), copies(before)
    adam_step(everywhere, **RATES, backend=backend)
    adam_step(seen_only, **RATES, radii=radii, backend=backend)
    seen = radii[:, 0] > 0
    for name in ("parameter", "exp_avg", "exp_avg_sq"):
        for untouched, moved, found in zip(before, everywhere, seen_only, strict=True):
            result = getattr(found, name)
            assert torch.equal(result[~seen], getattr(untouched, name)[~seen]), name
            assert torch.equal(result[seen], getattr(moved, name)[seen]), name


def test_an_unseen_splats_gradient_is_not_looked_at(backend):
    groups, radii = random_groups(), random_radii()
    for group in groups:
        group.gradient[radii[:, 0] == 0] = float("nan")
    adam_step(groups, **RATES, radii=radii, backend=backend)
    assert all(group.parameter.isfinite().all() for group in groups)


def test_all_groups_move_in_one_call_of_the_kernel(fast_backend, monkeypatch):
    with recorded_kernels(monkeypatch) as kernels:
        adam_step(random_groups(), **RATES, backend=fast_backend)
    assert kernels == ["adam"]


def test_more_groups_than_a_call_takes_are_all_moved(fast_backend):
    one, together = random_groups(), random_groups()
    many = [g for seed in range(3) for g in random_groups(seed=seed, count=5)]
    apart = copies(many)
    adam_step(many + together, **RATES, backend=fast_backend)
    for group in apart + one:
        adam_step([group], **RATES, backend=fast_backend)
    for found, expected in zip(many + together, apart + one, strict=True):
        assert torch.equal(found.parameter, expected.parameter)


def test_the_number_of_threads_changes_no_bit(fast_backend):
    threads = native.thread_count()
    alone, shared = random_groups(), random_groups()
    try:
        set_threads(1)
        adam_step(alone, **RATES, radii=random_radii(), backend=fast_backend)
        set_threads(2)
        adam_step(shared, **RATES, radii=random_radii(), backend=fast_backend)
    finally:
        set_threads(threads)
    for one, two in zip(alone, shared, strict=True):
        assert torch.equal(one.parameter, two.parameter)


def test_no_groups_and_empty_tensors_are_nothing_to_do(backend):
    adam_step([], **RATES, backend=backend)
    adam_step(random_groups(count=0), **RATES, radii=random_radii(0), backend=backend)


def test_a_parameter_whose_gradient_was_always_zero_stays(backend):
    parameter = torch.randn(5)
    before, zeros = parameter.clone(), torch.zeros(5)
    group = AdamGroup(parameter, zeros.clone(), zeros.clone(), zeros.clone(), 0.1, 1)
    adam_step([group], **RATES, backend=backend)
    assert torch.equal(parameter, before)


def test_what_cannot_be_changed_in_place_is_refused(fast_backend):
    good = random_groups(count=4)[0]

    def refused(message: str, radii: Tensor | None = None, **changes: object) -> None:
        with pytest.raises(RasterizerError, match=message):
            adam_step(
                [good, dataclasses.replace(good, **changes)],
                **RATES,
                radii=radii,
                backend=fast_backend,
            )

    wide = torch.zeros(4, 6)[:, ::2]
    refused("the parameter is not contiguous", parameter=wide)
    refused("the square is not contiguous", exp_avg_sq=wide)
    refused("count from 1", step=0)
    refused(r"the mean is \(3,\)", exp_avg=torch.zeros(3))
    refused("a parameter is torch.float64", parameter=torch.zeros(4, 3, dtype=torch.float64))
    refused(r"the radii are \(3, 2\)", radii=torch.zeros(3, 2, dtype=torch.int32))
