"""Measuring a step without the time that others take between its phases, or within one."""

import time
from collections.abc import Generator

from engine.training.step_result import Phase


class Stopwatch:
    """Runs from its making; stands still while a phase is yielded."""

    def __init__(self) -> None:
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

    def stop(self) -> float:
        """Seconds measured."""
        return self._seconds + time.perf_counter() - self._started
