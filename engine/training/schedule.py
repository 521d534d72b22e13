"""When things happen and at which rate: pure functions of the step and the settings.

Everything is absolute in the step, so that a change of a setting holds from the next step on and
nothing is silently rescaled. `step` is the number of the step being done, 1 for the first.
"""

from collections.abc import Callable, Iterable

from engine.setting_info import Applies
from engine.settings import Settings, setting_info

# A step with photos of twice the edge takes so many times as long. Their pixels are four times as
# many, but much of a step is not of pixels: 32, 48 and 101 ms at a quarter, a half and the whole of
# the demo's edge, more splats at each size included.
LONGER_BY_SIZE = 2.0


def position_rate(step: int, settings: Settings, extent: float) -> float:
    """Learning rate of the means at `step`: log-linear from start to end, times the extent.

    After `position_lr_steps` it stays at the end value. An end (or start) of 0 makes it 0 in
    between, as the limit of the formula does.
    """
    rates = settings.learning_rates
    progress = min(max(step / rates.position_lr_steps, 0.0), 1.0)
    falling = rates.position_lr_start ** (1.0 - progress) * rates.position_lr_end**progress
    return float(falling * extent)


def learning_rates(step: int, settings: Settings, extent: float) -> dict[str, float]:
    """The rate in force for every parameter, by the parameter's name."""
    rates = settings.learning_rates
    return {
        "means": position_rate(step, settings, extent),
        "sh_dc": rates.sh_dc_lr,
        "sh_rest": rates.sh_rest_lr,
        "log_scales": rates.scale_lr,
        "rotations": rates.rotation_lr,
        "opacity_logits": rates.opacity_lr,
    }


def is_multiple(step: int, interval: int) -> bool:
    """Whether something that happens every `interval` steps happens at `step`; 0 is never."""
    return interval > 0 and step % interval == 0


def is_refine_step(step: int, settings: Settings) -> bool:
    """Whether splats are cloned, split and pruned at `step`: strictly inside the window."""
    densify = settings.densify
    inside = densify.densify_start < step < densify.densify_stop
    return inside and is_multiple(step, densify.densify_interval)


def is_reset_step(step: int, settings: Settings) -> bool:
    """Whether opacities are lowered at `step`.

    Whenever the step is a multiple of the interval while densifying, and once more at the start
    of densifying on a white background, where early splats hide in the white.
    """
    interval = settings.opacity_reset.opacity_reset_interval
    if interval == 0 or step >= settings.densify.densify_stop:
        return False
    white = settings.loss.background == "white" and step == settings.densify.densify_start
    return is_multiple(step, interval) or (white and step > 0)


def changes_splats(step: int, settings: Settings) -> bool:
    """Whether splats come, go or fade by schedule at `step`."""
    return is_refine_step(step, settings) or is_reset_step(step, settings)


def prunes_by_size(step: int, settings: Settings) -> bool:
    """Whether a refine at `step` also removes huge splats: once a first reset has passed."""
    interval = settings.opacity_reset.opacity_reset_interval
    return 0 < interval < step


def raises_sh(step: int, settings: Settings, reached: int) -> bool:
    """Whether the SH degree, `reached` so far, rises by one at the beginning of `step`."""
    sh = settings.spherical_harmonics
    return is_multiple(step, sh.sh_interval) and reached < sh.sh_degree_max


def halvings(step: int, settings: Settings) -> int:
    """How many times the photo of `step` is halved: fewer and fewer, then never."""
    faster = settings.faster_steps
    return max(0, faster.coarse_halvings - (step - 1) // faster.coarse_steps)


def remaining_steps(step: int, settings: Settings) -> float:
    """The steps after `step`, each counted by what it will take beside the next one."""
    remaining, before = 0.0, step
    size = halvings(step + 1, settings)
    for left in range(size, -1, -1):
        end = settings.run.iterations
        if left > 0:  # the last step at this size
            end = settings.faster_steps.coarse_halvings - left + 1
            end = min(end * settings.faster_steps.coarse_steps, settings.run.iterations)
        remaining += max(0, end - before) * LONGER_BY_SIZE ** (size - left)
        before = max(before, end)
    return remaining


def grown(step: int, settings: Settings) -> int | None:
    """By what the size of the photos is divided from `step` on, when it was more before."""
    now = halvings(step, settings)
    return 1 << now if step > 1 and now < halvings(step - 1, settings) else None


def trains_sh_rest(step: int, settings: Settings) -> bool:
    """Whether the view-dependent colour learns at `step`."""
    return is_multiple(step, settings.faster_steps.sh_rest_interval)


def sorts_splats(step: int, settings: Settings) -> bool:
    """Whether the refine of `step` also sorts: the first at or after a multiple of the interval."""
    interval = settings.faster_steps.morton_interval
    before = step - settings.densify.densify_interval
    since = before if is_refine_step(before, settings) else 0
    return interval > 0 and step // interval > since // interval


def next_occurrence(name: str, step: int, settings: Settings, reached: int) -> int | None:
    """The next step, after `step` done ones, at which the setting `name` will show.

    For intervals that is the next time; for what waits for a refine it is the next refine; None
    when there is none before the last iteration, or when the setting has no such moment.
    """
    last = settings.run.iterations
    if name == "opacity_reset_value":
        name = "opacity_reset_interval"
    if name == "opacity_reset_interval":
        white = settings.densify.densify_start
        regular = _next_multiple(step, settings.opacity_reset.opacity_reset_interval)
        candidates = [regular, white if white > step else None]
        return _first(candidates, last, lambda at: is_reset_step(at, settings))
    if name in {"sh_interval", "sh_degree_max"}:
        at = _next_multiple(step, settings.spherical_harmonics.sh_interval)
        return _first([at], last, lambda at: raises_sh(at, settings, reached))
    if name in {"coarse_halvings", "coarse_steps"}:
        length = settings.faster_steps.coarse_steps
        at = max(step - 1, 0) // length * length + length + 1
        return _first([at], last, lambda at: halvings(at - 1, settings) > 0)
    if name == "morton_interval":
        interval = max(settings.faster_steps.morton_interval, 1)
        passed = step // interval * interval
        refines = [_next_refine(max(step, at - 1), settings) for at in (passed, passed + interval)]
        return _first(
            refines, last, lambda at: is_refine_step(at, settings) and sorts_splats(at, settings)
        )
    if name in {"evaluation_interval", "checkpoint_interval"}:
        return _first([_next_multiple(step, int(settings[name]))], last, lambda at: True)
    if name == "densify_interval" or setting_info(name).applies is Applies.NEXT_REFINE:
        return _first([_next_refine(step, settings)], last, lambda at: is_refine_step(at, settings))
    return None


def _next_refine(step: int, settings: Settings) -> int:
    """The next step that refines, unless densifying has ended by then."""
    interval = settings.densify.densify_interval
    return max(step, settings.densify.densify_start) // interval * interval + interval


def _next_multiple(step: int, interval: int) -> int | None:
    return None if interval <= 0 else (step // interval + 1) * interval


def _first(
    candidates: Iterable[int | None], last: int, happens: Callable[[int], bool]
) -> int | None:
    steps = [at for at in candidates if at is not None and at <= last and happens(at)]
    return min(steps, default=None)
