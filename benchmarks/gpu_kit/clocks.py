"""Measuring what a device does: by events on its stream, or by wall time where it is the CPU."""

import ctypes
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import torch

from cuda_rasterizer.cuda.launcher import Launcher


class Clock(Protocol):
    """Marks moments between the launches of a stream."""

    def mark(self) -> Any:
        """The moment at which everything queued so far is done."""

    def milliseconds(self, begin: Any, end: Any) -> float:
        """Between two marks, both of which have passed."""

    def wait(self) -> None:
        """Until everything queued is done."""


class EventClock:
    """By events on torch's current stream: waits for nothing while it measures."""

    def mark(self) -> torch.cuda.Event:
        """A recorded event."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Time on the device."""
        return float(begin.elapsed_time(end))

    def wait(self) -> None:
        """For the device."""
        torch.cuda.synchronize()


class WallClock:
    """For a device that is done when a call returns."""

    def mark(self) -> float:
        """Now."""
        return time.perf_counter()

    def milliseconds(self, begin: float, end: float) -> float:
        """Wall time."""
        return 1e3 * (end - begin)

    def wait(self) -> None:
        """There is nothing to wait for."""


def clock_of(device: torch.device) -> Clock:
    """The clock for what runs on a device."""
    return EventClock() if device.type == "cuda" else WallClock()


def median_ms(action: Callable[[], object], clock: Clock, repeats: int, warm_up: int = 2) -> float:
    """Median time of `action`, each repeat by itself."""
    for _ in range(warm_up):
        action()
    marks = []
    for _ in range(repeats):
        begin = clock.mark()
        action()
        marks.append((begin, clock.mark()))
    clock.wait()
    return statistics.median(clock.milliseconds(begin, end) for begin, end in marks)


class TimedLauncher:
    """Passes launches on to another launcher and measures each kernel by its name."""

    def __init__(self, launcher: Launcher, clock: Clock) -> None:
        self._launcher = launcher
        self._clock = clock
        self._marks: list[tuple[str, Any, Any]] = []

    @property
    def device_type(self) -> str:
        """That of the other launcher."""
        return self._launcher.device_type

    def launch(
        self,
        kernel: str,
        params: ctypes.Structure,
        *,
        grid: int,
        block: int,
        shared_bytes: int = 0,
    ) -> None:
        """Launches between two marks."""
        begin = self._clock.mark()
        self._launcher.launch(kernel, params, grid=grid, block=block, shared_bytes=shared_bytes)
        self._marks.append((kernel, begin, self._clock.mark()))

    def take(self) -> dict[str, float]:
        """Milliseconds of each kernel since the last call, its launches added up; waits."""
        self._clock.wait()
        marks, self._marks = self._marks, []
        total: dict[str, float] = defaultdict(float)
        for kernel, begin, end in marks:
            total[kernel] += self._clock.milliseconds(begin, end)
        return dict(total)


def median_by_kernel(
    action: Callable[[], object], timed: TimedLauncher, repeats: int
) -> dict[str, float]:
    """Median milliseconds of each kernel over the repeats of `action`."""
    action()
    timed.take()
    runs = []
    for _ in range(repeats):
        action()
        runs.append(timed.take())
    names = {name for run in runs for name in run}
    return {name: statistics.median(run.get(name, 0.0) for run in runs) for name in sorted(names)}
