"""How close two pictures are, as the field measures it: on values clamped to [0, 1].

The loss is another matter and is never clamped: that would silence over-bright pixels.
"""

import math

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from cuda_rasterizer import l1_ssim


def decibel(squared: float) -> float:
    """The peak signal-to-noise ratio of a mean square; infinite for none."""
    return math.inf if squared == 0.0 else -10.0 * math.log10(squared)


@torch.no_grad()
def psnr_and_ssim(
    render: Float[Tensor, "h w 3"],
    photo: Float[Tensor, "h w 3"] | UInt8[Tensor, "h w 3"],
    backend: str,
) -> tuple[float, float]:
    """Of the clamped render; bytes of a photo are meant in 255ths.

    The peak signal-to-noise ratio in dB is infinite when they are equal; structural similarity
    (Wang et al. 2004) is zero padded as in 3DGS.
    """
    terms = l1_ssim(render.detach().clamp(0.0, 1.0), photo, 1.0, backend=backend)
    _, _, similarity, squared = terms.values.tolist()
    return decibel(squared), similarity
