"""What the badge and the note of a setting's row say. No Qt here.

A badge appears only where there is something to say: when a change takes hold, when an interval
comes round next, or that a setting waits for a restart.
"""

import dataclasses
import enum

from app.panels.setting_values import format_number
from engine.setting_info import Applies, SettingInfo, Value
from engine.settings import Settings
from engine.training import schedule


class Tone(enum.Enum):
    """How a badge looks: amber for what the user changed, blue for what is to come."""

    CHANGED = "badge-changed"
    COMING = "badge"


@dataclasses.dataclass(frozen=True)
class Badge:
    """A short text in a pill, and a shorter one for a narrow panel."""

    text: str
    tone: Tone
    short: str = ""


@dataclasses.dataclass(frozen=True)
class RowProgress:
    """What the panel knows about the last change of one setting in this run."""

    pending: bool = False  # posted, not yet acknowledged
    applied_step: int | None = None  # acknowledged at this step
    refined_step: int | None = None  # the first refine after that
    held: bool = False  # waits for a restart


def next_multiple(step: int, interval: int) -> int | None:
    """The first multiple of `interval` after `step`; None when the interval is switched off."""
    return None if interval <= 0 else (step // interval + 1) * interval


def next_refine(step: int, settings: Settings) -> int | None:
    """The next step that refines: a multiple of the interval strictly inside the window."""
    densify = settings.densify
    after = max(step, densify.densify_start)
    coming = next_multiple(after, densify.densify_interval)
    last = min(densify.densify_stop - 1, settings.run.iterations)
    return coming if coming is not None and coming <= last else None


def next_occurrence(name: str, step: int, settings: Settings) -> int | None:
    """When the interval setting `name` comes round next; None for never or for others."""
    iterations = settings.run.iterations
    if name == "densify_interval":
        return next_refine(step, settings)
    if name == "opacity_reset_interval":
        coming = next_multiple(step, settings.opacity_reset.opacity_reset_interval)
        last = min(settings.densify.densify_stop - 1, iterations)
    elif name == "evaluation_interval":
        coming, last = next_multiple(step, settings.run.evaluation_interval), iterations
    elif name == "checkpoint_interval":
        coming, last = next_multiple(step, settings.run.checkpoint_interval), iterations
    elif name in {"coarse_halvings", "coarse_steps", "morton_interval"}:
        return schedule.next_occurrence(name, step, settings, reached=0)
    else:
        return None
    return coming if coming is not None and coming <= last else None


def next_sh_raise(step: int, degree: int, settings: Settings) -> int | None:
    """When the SH degree rises next; None once the maximum is in use."""
    harmonics = settings.spherical_harmonics
    if degree >= harmonics.sh_degree_max:
        return None
    coming = next_multiple(step, harmonics.sh_interval)
    return coming if coming is not None and coming <= settings.run.iterations else None


def badge(
    info: SettingInfo, progress: RowProgress, step: int, sh_degree: int, settings: Settings
) -> Badge | None:
    """What there is to say about one row while a run is open; None for nothing."""
    if info.applies is Applies.RESTART:
        return Badge("restart", Tone.CHANGED if progress.held else Tone.COMING)
    if progress.pending:
        return Badge("pending…", Tone.CHANGED)
    if info.applies is Applies.NEXT_REFINE:
        return _refine_badge(progress, step, settings)
    if info.name == "sh_interval":
        coming = next_sh_raise(step, sh_degree, settings)
    else:
        coming = next_occurrence(info.name, step, settings)
    if coming is not None:
        tone = Tone.COMING if progress.applied_step is None else Tone.CHANGED
        return Badge(f"next at step {coming:,}", tone, f"at {coming:,}")
    if progress.applied_step is not None:
        return _applied(progress.applied_step)
    return None


def _applied(step: int) -> Badge:
    return Badge(f"applied at step {step:,}", Tone.CHANGED, f"at step {step:,}")


def _refine_badge(progress: RowProgress, step: int, settings: Settings) -> Badge | None:
    coming = next_refine(step, settings)
    if progress.applied_step is None:
        return None if coming is None else Badge("next refine", Tone.COMING)
    if progress.refined_step is not None:
        return _applied(progress.refined_step)
    if coming is None:
        return Badge("no refine to come", Tone.CHANGED)
    return Badge(f"next refine · step {coming:,}", Tone.CHANGED, f"next · {coming:,}")


def cap_note(value: Value, splats: int, is_reached: bool) -> str:
    """What the splat cap's row says when the cap has stopped the growth; "" otherwise."""
    if splats > int(value):
        return f"Below the count of {splats:,}: growth has stopped."
    return "Reached: growth has stopped. Raise it for more splats." if is_reached else ""


def rate_note(position_lr: float, extent: float) -> str:
    """The position rate in force, in the unit of its row; "" before the first step."""
    if position_lr <= 0:
        return ""
    if extent > 0:
        return f"in force now: {format_number(position_lr / extent, 3)}"
    return f"in force now: {format_number(position_lr, 3)}, extent included"
