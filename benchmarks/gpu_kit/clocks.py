"""Measuring what a device does: by events on its stream, or by wall time where it is the CPU."""

import ctypes
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import torch

from cuda_rasterizer.cuda.launcher import Launcher

HELD_CLOCKS = 600_000  # some 0.4 ms: Python launches a kernel between two events in a tenth of that


class Clock(Protocol):
    """Marks moments between the launches of a stream."""

    def mark(self) -> Any:
        """The moment at which everything queued so far is done."""

    def milliseconds(self, begin: Any, end: Any) -> float:
        """Between two marks, both of which have passed."""

    def wait(self) -> None:
        """Until everything queued is done."""

    def has_passed(self, mark: Any) -> bool:
        """Whether a mark lies behind the device, which then waits for the next launch."""

    def hold(self) -> None:
        """Keep the device busy for longer than a launch takes, so that the next ones queue up."""


class EventClock:
    """By events on torch's current stream: waits for nothing while it measures."""

    # torch gives no types to the calls whose type is ignored here.

    def mark(self) -> torch.cuda.Event:
        """A recorded event."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def milliseconds(self, begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Time on the device."""
        return float(begin.elapsed_time(end))

    def wait(self) -> None:
        """For the device."""
        torch.cuda.synchronize()

    def has_passed(self, mark: torch.cuda.Event) -> bool:
        """Asks without waiting."""
        return bool(mark.query())  # type: ignore[no-untyped-call]

    def hold(self) -> None:
        """By a kernel that only counts clocks."""
        torch.cuda._sleep(HELD_CLOCKS)  # type: ignore[no-untyped-call]


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

    def has_passed(self, mark: float) -> bool:
        """Always."""
        return True

    def hold(self) -> None:
        """Calls take the time that they take."""


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


def empty_ms(clock: Clock, repeats: int = 20) -> float:
    """Median time between two marks with nothing between them, on a device that is kept busy."""
    marks = []
    for _ in range(repeats):
        clock.hold()
        marks.append((clock.mark(), clock.mark()))
    clock.wait()
    return statistics.median(clock.milliseconds(begin, end) for begin, end in marks)


class TimedLauncher:
    """Passes launches on to another launcher and measures each kernel by its name.

    An idle device would count into a kernel's time what Python takes to launch it. So a device that
    has caught up is held for a while first, and kernel and marks queue up behind that; what the
    marks themselves take is `overhead_ms`, and taken off.
    """

    def __init__(self, launcher: Launcher, clock: Clock, overhead_ms: float = 0.0) -> None:
        self._launcher = launcher
        self._clock = clock
        self._overhead_ms = overhead_ms
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
        if not self._marks or self._clock.has_passed(self._marks[-1][2]):
            self._clock.hold()
        begin = self._clock.mark()
        self._launcher.launch(kernel, params, grid=grid, block=block, shared_bytes=shared_bytes)
        self._marks.append((kernel, begin, self._clock.mark()))

    def take(self) -> dict[str, float]:
        """Milliseconds of each kernel since the last call, its launches added up; waits."""
        self._clock.wait()
        marks, self._marks = self._marks, []
        total: dict[str, float] = defaultdict(float)
        for kernel, begin, end in marks:
            total[kernel] += max(0.0, self._clock.milliseconds(begin, end) - self._overhead_ms)
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
