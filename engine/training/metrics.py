"""How close two pictures are, as the field measures it: on values clamped to [0, 1].

The loss is another matter and is never clamped: that would silence over-bright pixels.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from cuda_rasterizer import l1_ssim


@torch.no_grad()
def squared_error(
    render: Float[Tensor, "h w 3"], photo: Float[Tensor, "h w 3"]
) -> Float[Tensor, ""]:
    """Mean square of the difference of the clamped render, left on the device."""
    return render.detach().clamp(0.0, 1.0).sub_(photo).square_().mean()


def decibel(squared: float) -> float:
    """The peak signal-to-noise ratio of a mean square; infinite for none."""
    return math.inf if squared == 0.0 else -10.0 * math.log10(squared)


def psnr(render: Float[Tensor, "h w 3"], photo: Float[Tensor, "h w 3"]) -> float:
    """Peak signal-to-noise ratio in dB of the clamped render; infinite when they are equal."""
    return decibel(squared_error(render, photo).item())


@torch.no_grad()
def ssim(render: Float[Tensor, "h w 3"], photo: Float[Tensor, "h w 3"], backend: str) -> float:
    """Structural similarity of the clamped render (Wang et al. 2004), zero padded as in 3DGS."""
    terms = l1_ssim(render.detach().clamp(0.0, 1.0), photo, 1.0, backend=backend)
    return float(terms.ssim)
