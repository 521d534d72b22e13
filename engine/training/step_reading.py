"""The numbers of a step that decide how it goes on, read from the device at once.

Every read waits until the device has done all that is queued, so there is one a step: after
backward, before anything moves.
"""

import dataclasses
from collections.abc import Mapping

import torch

from cuda_rasterizer import LossTerms, Rendering
from engine.training.gaussians import Gaussians
from engine.training.metrics import decibel


@dataclasses.dataclass(frozen=True)
class StepReading:
    """What a step found, as plain numbers; `gradient_sums` by parameter, of those that have one."""

    loss: float
    l1: float
    ssim: float  # the value, not 1 - value
    psnr: float  # dB
    seen: bool  # whether any splat was visible
    gradient_sums: Mapping[str, float]


@torch.no_grad()
def read_step(rendering: Rendering, terms: LossTerms, model: Gaussians) -> StepReading:
    """Read everything at once; waits for the device."""
    sums = {name: leaf.grad.sum() for name, leaf in model.items() if leaf.grad is not None}
    seen = (rendering.radii[:, 0] > 0).any().to(torch.float32)
    found = terms.loss, terms.l1, terms.ssim, terms.squared_error
    numbers = torch.stack([*found, seen, *sums.values()]).tolist()
    loss, l1, ssim, squared, visible, *rest = numbers
    return StepReading(
        loss=loss,
        l1=l1,
        ssim=ssim,
        psnr=decibel(squared),
        seen=visible > 0,
        gradient_sums=dict(zip(sums, rest, strict=True)),
    )
