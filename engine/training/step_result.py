"""What one training step reports, and the phases between which a view may be served."""

import dataclasses
import enum

from engine.training.densification import RefineCounts


class Phase(enum.Enum):
    """The part of a step that has just been done; no parameter has moved yet."""

    RENDER = "render"
    LOSS = "loss"
    BACKWARD = "backward"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepFacts:
    """What is known of a step without asking the device."""

    step: int
    photo: str
    seconds: float  # training time since step 0, cumulative over resumes
    splats: int
    position_lr: float  # in force, extent included
    sh_degree: int
    sh_raised: bool
    grown: int | None  # photos are larger from this step on: their size divided by this
    refined: RefineCounts | None
    reset: float | None  # the value of an opacity reset at this step


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepResult(StepFacts):
    """One finished step, in plain numbers."""

    loss: float
    l1: float
    ssim: float  # the value, not 1 - value
    psnr: float  # dB, of this step's photo
    unseen: bool  # no splat was visible: nothing was learnt from the photo
    notices: tuple[str, ...]
