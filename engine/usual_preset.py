"""Which preset a run has for which nobody named one. Imports torch, which knows the GPUs."""

import dataclasses

from cuda_rasterizer import resolve_backend
from engine.presets import CLASSIC, CPU_FAST


@dataclasses.dataclass(frozen=True)
class PresetChoice:
    """A built-in preset, and why it was chosen; `reason` is a sentence for the user."""

    name: str
    reason: str


def usual_preset(backend: str = "auto") -> PresetChoice:
    """The published recipe where a GPU does the work, the one that suits a CPU elsewhere.

    `backend` is the value of the setting, which need not be one that works here.
    """
    if (resolve_backend("auto") if backend == "auto" else backend) == "cuda":
        return PresetChoice(CLASSIC, "A GPU does the work, so the published recipe is used.")
    return PresetChoice(
        CPU_FAST, f"No GPU does the work, so cheaper steps than the published {CLASSIC} are used."
    )
