"""What the engine thread owns: the state, the open run, and the work that takes many phases.

Only the engine thread touches this. Work in phases (a step, an evaluation, a save) serves views
between its phases, and within those that take long; how it is asked for is `run_commands`' and
`run_opening`'s business.
"""

import logging
import time
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

from engine import messages as m
from engine.errors import EngineError, ExportError, TrainingError
from engine.export.splat_files import Written
from engine.inbox import Inbox
from engine.memory import give_back_memory, is_out_of_memory, out_of_memory_sentence
from engine.messages import Event, PhotoScore, State
from engine.open_run import OpenRun
from engine.outbox import Outbox
from engine.run.journal import GESTURE_SECONDS
from engine.run_pictures import RunPictures
from engine.step_reports import StepReports
from engine.training.densification import RefineCounts
from engine.training.evaluation import mean_score
from engine.training.schedule import is_multiple
from engine.training.step_result import StepResult

Phase = TypeVar("Phase")

_log = logging.getLogger(__name__)


class _GivenUp(Exception):
    """What is under way is dropped for a command that cannot wait."""


class Session:
    """State, run and everything that is told about them."""

    def __init__(self, inbox: Inbox, outbox: Outbox) -> None:
        self.inbox = inbox
        self.state = State.EMPTY
        self.run: OpenRun | None = None
        self.run_id = 0
        self.pause_at: int | None = None  # the step at which training pauses by itself
        self.urgent_waits = False  # behind the command that is being answered
        self._outbox = outbox
        self._reports = StepReports()
        self._pictures = RunPictures(inbox, outbox.put_frame, self.notice)

    # --- telling ---------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """Steps done in the open run; 0 without one."""
        return self.run.step if self.run else 0

    def publish(self, event: Event) -> None:
        """Send an event, after the metrics of the steps before it."""
        self._publish_steps()
        self._outbox.publish(event)

    def notice(self, message: str | None) -> None:
        """Tell the user something that stops nothing; None tells nothing."""
        if message:
            _log.info("%s", message)
            self.publish(m.Noticed(self.run_id, message))

    def warn(self, message: str | None) -> None:
        """Tell the user something that must not be missed; None tells nothing."""
        if message:
            _log.warning("%s", message)
            self.publish(m.Warned(self.run_id, message))

    def set_state(self, new: State) -> None:
        """Go to another state and say so."""
        old, self.state = self.state, new
        if new is State.TRAINING:
            self._reports.begin(time.perf_counter())
        elif self.run is not None:
            self.notice(self.run.flush_logs())
        if old is not new:
            _log.info("%s at step %d", new.value, self.step)
            self.publish(m.StateChanged(self.run_id, old, new, self.step))

    def report_error(self, error: BaseException, details: str = "") -> None:
        """Tell of an error; which state follows is the caller's business."""
        details = details or "".join(traceback.format_exception(error))
        if isinstance(error, EngineError):
            message, path = str(error), error.path
        else:
            message = f"An unexpected error stopped the engine: {type(error).__name__}: {error}"
            if self.run is not None:
                message += f". The model of step {self.step:,} is kept and can be saved."
            path = None
        _log.error("%s\n%s", message, details)
        self.publish(m.Failed(self.run_id, message, details, path, self.step))

    def fail(self, error: BaseException, details: str = "") -> None:
        """An error stopped what was going on: the last good state of a run is kept.

        When memory ran out the run is paused, so that it can go on with less.
        """
        self.settle()
        if is_out_of_memory(error) and not isinstance(error, EngineError):
            error = _memory_error(error, self.step)
            paused = True
        else:
            paused = is_out_of_memory(error)
        self.report_error(error, details)
        if paused:
            give_back_memory(error)
        if self.state is State.CLOSING:
            return
        if self.run is None:
            self.set_state(State.EMPTY)
        else:
            self.set_state(State.PAUSED if paused else State.FAILED)

    def _publish_steps(self) -> None:
        gpu = self.run.gpu.read() if self.run is not None else None
        steps = self._reports.take(self.run_id, time.perf_counter(), self._pictures.share(), gpu)
        if steps is not None:
            self._outbox.publish(steps)

    # --- views -----------------------------------------------------------------------------------

    def serve_view(self) -> bool:
        """Draw the picture that is due, if one is; whether one was drawn."""
        return self._pictures.serve(self.run, training=self.state is State.TRAINING)

    def idle_seconds(self) -> float | None:
        """How long nothing needs doing while nothing trains and nobody asks; None: for ever."""
        waits = [self._pictures.wait_seconds()]
        if self.run is not None and self.run.has_gesture:
            waits.append(GESTURE_SECONDS)
            self.notice(self.run.end_stale_gesture())
        return min((seconds for seconds in waits if seconds is not None), default=None)

    def _interrupted(self) -> bool:
        """Between two phases: serve a view; whether a command waits that cannot wait longer."""
        self.serve_view()
        return self.urgent_waits or self.inbox.has_urgent()

    def _cut(self, run: OpenRun, phases: Iterator[Phase]) -> Iterator[Phase]:
        """The phases; kernels are interrupted between two of their tasks as phases are.

        No parameter moves in such a kernel, so that a view shows one model all the same. Raises
        _GivenUp, out of the kernel, when a command waits that cannot wait longer.
        """

        def serve() -> float | None:
            start = time.perf_counter()
            if self._interrupted():
                raise _GivenUp
            run.trainer.was_interrupted(time.perf_counter() - start)
            return self._pictures.due_in(run)

        while True:
            with self.inbox.attention.heeded(serve, self._pictures.due_in(run)):
                try:
                    phase = next(phases)
                except StopIteration:
                    return
            yield phase

    # --- training --------------------------------------------------------------------------------

    def train(self, run: OpenRun) -> None:
        """One step and what is due after it; a waiting urgent command drops the step."""
        if run.is_complete:  # the number of iterations was lowered
            self.finish(run, evaluate=True)
            return
        phases, before = run.trainer.phases(), run.step
        try:
            is_done = not any(self._interrupted() for _ in self._cut(run, phases))
        except _GivenUp:
            is_done = False
        finally:
            phases.close()  # drops the step unless it is done
            run.version += run.step < before  # and the one before, when that turns out to be bad
        if is_done:
            run.version += 1
            if self._is_milestone(run):
                run.trainer.settle()
        self._tell_results(run)
        if is_done:
            self._after_step(run)

    def settle(self) -> None:
        """Know how the last step ended; when it failed, the run is back at the one before."""
        run = self.run
        if run is None:
            return
        before = run.step
        try:
            run.trainer.settle()
        except Exception as error:  # noqa: BLE001  whatever it is must reach the user
            run.version += run.step < before
            self.fail(error)
        self._tell_results(run)

    def _is_milestone(self, run: OpenRun) -> bool:
        """Whether what follows the step that is done must know how it ended."""
        cadence = run.settings.run
        return (
            run.is_complete
            or is_multiple(run.step, cadence.evaluation_interval)
            or is_multiple(run.step, cadence.checkpoint_interval)
            or (self.pause_at is not None and run.step >= self.pause_at)
        )

    def _tell_results(self, run: OpenRun) -> None:
        for result in run.trainer.take_results():
            self._reports.add(result)
            self.notice(run.log_step(result))
            self._publish_changes(run, result)

    def _after_step(self, run: OpenRun) -> None:
        if self._reports.is_due(time.perf_counter()):
            self._publish_steps()
            self.notice(run.end_stale_gesture())
        cadence = run.settings.run
        if run.is_complete:
            self.finish(run, evaluate=True)
            return
        if is_multiple(run.step, cadence.evaluation_interval):
            self.evaluate(run)
        if is_multiple(run.step, cadence.checkpoint_interval):
            self.save(run)
        if self.pause_at is not None and run.step >= self.pause_at:
            self.pause_at = None
            self.set_state(State.PAUSED)

    def _publish_changes(self, run: OpenRun, result: StepResult) -> None:
        step, run_id = result.step, run.run_id
        if result.sh_raised:
            self.publish(m.ShDegreeRaised(run_id, step, result.sh_degree))
        if result.grown is not None:
            self._publish_growth(run_id, step, result.grown)
        if result.refined is not None:
            self.publish_refine(run, result.refined)
        if result.reset is not None:
            self.publish(m.OpacitiesReset(run_id, step, result.reset))
        for message in result.notices:
            self.notice(message)

    def _publish_growth(self, run_id: int, step: int, divisor: int) -> None:
        size = f"1/{divisor} of their width and height" if divisor > 1 else "their full size"
        message = f"Loss not comparable across step {step:,}: the photos now have {size}."
        _log.info("%s", message)
        self.publish(m.PhotosGrew(run_id, message, step, divisor))

    def changed_by_hand(self, run: OpenRun) -> None:
        """A command has changed the model: it is another version, and shown soon."""
        run.version += 1
        self._pictures.hasten(run.version)

    def publish_refine(self, run: OpenRun, counts: RefineCounts, *, by_hand: bool = False) -> None:
        """Tell what a refine did, and that the splat cap held it back where that is news."""
        self.publish(
            m.Refined(
                *(run.run_id, run.step, counts.cloned, counts.split, counts.pruned, counts.splats),
                refused=counts.refused,
                by_hand=by_hand,
            )
        )
        cap = run.settings.densify.max_splats
        if counts.refused == 0 or (run.cap_told == cap and not by_hand):
            return
        run.cap_told = cap
        self.notice(
            f"The splat cap of {cap:,} is reached: raise it to let the model grow. At step "
            f"{run.step:,} there are {counts.splats:,} splats, and {counts.refused:,} more would "
            "have been cloned or split."
        )

    def evaluate(self, run: OpenRun) -> None:
        """Measure the held-out photos one by one; given up when an urgent command waits."""
        scores: list[PhotoScore] = []
        try:
            for score in self._cut(run, run.trainer.evaluate()):
                scores.append(score)
                if self._interrupted():
                    return
        except _GivenUp:
            return
        if not scores:
            return
        psnr, ssim = mean_score(scores)
        run.evaluated_step = run.step
        self.notice(run.log_evaluation(psnr, ssim))
        self.publish(m.Evaluated(run.run_id, run.step, psnr, ssim, tuple(scores)))

    # --- results ---------------------------------------------------------------------------------

    def save(self, run: OpenRun) -> bool:
        """Write a checkpoint; whether it stands. An error is told and stops nothing else."""
        return self._try_to_save(run) is None

    def _try_to_save(self, run: OpenRun, elsewhere: Path | None = None) -> EngineError | None:
        """Write a checkpoint; why it does not stand, if it does not. An error is told as well.

        With `elsewhere` the run goes on in a new folder under that one.
        """
        start = time.perf_counter()
        self.notice(run.flush_logs())
        try:
            if elsewhere is None:
                self.warn(run.restore_folder())
            if not self._work_through(run.save_elsewhere(elsewhere) if elsewhere else run.save()):
                return ExportError("Saving was given up.")
        except EngineError as error:
            self.report_error(error)
            return error
        path = run.folder.checkpoint_path(run.step)
        _log.info("saved %s", path)
        self.publish(m.Saved(run.run_id, run.step, path, time.perf_counter() - start))
        return None

    def _save_rest(self, run: OpenRun, elsewhere: Path | None) -> EngineError | None:
        """Write what closing would lose; why that failed, if it did."""
        if run.is_unsaved or elsewhere is not None:
            return self._try_to_save(run, elsewhere)
        try:
            run.keep_held()
        except EngineError as error:
            self.report_error(error)
            return error
        return None

    def _work_through(self, phases: Generator[str, None, None]) -> bool:
        """Save phase by phase; given up only when somebody closes without saving."""
        for _ in phases:
            self.serve_view()
            if self.inbox.must_abandon_saving():
                phases.close()
                return False
        return True

    def export(self, run: OpenRun, path: Path) -> bool:
        """Write the splats; whether the file stands. An error is told and stops nothing else.

        Given up when somebody closes without saving.
        """
        phases = run.export(path)
        try:
            while True:
                next(phases)
                self.serve_view()
                if self.inbox.must_abandon_saving():
                    phases.close()
                    return False
        except StopIteration as done:
            written: Written = done.value
        except ExportError as error:
            self.report_error(error)
            return False
        if written.dropped:
            self.notice(
                f"{written.dropped} broken splats (values that are not finite, or without a "
                f"rotation) were left out of {path.name}."
            )
        self.publish(m.Exported(run.run_id, run.step, path, written.splats))
        return True

    def finish(self, run: OpenRun, *, evaluate: bool) -> None:
        """End the run: checkpoint, splat file, and final scores, unless there are such already."""
        self.pause_at = None
        checkpoint = run.folder.checkpoint_path(run.step)
        export = run.folder.export_path(run.step)
        saved = (checkpoint.exists() and not run.is_unsaved) or self.save(run)
        exported = run.is_exported or self.export(run, export)
        if evaluate and run.evaluated_step != run.step:
            self.evaluate(run)
        if not (saved and exported):
            self.set_state(State.FAILED)
            return
        self.set_state(State.FINISHED)
        self.publish(m.Finished(run.run_id, run.step, checkpoint, export))

    def close_run(
        self, *, save: bool, keep_photos: bool = False, elsewhere: Path | None = None
    ) -> EngineError | None:
        """End the open run, if there is one; what is unsaved is saved first if asked.

        When it cannot be saved the run stays open, and the error says why. Somebody who asked
        to close without saving meanwhile gets just that.
        """
        run = self.run
        if run is None:
            return None
        problem = self._save_rest(run, elsewhere) if save else None
        if problem is not None and not self.inbox.must_abandon_saving():
            return problem
        self._publish_steps()
        self.notice(run.close(keep_photos=keep_photos))
        self.run = None
        self.pause_at = None
        self._outbox.drop_frame()
        self._pictures.forget()
        return None


def _memory_error(error: BaseException, step: int) -> TrainingError:
    wrapped = TrainingError(out_of_memory_sentence(step))
    wrapped.__cause__ = error
    return wrapped
