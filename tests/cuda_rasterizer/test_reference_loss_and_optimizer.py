import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from cuda_rasterizer import reference


def pictures(height: int, width: int, channels: int, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(2, height, width, channels, generator=random, dtype=torch.float64)


def ssim_by_scipy(x: np.ndarray, y: np.ndarray) -> float:
    """Mean SSIM with scipy's Gaussian blur: 11 taps, sigma 1.5, zeros beyond the border."""

    def blur(values: np.ndarray) -> np.ndarray:
        return np.asarray(gaussian_filter(values, sigma=1.5, mode="constant", cval=0.0, radius=5))

    total = []
    for channel in range(x.shape[2]):
        a, b = x[:, :, channel], y[:, :, channel]
        mean_a, mean_b = blur(a), blur(b)
        variance_a, variance_b = blur(a * a) - mean_a**2, blur(b * b) - mean_b**2
        covariance = blur(a * b) - mean_a * mean_b
        total.append(
            (2 * mean_a * mean_b + 0.01**2)
            * (2 * covariance + 0.03**2)
            / ((mean_a**2 + mean_b**2 + 0.01**2) * (variance_a + variance_b + 0.03**2))
        )
    return float(np.mean(total))


@pytest.mark.parametrize("size", [(40, 30, 3), (7, 5, 3), (1, 1, 1), (17, 31, 4)])
def test_ssim_equals_the_one_made_with_scipys_blur(size):
    x, y = pictures(*size)
    _, _, ssim = reference.l1_ssim(x, y, 0.2)
    # Both float64; two orders of summation of 121 taps.
    assert float(ssim) == pytest.approx(ssim_by_scipy(x.numpy(), y.numpy()), abs=1e-12)


def test_the_loss_weighs_l1_against_one_minus_ssim():
    x, y = pictures(20, 25, 3)
    loss, l1, ssim = reference.l1_ssim(x, y, 0.2)
    assert float(l1) == pytest.approx(float((x - y).abs().mean()), rel=1e-14)
    assert float(loss) == pytest.approx(0.8 * float(l1) + 0.2 * (1 - float(ssim)), rel=1e-14)


def test_a_picture_is_wholly_similar_to_itself():
    x, _ = pictures(20, 25, 3)
    loss, l1, ssim = reference.l1_ssim(x, x, 0.2)
    assert float(l1) == 0
    assert float(ssim) == pytest.approx(1.0, abs=1e-12)
    assert float(loss) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_adam_takes_torchs_steps(betas):
    random = torch.Generator().manual_seed(5)
    theirs = torch.nn.Parameter(torch.randn(50, 3, generator=random, dtype=torch.float64))
    ours = theirs.detach().clone()
    exp_avg, exp_avg_sq = torch.zeros_like(ours), torch.zeros_like(ours)
    optimizer = torch.optim.Adam([theirs], lr=0.01, betas=betas, eps=1e-15)
    for step in range(1, 21):
        gradient = torch.randn(50, 3, generator=random, dtype=torch.float64)
        gradient[step] = 0.0
        theirs.grad = gradient.clone()
        optimizer.step()
        reference.adam_step(
            ours,
            gradient,
            exp_avg,
            exp_avg_sq,
            lr=0.01,
            step=step,
            beta1=betas[0],
            beta2=betas[1],
            eps=1e-15,
        )
        # The same formula in another order of operations: float64 rounding, 20 steps of it.
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-13, atol=1e-14)
    state = optimizer.state[theirs]
    torch.testing.assert_close(exp_avg, state["exp_avg"], rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(exp_avg_sq, state["exp_avg_sq"], rtol=1e-13, atol=1e-15)


def test_adam_changes_in_place_and_leaves_the_gradient_alone():
    parameter = torch.ones(4, requires_grad=True)
    gradient = torch.full((4,), 2.0)
    moments = torch.zeros(4), torch.zeros(4)
    reference.adam_step(
        parameter, gradient, *moments, lr=0.1, step=1, beta1=0.9, beta2=0.999, eps=1e-15
    )
    # The first step of Adam has the size of the learning rate, whatever the gradient.
    torch.testing.assert_close(parameter.detach(), torch.full((4,), 0.9))
    assert parameter.is_leaf
    assert (gradient == 2.0).all()
    torch.testing.assert_close(moments[0], torch.full((4,), 0.2))
    torch.testing.assert_close(moments[1], torch.full((4,), 0.004))


def test_adam_has_no_step_for_a_splat_that_never_had_a_gradient():
    parameter = torch.ones(2)
    gradient = torch.tensor([0.0, 1.0])
    moments = torch.zeros(2), torch.zeros(2)
    reference.adam_step(
        parameter, gradient, *moments, lr=0.1, step=1, beta1=0.9, beta2=0.999, eps=1e-15
    )
    assert parameter[0] == 1.0
    assert parameter[1] != 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_bytes_are_rounded_clamped_and_opaque(dtype):
    nan = float("nan")
    values = [0.0, 1.0, -0.5, 1.7, nan, 0.5, 127.4 / 255, 127.6 / 255, 1e30]
    expected = [0, 255, 0, 255, 0, 128, 127, 128, 255]
    color = torch.tensor(values, dtype=dtype).reshape(3, 1, 3)
    rgba = reference.to_rgba8(color)
    assert rgba.dtype == torch.uint8
    assert rgba.shape == (3, 1, 4)
    assert rgba[..., :3].flatten().tolist() == expected
    assert (rgba[..., 3] == 255).all()


def test_every_byte_survives_the_way_through_floats():
    levels = torch.arange(256, dtype=torch.uint8)
    color = (levels.float() / 255)[:, None, None].expand(256, 1, 3)
    assert torch.equal(reference.to_rgba8(color)[:, 0, 0], levels)
