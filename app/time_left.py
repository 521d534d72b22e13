"""How long a run will still take, from the speed of late. No Qt here."""

import math

from engine.messages import Stepped
from engine.settings import Settings
from engine.training.schedule import LONGER_BY_SIZE, halvings, remaining_steps

LATELY_SECONDS = 20.0  # by when what was measured has faded to a third


class TimeLeft:
    """Follows the steps of one run.

    The speed is a mean over training time that fades, so that a busy moment moves the end of the
    run little, and a model that has grown moves it within half a minute.
    """

    def __init__(self) -> None:
        self._steps = 0.0  # done lately, each counted by what it would take at the present size
        self._seconds = 0.0
        self._size = 0  # how often the photos are halved

    def add(self, event: Stepped, settings: Settings) -> None:
        """Take in steps that were done with `settings`."""
        count, speed = len(event.steps), event.steps_per_second
        if not count or speed <= 0:
            return
        elapsed = count / speed
        fading = math.exp(-elapsed / LATELY_SECONDS)
        self._resize(halvings(int(event.steps[-1]), settings))
        self._steps = self._steps * fading + count
        self._seconds = self._seconds * fading + elapsed

    def seconds(self, step: int, settings: Settings) -> float:
        """From `step` to the last iteration; NaN when not known."""
        if self._seconds == 0:
            return math.nan
        longer = LONGER_BY_SIZE ** (self._size - halvings(step + 1, settings))
        return remaining_steps(step, settings) * longer * self._seconds / self._steps

    def _resize(self, size: int) -> None:
        """Count the steps before by what they would take now."""
        self._steps *= LONGER_BY_SIZE ** (size - self._size)
        self._size = size
