"""The checks that stand between a bad step and the model.

A NaN enters through one gradient and is everywhere one step later, so it is caught before the
optimiser runs. Sums are enough: a NaN or an infinity survives being added up.
"""

import math
from collections.abc import Mapping

from engine.errors import TrainingError
from engine.training.gaussians import Gaussians, all_finite

ZERO_GRADIENT_STEPS = 50  # steps in a row without any gradient before the user hears of it


def require_finite_parameters(model: Gaussians, when: str) -> None:
    """Raise TrainingError naming the first parameter that is not finite."""
    name = model.non_finite()
    if name is not None:
        raise TrainingError(
            f"The parameter {name} holds values that are not finite {when}. Go back to an earlier "
            "checkpoint, or start anew with a lower learning rate.",
            value=name,
        )


def require_finite_loss(loss: float, step: int, photo: str) -> None:
    """Raise TrainingError when the loss of a step is not a number."""
    if not math.isfinite(loss):
        raise TrainingError(
            f"The loss of step {step} is {loss} on photo {photo}. The model is kept as it was "
            f"after step {step - 1}; save it, or lower the learning rates and go on.",
            value=loss,
        )


def checked_gradients(model: Gaussians, sums: Mapping[str, float], step: int) -> bool:
    """Whether any gradient is not zero; raises TrainingError when one is not finite.

    `sums` of the gradients by parameter; the gradients are looked at only where those do not tell.
    """
    for name, total in sums.items():
        gradient = getattr(model, name).grad
        if not math.isfinite(total) and not all_finite(gradient):
            raise TrainingError(
                f"The gradient of {name} is not finite at step {step}. The model is kept as it "
                f"was after step {step - 1}; save it, or lower the learning rate of {name} and "
                "go on.",
                value=name,
            )
    if any(sums.values()):
        return True
    return any(bool(getattr(model, name).grad.any()) for name in sums)


class Watchdog:
    """Notices a run that learns nothing because every gradient is zero."""

    def __init__(self, silent_steps: int = 0) -> None:
        self.silent_steps = silent_steps

    def heard(self, alive: bool) -> list[str]:
        """Count one step; a notice when it is the last of too many silent ones."""
        self.silent_steps = 0 if alive else self.silent_steps + 1
        if self.silent_steps != ZERO_GRADIENT_STEPS:
            return []
        return [
            f"Every gradient has been exactly zero for {ZERO_GRADIENT_STEPS} steps: nothing is "
            "being learnt. Check that the cameras see the splats, or try another backend."
        ]
