"""The numbers behind the plots: bounded in memory, reduced to the pixels a plot has. No Qt here.

Every step of a run is kept as floats until `CAPACITY` points are there; then neighbours are
averaged in pairs, and from there on each stored point stands for twice as many steps. A run of
any length so costs the same memory, and no part of it is forgotten.
"""

import dataclasses
import enum
from collections.abc import Sequence

import numpy as np

from engine.messages import HistoryRead

CAPACITY = 200_000
MARK_LIMIT = 2_000
FEWEST_TIMED, MOST_TIMED = 10, 500  # steps to a speed, and speeds, of steps done before
SAME_CHANGE_STEPS = 20
COLUMNS = ("step", "total", "l1", "dssim", "psnr", "splats")


class MarkKind(enum.Enum):
    """What a vertical line in the plots stands for."""

    RESET = "reset"
    DEGREE = "degree"
    CHANGE = "change"
    LOSS = "loss"  # a change after which the loss is not comparable with before


@dataclasses.dataclass(frozen=True)
class Mark:
    """Something that happened at a step; of a changed setting also its values."""

    step: int
    kind: MarkKind
    subject: str
    before: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        """A line about it, such as `opacity: 0.025 → 0.05`."""
        apart = " (loss not comparable across)" if self.kind is MarkKind.LOSS else ""
        return f"{self.subject}{self._values}{apart}"

    @property
    def short_text(self) -> str:
        """The same without the group of a setting and without what a change means."""
        return f"{self.subject.rpartition(', ')[2]}{self._values}"

    @property
    def _values(self) -> str:
        return f": {self.before} → {self.after}" if self.after else ""


class Table:
    """Columns of floats of equal length, averaged in pairs whenever they reach `capacity`."""

    def __init__(self, columns: Sequence[str], capacity: int = CAPACITY) -> None:
        self._names = tuple(columns)
        self._capacity = capacity
        self._rows = np.empty((len(self._names), min(capacity, 1024)))
        self._waiting = np.empty((len(self._names), 0))
        self._stride = 1
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def stride(self) -> int:
        """How many of the values appended make one stored point."""
        return self._stride

    def column(self, name: str) -> np.ndarray:
        """The stored points of one column, read-only."""
        view = self._rows[self._names.index(name), : self._length]
        view.flags.writeable = False
        return view

    def append(self, values: Sequence[np.ndarray]) -> None:
        """Add rows; `values` are the columns in order."""
        rows = np.stack([np.asarray(column, dtype=np.float64) for column in values])
        self._waiting = np.concatenate([self._waiting, rows], axis=1)
        while True:
            whole = self._waiting.shape[1] // self._stride
            room = self._capacity - self._length
            taken = min(whole, room)
            self._store(taken)
            if taken == whole:
                return
            self._halve()

    def _store(self, count: int) -> None:
        used = count * self._stride
        points = self._waiting[:, :used].reshape(len(self._names), count, self._stride)
        self._waiting = self._waiting[:, used:].copy()
        needed = self._length + count
        if needed > self._rows.shape[1]:
            larger = np.empty((len(self._names), min(self._capacity, 2 * needed)))
            larger[:, : self._length] = self._rows[:, : self._length]
            self._rows = larger
        self._rows[:, self._length : needed] = points.mean(axis=2)
        self._length = needed

    def _halve(self) -> None:
        pairs = self._length // 2
        halved = self._rows[:, : 2 * pairs].reshape(len(self._names), pairs, 2).mean(axis=2)
        self._rows[:, :pairs] = halved
        self._length = pairs
        self._stride *= 2


def reduced(
    x: np.ndarray, y: np.ndarray, low: float, high: float, columns: int, smallest: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The curve between `low` and `high` as at most `columns` means of neighbouring points.

    `x` rises. Groups hold at least `smallest` points, which calms a curve that jumps from photo
    to photo. One point beyond either edge is kept, so that a zoomed curve reaches the border.
    """
    first = max(int(np.searchsorted(x, low)) - 1, 0)
    last = min(int(np.searchsorted(x, high, side="right")) + 1, len(x))
    x, y = x[first:last], y[first:last]
    size = max(smallest, -(-len(x) // max(columns, 1)))
    if size <= 1 or len(x) <= 2:
        return x, y
    starts = np.arange(0, len(x), size)
    counts = np.diff(np.append(starts, len(x)))
    return np.add.reduceat(x, starts) / counts, np.add.reduceat(y, starts) / counts


def nearest(x: np.ndarray, at: float) -> int | None:
    """The index of the value of the rising array `x` nearest to `at`; None when empty."""
    if not len(x):
        return None
    index = min(int(np.searchsorted(x, at)), len(x) - 1)
    if index > 0 and at - x[index - 1] < x[index] - at:
        index -= 1
    return index


class MetricsHistory:
    """Everything plotted of one run."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Forget everything; done when a run begins."""
        self.steps = Table(COLUMNS, self._capacity)
        self.speed = Table(("step", "speed"), self._capacity // 8)
        self.evaluations = Table(("step", "psnr"), self._capacity // 8)
        self.marks: list[Mark] = []
        self.last_step = 0

    def add_steps(
        self,
        steps: np.ndarray,
        loss: np.ndarray,
        l1: np.ndarray,
        ssim: np.ndarray,
        psnr: np.ndarray,
        splats: np.ndarray,
        steps_per_second: float,
    ) -> None:
        """Add the metrics of some steps, arrays of equal length (n,); `ssim` is the value."""
        if not len(steps):
            return
        self.steps.append((steps, loss, l1, 1.0 - np.asarray(ssim), psnr, splats))
        self.last_step = int(steps[-1])
        if steps_per_second > 0:
            self.speed.append((np.array([self.last_step]), np.array([steps_per_second])))

    def add_past(self, past: HistoryRead) -> None:
        """Add the steps that the run's folder tells of."""
        self.add_steps(past.steps, past.loss, past.l1, past.ssim, past.psnr, past.splats, 0.0)
        for step, psnr in zip(past.evaluated_steps, past.evaluated_psnr, strict=True):
            self.add_evaluation(int(step), float(psnr))
        group = max(FEWEST_TIMED, len(past.steps) // MOST_TIMED)
        steps, seconds = past.steps[::group].astype(float), past.seconds[::group]
        spent = np.diff(seconds)
        timed = spent > 0  # and known
        self.speed.append((steps[1:][timed], np.diff(steps)[timed] / spent[timed]))

    def add_evaluation(self, step: int, psnr: float) -> None:
        """Add a measurement on the held-out photos; one more at the same step adds nothing."""
        known = self.evaluations.column("step")
        if len(known) and known[-1] == step:
            return
        self.evaluations.append((np.array([step]), np.array([psnr])))

    def add_mark(self, mark: Mark) -> None:
        """Remember that something happened.

        Changes of one setting in quick succession, as a drag makes them, become one mark; the
        oldest marks go when there are too many.
        """
        last = self.marks[-1] if self.marks else None
        if (
            last is not None
            and mark.after
            and (last.kind, last.subject) == (mark.kind, mark.subject)
            and mark.step - last.step <= SAME_CHANGE_STEPS
        ):
            self.marks[-1] = dataclasses.replace(last, after=mark.after)
        else:
            self.marks.append(mark)
        del self.marks[:-MARK_LIMIT]
