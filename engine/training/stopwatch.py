"""Measuring steps without the time that others take between their phases, or within one."""

import time
from collections.abc import Generator

from engine.training.step_result import Phase


class Stopwatch:
    """Measures one step after the other; stands still while a phase is yielded."""

    def __init__(self) -> None:
        self._seconds = self._others_seconds = 0.0
        self._started = time.perf_counter()

    def start(self) -> None:
        """A step begins."""
        self._seconds = 0.0
        self._started = time.perf_counter()

    def pause(self, phase: Phase) -> Generator[Phase, None, None]:
        """Yield the phase with the watch standing still."""
        self._seconds += time.perf_counter() - self._started
        yield phase
        self._started = time.perf_counter()

    def leave_out(self, seconds: float) -> None:
        """Do not count so much of the phase under way."""
        self._started += seconds

    def owe(self, seconds: float) -> None:
        """Do not count so much of this step and, as far as that is too much, of those behind it."""
        self._others_seconds += seconds

    def stop(self) -> float:
        """The step's own seconds."""
        measured = self._seconds + time.perf_counter() - self._started
        others = min(measured, self._others_seconds)
        self._others_seconds -= others
        return measured - others
