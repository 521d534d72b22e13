"""The `reference` backend: everything the kernels do, in plain torch, any float type.

Slow and obvious. It is the truth in tests, and the way to second derivatives. Projection and
blending live in `reference_projection` and `reference_blending`; loss and optimiser step here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from cuda_rasterizer.reference_blending import blend
from cuda_rasterizer.reference_projection import project
from cuda_rasterizer.step_guard import SEEN

if TYPE_CHECKING:
    from jaxtyping import Float, Int32, Int64, UInt8

__all__ = ["adam_step", "blend", "l1_ssim", "project", "ssim_window", "to_rgba8"]

SSIM_WINDOW_SIZE = 11
SSIM_SIGMA = 1.5
SSIM_C1 = 0.01**2
SSIM_C2 = 0.03**2


def l1_ssim(
    render: Float[Tensor, "height width channels"],
    target: Float[Tensor, "height width channels"],
    ssim_weight: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, mean absolute error and mean SSIM of two pictures whose values run from 0 to 1.

    loss = (1 - w) l1 + w (1 - ssim). SSIM as 3DGS computes it: Gaussian window of 11 taps and
    sigma 1.5 a channel, borders padded with zeros, mean over all values (Wang et al. 2004, eq. 13).
    """
    l1 = (render - target).abs().mean()
    ssim = _ssim_map(render, target).mean()
    return (1 - ssim_weight) * l1 + ssim_weight * (1 - ssim), l1, ssim


def ssim_window(channels: int, like: Tensor) -> Float[Tensor, "channels 1 size size"]:
    """The window, summing to 1 a channel, with `like`'s dtype and device and memory of its own.

    `expand` alone would show one channel's memory c times: an in-place change of one channel
    would be one of all, and a kernel that is handed the pointer would read past the end.
    """
    positions = torch.arange(SSIM_WINDOW_SIZE, dtype=like.dtype, device=like.device)
    taps = torch.exp(-((positions - SSIM_WINDOW_SIZE // 2) ** 2) / (2 * SSIM_SIGMA**2))
    taps = taps / taps.sum()
    window = taps[:, None] * taps[None, :]
    return window.expand(channels, 1, SSIM_WINDOW_SIZE, SSIM_WINDOW_SIZE).contiguous()


def _ssim_map(render: Tensor, target: Tensor) -> Tensor:
    """The SSIM (1, c, h, w) of each value's neighbourhood."""
    x = render.permute(2, 0, 1)[None]
    y = target.permute(2, 0, 1)[None]
    channels = x.shape[1]
    window = ssim_window(channels, x)

    def local_mean(values: Tensor) -> Tensor:
        return functional.conv2d(values, window, padding=SSIM_WINDOW_SIZE // 2, groups=channels)

    mean_x, mean_y = local_mean(x), local_mean(y)
    variance_x = local_mean(x * x) - mean_x * mean_x
    variance_y = local_mean(y * y) - mean_y * mean_y
    covariance = local_mean(x * y) - mean_x * mean_y
    luminance = (2 * mean_x * mean_y + SSIM_C1) / (mean_x * mean_x + mean_y * mean_y + SSIM_C1)
    structure = (2 * covariance + SSIM_C2) / (variance_x + variance_y + SSIM_C2)
    return luminance * structure


@torch.no_grad()
def adam_step(
    parameter: Tensor,
    gradient: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    *,
    lr: float,
    step: int,
    beta1: float,
    beta2: float,
    eps: float,
    rows: Int64[Tensor, "rows"] | None = None,
    flags: Int32[Tensor, "2"] | None = None,
) -> None:
    """One step of Adam (Kingma and Ba 2015, algorithm 1) in place; `step` counts from 1.

    With `rows` only those are moved: the others keep their values and their moments. With the
    `flags` of a `StepGuard` nothing moves where something was not finite or nothing was seen.
    """
    if flags is not None:
        changed = (parameter, exp_avg, exp_avg_sq)
        after = [tensor.clone() for tensor in changed]
        adam_step(
            *(after[0], gradient, after[1], after[2]),
            lr=lr,
            step=step,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            rows=rows,
        )
        moves = (flags[0] == 0) & ((flags[1] & SEEN) != 0)
        for tensor, new in zip(changed, after, strict=True):
            tensor.copy_(torch.where(moves, new, tensor))
        return
    if rows is not None:
        moved = [tensor[rows] for tensor in (parameter, gradient, exp_avg, exp_avg_sq)]
        adam_step(*moved, lr=lr, step=step, beta1=beta1, beta2=beta2, eps=eps)
        parameter[rows], exp_avg[rows], exp_avg_sq[rows] = moved[0], moved[2], moved[3]
        return
    exp_avg.mul_(beta1).add_(gradient, alpha=1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    denominator = exp_avg_sq.sqrt() / (1 - beta2**step) ** 0.5 + eps
    parameter.addcdiv_(exp_avg, denominator, value=-lr / (1 - beta1**step))


@torch.no_grad()
def to_rgba8(color: Float[Tensor, "height width 3"]) -> UInt8[Tensor, "height width 4"]:
    """A picture as opaque bytes: clamped to [0, 1], rounded, NaN as 0."""
    levels = (color.nan_to_num(nan=0.0).clamp(0, 1) * 255 + 0.5).floor().to(torch.uint8)
    return torch.cat([levels, torch.full_like(levels[..., :1], 255)], dim=-1)
