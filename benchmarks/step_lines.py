"""The time of a training step line by line: what runs is charged to the innermost line it is in.

So the lines of a step add up to the whole, and what no line names is "the rest".
"""

import contextlib
import ctypes
import dataclasses
import functools
import gc
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from cuda_rasterizer import native
from cuda_rasterizer.cpu_step import CpuPicture
from engine.training import trainer as trainer_module
from engine.training.run_state import StepStart
from engine.training.step_reading import StepNumbers
from engine.training.trainer import Trainer

REST = "the rest"
PART_OF_KERNEL = {
    "project": "projection",
    "bin_count": "binning and sorts",
    "bin_fill": "binning and sorts",
    "blend": "blending",
    "l1_ssim": "loss",
    "blend_backward": "blending backward",
    "project_backward": "projection backward",
    "adam": "Adam",
}
PARTS = tuple(dict.fromkeys(PART_OF_KERNEL.values()))
LINE_OF_KERNEL = {**PART_OF_KERNEL, "add_screen_gradients": "statistics for densifying"}

# (owner, name, line) of what the engine calls in a step, kernels aside.
ENGINE_CALLS: tuple[tuple[Any, str, str], ...] = (
    (StepStart, "of", "remembering the step's start"),
    (trainer_module, "draw_step", "drawing: torch and Python"),
    (trainer_module, "target_picture", "the photo"),
    (trainer_module, "l1_ssim_with_gradient", "loss: torch and Python"),
    (CpuPicture, "differentiate", "backward: torch and Python"),
    (StepNumbers, "__init__", "reading the step"),
    (StepNumbers, "read", "reading the step"),
    (Trainer, "_observe", "statistics for densifying"),
    (Trainer, "_optimize", "Adam: its arguments"),
)
ENGINE_LINES = tuple(dict.fromkeys(line for *_, line in ENGINE_CALLS))


class Lines:
    """Seconds of one step by line; `clock` gives those of the wall or of the thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._clock = clock
        self._open: list[str] = []
        self._since = 0.0

    @contextlib.contextmanager
    def line(self, name: str) -> Iterator[None]:
        """What runs within, but for lines inside it."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    @contextlib.contextmanager
    def step(self, calls: Iterable[tuple[Any, str, str]] = ()) -> Iterator[None]:
        """A step: kernels are lines, and so are the `calls`; everything is as before afterwards."""
        self.seconds.clear()
        with contextlib.ExitStack() as undo:
            for owner, name, line in calls:
                undo.callback(setattr, owner, name, vars(owner)[name])
                setattr(owner, name, self._timed(vars(owner)[name], line))
            undo.callback(setattr, native, "call", native.call)
            native.call = self._timed_kernels(native.call)
            with self.line(REST):
                yield

    def _charge(self) -> None:
        now = self._clock()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def _timed(self, function: Any, line: str) -> Any:
        if isinstance(function, classmethod):
            return classmethod(self._timed(function.__func__, line))

        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            with self.line(line):
                return function(*arguments, **named)

        return timed

    def _timed_kernels(self, plain: Callable[..., None]) -> Callable[..., None]:
        def timed(kernel: native.KernelName, dtype: torch.dtype, params: ctypes.Structure) -> None:
            with self.line(LINE_OF_KERNEL[kernel]):
                plain(kernel, dtype, params)

        return timed


@dataclasses.dataclass(frozen=True)
class Way:
    """How a step is timed: by which clock, after what preparation."""

    clock: Callable[[], float]
    prepare: Callable[[], object] = lambda: None


def median_steps(
    step: Callable[[], object],
    repeats: int,
    ways: Sequence[Way],
    *,
    steps_a_turn: int = 1,
    calls: Iterable[tuple[Any, str, str]] = (),
    between: Callable[[], None] = lambda: None,
) -> list[dict[str, float]]:
    """For each way, milliseconds of each line and of the "whole": medians.

    The ways take turns, so that a machine whose speed changes is as fast for all of them; `between`
    runs before every round.
    """
    calls = tuple(calls)
    rows: list[dict[str, list[float]]] = [defaultdict(list) for _ in ways]
    step()
    for _ in range(repeats):
        between()
        for way, times in zip(ways, rows, strict=True):
            way.prepare()
            lines = Lines(way.clock)
            for _ in range(steps_a_turn):
                with lines.step(calls):
                    step()
                for line, seconds in lines.seconds.items():
                    times[line].append(1e3 * seconds)
                times["whole"].append(1e3 * sum(lines.seconds.values()))
    return [{line: statistics.median(found) for line, found in times.items()} for times in rows]


def median_step(
    step: Callable[[], object], repeats: int, clock: Callable[[], float]
) -> dict[str, float]:
    """As `median_steps`, by one clock."""
    return median_steps(step, repeats, [Way(clock)])[0]


def resident_bytes() -> int | None:
    """Main memory of this process, what is free in it given back; None where nobody tells."""
    gc.collect()
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
    return _status("VmRSS")


def peak_bytes(action: Callable[[], object]) -> int | None:
    """Main memory of this process at most while `action` runs; None where nobody tells."""
    forget = Path("/proc/self/clear_refs")
    if not os.access(forget, os.W_OK):
        action()
        return None
    forget.write_text("5", encoding="ascii")  # the highest mark begins anew
    action()
    return _status("VmHWM")


def _status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
