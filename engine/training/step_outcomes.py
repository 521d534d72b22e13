"""How the steps of a run end: what is read late, and what puts a bad step back.

On a GPU how a step ended is read in the course of the step behind it, or when nobody goes on. A
step that turns out to be bad takes those behind it along: the run is then what it was before it.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.training import schedule
from engine.training.notices import notices_of_unseen
from engine.training.run_state import StepStart
from engine.training.step_check import require_finite_step
from engine.training.step_reading import StepNumbers, StepReading, step_result
from engine.training.step_result import StepFacts, StepResult

if TYPE_CHECKING:
    from engine.training.trainer import Trainer


@dataclasses.dataclass(frozen=True)
class UnreadStep:
    """A step that is queued on the device; nobody knows yet how it ended.

    Attributes:
        start: what the run was before it.
        numbers: what it found.
        facts: what is known all the same.
        notices: for the user, when it turns out to be good.
    """

    start: StepStart
    numbers: StepNumbers
    facts: StepFacts
    notices: tuple[str, ...]


class StepOutcomes:
    """The step under way, the one not read yet, and the results that nobody has taken.

    Holds no trainer but is given it: a cycle would keep the tensors of a closed run.
    """

    def __init__(self) -> None:
        self._in_step = False
        self._start: StepStart | None = None  # of the step under way
        self._unread: UnreadStep | None = None
        self._results: list[StepResult] = []

    @property
    def has_unread(self) -> bool:
        """Whether it is not known how the last step ended."""
        return self._unread is not None

    @contextlib.contextmanager
    def step(self, trainer: "Trainer") -> Iterator[None]:
        """Around one step: an error in it, or its generator closed, drops it without a trace."""
        self.require_between_steps()
        self._start = StepStart.of(trainer)
        self._in_step = True
        try:
            yield
        except BaseException:
            self._start.put_back(trainer)
            raise
        finally:
            trainer.model.clear_gradients()
            self._start = None
            self._in_step = False

    def ended(
        self,
        facts: StepFacts,
        numbers: StepNumbers,
        found: StepReading | None,
        notices: Sequence[str],
    ) -> None:
        """The step under way is done, or only queued where nothing is `found` yet."""
        if found is not None:
            self._results.append(step_result(facts, found, notices))
        else:
            assert self._start is not None
            self._unread = UnreadStep(self._start, numbers, facts, tuple(notices))

    def settle(self, trainer: "Trainer") -> None:
        """Wait until it is known how the last step ended; see `Trainer.settle`."""
        self.require_between_steps()
        try:
            self.read_last(trainer)
        except BaseException:
            if self._start is not None:
                self._start.put_back(trainer)
            raise
        finally:
            self._start = None

    def take(self) -> list[StepResult]:
        """The steps of which it became known since the last call how they ended, in order."""
        results, self._results = self._results, []
        return results

    def read_last(self, trainer: "Trainer") -> None:
        """Find out how the step before ended, unless that is known.

        Raises TrainingError when it was not finite; from its start the run goes on then.
        """
        unread, self._unread = self._unread, None
        if unread is None:
            return
        facts = unread.facts
        try:
            found = unread.numbers.read()
            require_finite_step(found, facts.step, facts.photo)
        except BaseException:
            self._start = unread.start  # from where to go on
            raise
        if not found.seen:
            trainer.optimizer.take_back_counts(unread.start.moments)
        notices = (*heed(trainer, found, facts.photo), *unread.notices)
        self._results.append(step_result(facts, found, notices))
        if self._start is not None:
            self._start = self._start.with_step_before_read(trainer)

    def require_between_steps(self) -> None:
        """Raise RuntimeError in the middle of a step."""
        if self._in_step:
            raise RuntimeError("a step is under way; close its phases first")

    def require_settled(self) -> None:
        """Raise RuntimeError unless it is known how every step begun has ended."""
        self.require_between_steps()
        if self.has_unread:
            raise RuntimeError("it is not known how the last step ended; settle first")


def may_wait(trainer: "Trainer", step: int) -> bool:
    """Whether how the step ended may be read later; not before splats come, go or fade."""
    return trainer.device.type != "cpu" and not schedule.changes_splats(step, trainer.settings)


def heed(trainer: "Trainer", found: StepReading, photo: str) -> list[str]:
    """What a step found goes into the run's own counts; notices for the user."""
    if found.seen:
        return trainer.watchdog.heard(found.alive)
    trainer.unseen[photo] = trainer.unseen.get(photo, 0) + 1
    return notices_of_unseen(photo, trainer.unseen[photo])
