"""What a listener without a window makes of the events: progress on standard error, the outcome."""

import threading
from pathlib import Path

from engine import messages as m
from engine.cli_progress import Progress
from engine.dataset.findings import finding_line, grouped
from engine.dataset.scene import Finding
from engine.engine_thread import Engine
from engine.messages import Event, PhotoSummary, State
from engine.settings import Settings

LISTEN_SECONDS = 0.2  # how long to wait for events at a time
_ENDED_BY_ERROR = (State.FAILED, State.EMPTY, State.PAUSED)


class HeadlessRun:
    """Follows one run. `error` is the last error told, whether or not it ended the run."""

    def __init__(self, engine: Engine, woken: threading.Event, notice: str = "") -> None:
        """Listen to `engine`, whose wake-up sets `woken`; `notice` is said when the run begins."""
        self.engine = engine
        self._woken = woken
        self._notice = notice
        self.finished: m.Finished | None = None
        self.evaluated: m.Evaluated | None = None
        self.folder: Path | None = None
        self.settings: Settings | None = None
        self.held_out: tuple[PhotoSummary, ...] = ()
        self.splats = 0
        self.error = ""
        self.details = ""
        self.has_failed = False
        self._untold: list[str] = []  # errors that may not end the run
        self._told: set[str] = set()
        self._is_stopped = False
        self._is_closing = False
        self.is_unsaved = False  # the last steps could not be saved
        self.step = 0
        self.saved_step = 0  # of the last checkpoint; 0: there is none
        self.has_changed = False  # steps or settings were saved since the run was opened
        self.findings: tuple[Finding, ...] = ()
        self._state = State.EMPTY
        self._progress = Progress()

    def close(self) -> None:
        """End the progress bar."""
        self._progress.close()

    def listen(self) -> bool:
        """Wait a little for events and act on them; whether the engine is still there."""
        self._woken.wait(LISTEN_SECONDS)
        self._woken.clear()
        are_fresh = not self._untold  # the change of state follows an error, maybe not at once
        for event in self.engine.take_events():
            self._take(event)
        if self._untold and (self.has_failed or self._is_stopped or not are_fresh):
            self._tell_errors()
        self._progress.tick()
        return not self._is_stopped

    def _take(self, event: Event) -> None:
        match event:
            case m.LoadingProgressed():
                self._progress.preparing(event.stage, event.done, event.total)
            case m.SceneOpened():
                self._opened(event)
            case m.RunStarted():
                self._begun(event)
            case m.Stepped():
                self._stepped(event)
            case m.Refined():
                self.splats = event.splats
            case m.Evaluated():
                self.evaluated = event
                self._say(f"Step {event.step:,}: held-out PSNR {event.psnr:.2f} dB.")
            case m.Exported():
                self.splats = event.splats
            case m.Saved():
                self.saved_step, self.has_changed = event.step, True
                self._say(f"Saved {event.path} after step {event.step:,}.")
            case m.Noticed():
                self._say(event.message)
            case m.CommandRefused():
                self.error, self.has_failed = event.reason, True
            case m.Failed() if self._is_closing:
                self._closing_failed(event)
            case m.Failed():
                self.error, self.details = event.message, event.details
                self._untold.append(event.message)
                self.has_failed |= self._state is State.EMPTY  # which does not change then
            case m.StateChanged():
                self._state, self._is_closing = event.new, event.new is State.CLOSING
                if self.error and event.new in _ENDED_BY_ERROR:
                    self.has_failed = True
            case m.Finished():
                self.finished = event
            case m.EngineStopped():
                self._is_stopped = True

    def _tell_errors(self) -> None:
        """Each error once, but for the one that ended the run: that is the program's last word."""
        for message in self._untold:
            is_last_word = self.has_failed and message == self.error
            if message not in self._told and not is_last_word:
                self._told.add(message)
                self._say(f"error: {message}")
        self._untold = []

    def _closing_failed(self, event: m.Failed) -> None:
        """Nobody is there to make room on the disk: end without saving, and say so."""
        if self.has_failed:
            self._untold.append(event.message)  # what ended the run stays the last word
        else:
            self.error, self.details, self.has_failed = event.message, event.details, True
        self.is_unsaved = True
        self.engine.post(m.Shutdown(save=False))

    def _opened(self, event: m.SceneOpened) -> None:
        """Tell the findings; those that come again, with others found in the photos, only once."""
        self.held_out = tuple(photo for photo in event.photos if photo.held_out)
        told = set(self.findings)
        self.findings = event.findings
        for finding in grouped(item for item in event.findings if item not in told):
            if finding.severity != "ok":
                self._say(finding_line(finding))

    def _begun(self, event: m.RunStarted) -> None:
        """Nothing is said of a run before: what is refused gets its reason alone."""
        self.folder, self.settings = event.folder, event.settings
        self.step = self.saved_step = event.step
        self.splats = event.splats
        if self._notice:
            self._say(self._notice)
        iterations = event.settings.run.iterations
        if event.step < iterations:
            self._say(f"Training on {event.device} into {event.folder}.")
        else:
            self._say(
                f"The run in {event.folder} is at step {event.step:,} already, its last: no step "
                f"is done. Give --iterations above {event.step:,} to train on."
            )
        self._progress.begin(event.step, iterations)

    def _stepped(self, event: m.Stepped) -> None:
        self.step, self.splats = int(event.steps[-1]), int(event.splats[-1])
        self._progress.step(self.step, f"loss {event.loss[-1]:.4f}, {self.splats:,} splats")

    def _say(self, message: str) -> None:
        self._progress.say(message)
