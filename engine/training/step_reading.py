"""The numbers of a step, on their way from the device.

On a GPU every read waits until the device has done all that is queued. So the numbers are sent on
their way behind backward and read one step later, when they have long arrived; a bad step is
stopped on the device meanwhile, by the `StepGuard`. On the CPU they are there at once.
"""

import dataclasses
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from cuda_rasterizer import StepGuard, not_finite
from cuda_rasterizer.step_guard import GRADIENT, SEEN
from engine.training.metrics import decibel
from engine.training.step_result import StepFacts, StepResult
from engine.transfers import NumbersCopy


@dataclasses.dataclass(frozen=True)
class StepReading:
    """What a step found, as plain numbers."""

    loss: float
    l1: float
    ssim: float  # the value, not 1 - value
    psnr: float  # dB
    seen: bool  # whether any splat was visible
    alive: bool  # whether any gradient was not zero
    not_finite: tuple[str, ...]  # names of `step_guard`


class StepNumbers:
    """What a step found, before it is read."""

    def __init__(self, values: Float[Tensor, "4"], guard: StepGuard) -> None:
        """Send the loss's (`LossTerms.values`) and the notes on their way; waits for nothing."""
        self._copy = NumbersCopy(values, guard.flags)

    def read(self) -> StepReading:
        """Waits for the device where they are not there yet."""
        loss, l1, ssim, squared, broken, found = self._copy.read()
        return StepReading(
            loss=loss,
            l1=l1,
            ssim=ssim,
            psnr=decibel(squared),
            seen=bool(int(found) & SEEN),
            alive=bool(int(found) & GRADIENT),
            not_finite=not_finite(int(broken)),
        )


def step_result(facts: StepFacts, found: StepReading, notices: Sequence[str]) -> StepResult:
    """The whole of what is told about a step."""
    return StepResult(
        **vars(facts),
        loss=found.loss,
        l1=found.l1,
        ssim=found.ssim,
        psnr=found.psnr,
        unseen=not found.seen,
        notices=tuple(notices),
    )
