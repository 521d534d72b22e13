"""One long run, scored on the way: after so many minutes of training and after so many steps.

The engine trains as it does for the window and the command line, with both cores; what evaluating
takes does not count as training.
"""

import bisect
import dataclasses
import threading
from collections import deque
from pathlib import Path

from engine import messages as m
from engine.engine_thread import Engine
from engine.messages import Event
from engine.settings import Settings

LISTEN_SECONDS = 0.2  # how long to wait for events at a time
THREADS = 2


@dataclasses.dataclass(frozen=True)
class Marks:
    """When a run is scored: training seconds, rising, and one number of steps.

    A run ends when it has passed all, or `patience` seconds after the last of `seconds` where the
    steps take longer; it is then scored once more where it is.
    """

    seconds: tuple[float, ...] = (120.0, 300.0, 600.0)
    steps: int = 7_000
    patience: float = 300.0

    @property
    def end(self) -> float:
        """The training seconds after which nothing is waited for."""
        return self.seconds[-1] + self.patience


QUICK = Marks(seconds=(1.0, 2.0), steps=200, patience=2.0)  # to see that it runs


@dataclasses.dataclass(frozen=True)
class Score:
    """What a run was worth at a mark, or at its end before it came to `Marks.steps`."""

    mark: str
    seconds: float  # of training, when it was scored
    steps: int
    splats: int
    psnr: float
    ssim: float


class LongRun:
    """Trains `scene` by `settings` in a run of its own in `folder` and scores it at `marks`."""

    def __init__(self, scene: Path, settings: Settings, folder: Path, marks: Marks) -> None:
        """Nothing runs yet."""
        self._opening = m.OpenScene(
            scene,
            settings.updated(
                {
                    "backend": "cpu",
                    "threads": THREADS,
                    "checkpoint_interval": 0,
                    "evaluation_interval": marks.steps,
                }
            ),
            run_folder=folder,
        )
        self._marks = marks
        self._passed = 0  # how many of the marks of time
        self._waiting: deque[str] = deque()  # what the evaluations asked for are of, in their order
        self._scores: list[Score] = []
        self._steps, self._seconds, self._splats = [0], [0.0], [0]
        self._failure = ""
        self._engine = Engine()
        self._woken = threading.Event()

    def scores(self) -> list[Score]:
        """Run to the end; the scores in the order in which they were made.

        Raises:
            SystemExit: the run failed, no photo is held out, or it was over before its marks.
        """
        self._engine.set_wake(self._woken.set)
        self._engine.start()
        self._engine.post(self._opening)
        is_there = True
        while is_there:
            self._woken.wait(LISTEN_SECONDS)
            self._woken.clear()
            for event in self._engine.take_events():
                self._take(event)
                is_there = not isinstance(event, m.EngineStopped)
        if self._failure:
            raise SystemExit(f"{self._opening.path}: {self._failure}")
        return self._scores

    def _take(self, event: Event) -> None:
        match event:
            case m.Stepped():
                self._steps += event.steps.tolist()
                self._seconds += event.seconds.tolist()
                self._splats += event.splats.tolist()
                self._ask_at_marks()
            case m.Evaluated():
                self._score(event)
            case m.Failed():
                self._end(event.message)
            case m.CommandRefused():
                self._end(event.reason)
            case m.Finished():
                self._end(f"the run was over after {event.step:,} steps, before all its marks")

    def _end(self, failure: str = "") -> None:
        self._failure = self._failure or failure
        self._engine.post(m.Shutdown(save=False))

    def _ask_at_marks(self) -> None:
        marks = [*self._marks.seconds, self._marks.end]
        has_come_to_steps = self._steps[-1] >= self._marks.steps
        while self._passed < len(marks) and marks[self._passed] <= self._seconds[-1]:
            mark = marks[self._passed]
            self._passed += 1
            is_end = mark == self._marks.end
            if not (is_end and has_come_to_steps):
                wanting = f", {step_mark(self._marks.steps)} not reached" if is_end else ""
                self._waiting.append(time_mark(mark) + wanting)
                self._engine.post(m.Evaluate())

    def _score(self, event: m.Evaluated) -> None:
        told = {score.mark for score in self._scores}
        if event.step == self._marks.steps and step_mark(event.step) not in told:
            mark = step_mark(event.step)  # the engine evaluates there by itself
        elif self._waiting:
            mark = self._waiting.popleft()
        else:
            return  # a multiple of the number of steps
        row = bisect.bisect_left(self._steps, event.step)
        found = (self._seconds[row], event.step, self._splats[row], event.psnr, event.ssim)
        self._scores.append(Score(mark, *found))
        if len(self._scores) > len(self._marks.seconds):  # one more: of the steps, or of the end
            self._end()


def time_mark(seconds: float) -> str:
    """What a mark of time is called."""
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def step_mark(steps: int) -> str:
    """What a mark of steps is called."""
    return f"{steps:,} steps"
