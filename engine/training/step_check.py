"""The checks that stand between a bad step and the model.

A NaN enters through one gradient and is everywhere one step later. The `StepGuard` of the run keeps
the optimiser from following it; here is what the user is told then.
"""

from collections.abc import Mapping
from typing import Final

from cuda_rasterizer.step_guard import LOSS
from engine.errors import TrainingError
from engine.training.gaussians import Gaussians
from engine.training.step_reading import StepReading

PARAMETER_OF: Final[Mapping[str, str]] = {
    "means": "means",
    "sh_dc": "sh_dc",
    "sh_rest": "sh_rest",
    "scales": "log_scales",
    "quaternions": "rotations",
    "opacities": "opacity_logits",
}
"""The model's name for what the rasteriser calls by the key."""

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


def require_finite_step(found: StepReading, step: int, photo: str) -> None:
    """Raise TrainingError when the loss of a step or one of its gradients is not finite."""
    if LOSS in found.not_finite:
        raise TrainingError(
            f"The loss of step {step} is {found.loss} on photo {photo}. The model is kept as it "
            f"was after step {step - 1}; save it, or lower the learning rates and go on.",
            value=found.loss,
        )
    names = [PARAMETER_OF[name] for name in found.not_finite]
    if names:
        listed = f"gradient of {names[0]} is"
        if len(names) > 1:
            listed = f"gradients of {', '.join(names[:-1])} and {names[-1]} are"
        raise TrainingError(
            f"The {listed} not finite at step {step}, on photo {photo}. The model is kept as it "
            f"was after step {step - 1}; save it, or lower the learning rates and go on.",
            value=names[0],
        )


class Watchdog:
    """Notices a run that learns nothing because every gradient is zero."""

    def __init__(self) -> None:
        self.silent_steps = 0

    def heard(self, alive: bool) -> list[str]:
        """Count one step; a notice when it is the last of too many silent ones."""
        self.silent_steps = 0 if alive else self.silent_steps + 1
        if self.silent_steps != ZERO_GRADIENT_STEPS:
            return []
        return [
            f"Every gradient has been exactly zero for {ZERO_GRADIENT_STEPS} steps: nothing is "
            "being learnt. Check that the cameras see the splats, or try another backend."
        ]
