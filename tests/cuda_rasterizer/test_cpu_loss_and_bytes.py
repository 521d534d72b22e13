"""The fused loss and the conversion to bytes against plain torch."""

import pytest
import torch

from cuda_rasterizer import RasterizerError, l1_ssim, native, to_rgba8

pytestmark = pytest.mark.usefixtures("fast_backend")

# (height, width, channels): a pixel, no full window, an odd number of rows, more rows and columns
# than a task takes, channels that no kernel is made for.
SIZES = [(1, 1, 3), (3, 17, 1), (31, 17, 3), (153, 40, 3), (12, 600, 3), (12, 9, 5), (1, 900, 1)]


def pictures(size: tuple[int, int, int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(sum(size))
    drawn = [torch.rand(size, generator=random, dtype=torch.float64).to(dtype) for _ in range(2)]
    return drawn[0].requires_grad_(), drawn[1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_loss_and_its_gradient_equal_those_of_the_reference(size, weight):
    render, target = pictures(size, torch.float64)
    truth = l1_ssim(render, target, weight, backend="reference")
    (expected,) = torch.autograd.grad(truth.loss, render)
    found = l1_ssim(render, target, weight, backend="cpu")
    (gradient,) = torch.autograd.grad(found.loss, render)
    for name in ("loss", "l1", "ssim"):
        assert getattr(found, name).item() == pytest.approx(getattr(truth, name).item(), rel=1e-12)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-14)


def test_the_loss_in_float32_is_good_to_rounding():
    render, target = pictures((48, 64, 3), torch.float32)
    truth = l1_ssim(render.double(), target.double(), 0.2, backend="reference")
    found = l1_ssim(render, target, 0.2, backend="cpu")
    (gradient,) = torch.autograd.grad(found.loss, render)
    (expected,) = torch.autograd.grad(truth.loss, render)
    assert found.loss.item() == pytest.approx(truth.loss.item(), rel=1e-6)
    # Differences of squares in float32 leave five digits of a variance.
    torch.testing.assert_close(
        gradient, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max())
    )


@pytest.mark.usefixtures("each_instruction_set")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_photo_of_bytes_has_the_bits_of_the_same_photo_in_numbers(dtype):
    render, _ = pictures((16, 300, 3), dtype)
    # Every byte there is, in every channel.
    photo = (torch.arange(render.numel()) % 256).to(torch.uint8).view(render.shape)
    found = l1_ssim(render, photo, 0.2, backend="cpu")
    (gradient,) = torch.autograd.grad(found.loss, render)
    expected = l1_ssim(render, photo.to(dtype) / 255, 0.2, backend="cpu")
    assert found.loss.item() == expected.loss.item()
    assert torch.equal(gradient, *torch.autograd.grad(expected.loss, render))


def test_photos_of_bytes_are_understood_by_the_reference_too():
    render, _ = pictures((20, 30, 3), torch.float64)
    photo = torch.randint(256, render.shape).to(torch.uint8)
    truth = l1_ssim(render, photo, 0.2, backend="reference")
    found = l1_ssim(render, photo, 0.2, backend="cpu")
    assert found.loss.item() == pytest.approx(truth.loss.item(), rel=1e-12)


def test_a_gradient_does_not_tell_where_the_strips_of_the_tasks_meet():
    # Strips and blocks write into one picture: each must leave the numbers of the others alone.
    render, target = pictures((153, 600, 3), torch.float32)
    whole = l1_ssim(render, target, 0.2, backend="cpu")
    (gradient,) = torch.autograd.grad(whole.loss, render)
    rows = native.constants()["loss_rows"]  # of a block; a strip has no more than 320 columns
    part = slice(rows - 20, rows + 20), slice(110, 460)
    inner = render[part].detach().clone().requires_grad_()
    alone = l1_ssim(inner, target[part].contiguous(), 0.2, backend="cpu")
    (expected,) = torch.autograd.grad(alone.loss, inner)
    # Ten pixels in from its border the part knows nothing of where it was cut out: the same sums in
    # the same order, scaled by another number of pixels, which is one rounding more.
    found = gradient[part][10:-10, 10:-10]
    expected = expected[10:-10, 10:-10] * (inner.numel() / render.numel())
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-6 * float(found.abs().max()))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_squared_error_is_of_the_render_within_bounds(backend):
    render = torch.tensor([[[3.0, 0.5, -2.0]]], dtype=torch.float64)
    target = torch.tensor([[[0.9, 0.7, 0.3]]], dtype=torch.float64)
    terms = l1_ssim(render, target, 0.2, backend=backend)
    assert terms.squared_error.item() == pytest.approx((0.1**2 + 0.2**2 + 0.3**2) / 3)
    assert not terms.squared_error.requires_grad


def test_a_picture_compared_with_itself_has_no_loss_and_no_gradient():
    render, _ = pictures((20, 20, 3), torch.float64)
    terms = l1_ssim(render, render.detach().clone(), 0.2, backend="cpu")
    terms.loss.backward()
    assert terms.loss.item() == pytest.approx(0.0, abs=1e-12)
    assert terms.ssim.item() == pytest.approx(1.0, abs=1e-12)
    assert render.grad.abs().max() < 1e-12


def test_the_gradient_scales_with_what_comes_from_above():
    render, target = pictures((15, 15, 3), torch.float64)
    loss = l1_ssim(render, target, 0.5, backend="cpu").loss
    (once,) = torch.autograd.grad(loss, render, retain_graph=True)
    (thrice,) = torch.autograd.grad(3 * loss, render)
    torch.testing.assert_close(thrice, 3 * once)


def test_pictures_that_do_not_match_are_refused():
    with pytest.raises(RasterizerError, match=r"the render is \(4, 4, 3\)"):
        l1_ssim(torch.rand(4, 4, 3), torch.rand(4, 5, 3), 0.2, backend="cpu")
    target = torch.rand(4, 4, 3, requires_grad=True)
    with pytest.raises(RasterizerError, match="the target asks for a gradient"):
        l1_ssim(torch.rand(4, 4, 3), target, 0.2, backend="cpu")


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_bytes_are_rounded_limited_and_opaque(backend):
    picture = torch.tensor([[[0.0, 0.5, 1.0], [-3.0, 7.0, 0.2], [float("nan"), 0.1, 0.9]]])
    rgba = to_rgba8(picture, backend=backend)
    assert rgba.tolist() == [[[0, 128, 255, 255], [0, 255, 51, 255], [0, 26, 230, 255]]]
