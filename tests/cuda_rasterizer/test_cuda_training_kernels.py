"""The loss, Adam and the conversion to bytes on the emulator, against the CPU and plain torch."""

import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import cpu_backend, cuda_backend, debug, reference
from cuda_rasterizer.kernel_arguments import AdamGroup
from tests.cuda_emulator.launcher import Order
from tests.cuda_rasterizer.test_adam_groups import copies, random_groups, random_radii

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("emulated", "fast_backend", "checked")]

# (height, width, channels): a pixel, no full window, rows longer than a block, pictures taller than
# a strip, more channels than a block takes at once.
SIZES = [(1, 1, 3), (3, 17, 1), (31, 17, 3), (101, 90, 3), (12, 9, 5), (7, 300, 1), (50, 20, 33)]
RATES = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-15}


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poisons fresh memory, and looks at everything that a kernel leaves."""
    monkeypatch.setattr(debug, "_is_on", True)


def pictures(size: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(sum(size))
    render, target = torch.rand(2, *size, generator=random)
    # Where both are alike the difference has no slope.
    render[1::3, ::2] = target[1::3, ::2]
    return render, target


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_loss_and_its_gradient_equal_those_of_the_reference(size, weight):
    render, target = pictures(size)
    exact = render.double().requires_grad_()
    truth = torch.stack(reference.l1_ssim(exact, target.double(), weight))
    (expected,) = torch.autograd.grad(truth[0], exact)
    terms, saved = cuda_backend.l1_ssim(render, target, weight, for_backward=True)
    # A sum of float32 numbers, each good to 1e-6 after differences of squares.
    torch.testing.assert_close(terms[:3].double(), truth.detach(), rtol=3e-6, atol=3e-6)
    gradient = cuda_backend.l1_ssim_backward(saved, weight, torch.tensor(3.0))
    # Differences of squares in float32 leave five digits of a variance.
    largest = float(expected.abs().max())
    torch.testing.assert_close(gradient.double(), 3 * expected, rtol=1e-3, atol=3e-4 * largest)


@pytest.mark.parametrize("size", SIZES)
def test_a_photo_of_bytes_has_the_bits_of_the_same_photo_in_numbers(size):
    render, target = pictures(size)
    photo = (target * 255).to(torch.uint8)
    terms, saved = cuda_backend.l1_ssim(render, photo, 0.2, for_backward=True)
    expected, plain = cuda_backend.l1_ssim(render, photo / 255, 0.2, for_backward=True)
    assert torch.equal(terms, expected)
    gradient = cuda_backend.l1_ssim_backward(saved, 0.2, torch.tensor(1.0))
    assert torch.equal(gradient, cuda_backend.l1_ssim_backward(plain, 0.2, torch.tensor(1.0)))


@pytest.mark.parametrize("size", SIZES)
def test_the_squared_error_is_of_the_render_within_bounds(size):
    render, target = pictures(size)
    render = render * 3 - 1
    terms, _ = cuda_backend.l1_ssim(render, target, 0.2, for_backward=False)
    expected = (render.double().clamp(0, 1) - target).square().mean()
    assert terms[3].item() == pytest.approx(expected.item(), rel=1e-6)  # float32 rounding


def test_the_terms_alone_are_the_same():
    render, target = pictures((60, 40, 3))
    with_maps, _ = cuda_backend.l1_ssim(render, target, 0.2, for_backward=True)
    alone, saved = cuda_backend.l1_ssim(render, target, 0.2, for_backward=False)
    assert torch.equal(alone, with_maps)
    assert saved is None


@pytest.mark.parametrize(("wrong", "noted"), [(0.5, 0), (math.nan, 64), (math.inf, 64)])
def test_whether_the_loss_is_finite_is_noted_beside_what_was_noted_before(wrong, noted):
    render, target = pictures((31, 17, 3))
    render[30, 16, 2] = wrong
    flags = torch.tensor([2, 1], dtype=torch.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(debug, "_is_on", False)  # which would refuse such terms
        for backend in (cuda_backend, cpu_backend):
            found = flags.clone()
            backend.l1_ssim(render, target, 0.2, for_backward=True, flags=found)
            assert found.tolist() == [2 + noted, 1]


def test_no_bit_of_the_loss_depends_on_the_order_of_blocks_and_warps(emulated):
    render, target = pictures((101, 90, 3))
    terms, saved = cuda_backend.l1_ssim(render, target, 0.2, for_backward=True)
    gradient = cuda_backend.l1_ssim_backward(saved, 0.2, torch.tensor(1.0))
    with emulated.ordered(Order(4)):
        again, saved = cuda_backend.l1_ssim(render, target, 0.2, for_backward=True)
        found = cuda_backend.l1_ssim_backward(saved, 0.2, torch.tensor(1.0))
    assert torch.equal(again, terms)
    assert torch.equal(found, gradient)


def test_a_picture_compared_with_itself_has_no_loss_and_no_gradient():
    render, _ = pictures((20, 20, 3))
    terms, saved = cuda_backend.l1_ssim(render, render.clone(), 0.2, for_backward=True)
    assert terms[0].item() == pytest.approx(0.0, abs=1e-6)
    assert terms[2].item() == pytest.approx(1.0, abs=1e-6)
    gradient = cuda_backend.l1_ssim_backward(saved, 0.2, torch.tensor(1.0))
    # Of a gradient that would be 1 / 1200 for a difference anywhere.
    assert gradient.abs().max() < 1e-7


def unaligned(groups: list[AdamGroup]) -> list[AdamGroup]:
    """The same numbers, each tensor a little behind where a fresh one lies."""

    def moved(tensor: Tensor) -> Tensor:
        room = torch.empty(tensor.numel() + 1)
        room[1:] = tensor.flatten()
        return room[1:].view(tensor.shape)

    return [
        AdamGroup(
            *(moved(t) for t in (g.parameter, g.gradient, g.exp_avg, g.exp_avg_sq)), g.lr, g.step
        )
        for g in groups
    ]


@pytest.mark.parametrize("only_seen", [False, True])
@pytest.mark.parametrize("is_aligned", [True, False])
def test_adam_moves_every_group_as_the_cpu_does_to_the_bit(only_seen, is_aligned):
    truth = random_groups()
    found = copies(truth) if is_aligned else unaligned(truth)
    radii = random_radii() if only_seen else None
    cpu_backend.adam_step(truth, **RATES, radii=radii)
    cuda_backend.adam_step(found, **RATES, radii=radii)
    for mine, theirs in zip(found, truth, strict=True):
        for name in ("parameter", "exp_avg", "exp_avg_sq"):
            assert torch.equal(getattr(mine, name), getattr(theirs, name)), name


def test_adam_reads_no_gradient_of_an_unseen_splat():
    groups, radii = random_groups(), random_radii()
    for group in groups:
        group.gradient[radii[:, 0] == 0] = math.nan
    cuda_backend.adam_step(groups, **RATES, radii=radii)
    assert all(group.parameter.isfinite().all() for group in groups)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_adam_moves_few_numbers_and_skips_empty_groups(count):
    truth = [*random_groups(count=count), *random_groups(count=3), *random_groups(count=count)]
    found = copies(truth)
    cpu_backend.adam_step(truth, **RATES, radii=None)
    cuda_backend.adam_step(found, **RATES, radii=None)
    for mine, theirs in zip(found, truth, strict=True):
        assert torch.equal(mine.parameter, theirs.parameter)


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (33, 41), (2, 1024)])
@pytest.mark.parametrize("is_aligned", [True, False])
def test_bytes_are_those_of_the_reference(size, is_aligned):
    random = torch.Generator().manual_seed(2)
    room = torch.rand(size[0] * size[1] * 3 + 1, generator=random) * 1.4 - 0.2
    room[::17] = math.nan
    color = (room[:-1] if is_aligned else room[1:]).view(*size, 3)
    assert torch.equal(cuda_backend.to_rgba8(color), reference.to_rgba8(color))
