"""The engine as the widgets see it: commands go down, events and frames come up as signals.

The engine calls `set_wake`'s function from its own thread; a queued signal brings the call into
the GUI thread, where events and the newest frame are taken. Nothing is refused here: which
commands are legal is the engine's table, and its refusals come back as events.
"""

import sys

from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.handle import EngineHandle
from engine.messages import (
    Command,
    EngineStopped,
    Event,
    State,
    StateChanged,
    Stepped,
    View,
)

LOCK_SECONDS = 0.0005  # Python's own 5 ms are a quarter of a step on the demo


class TrainingSession(QObject):
    """Owns the `EngineHandle` on behalf of the window."""

    event_arrived = Signal(object)  # Event, in order
    frame_arrived = Signal(object)  # Frame, the newest
    state_changed = Signal(object)  # State
    stopped = Signal()  # the engine thread has ended its work

    _woken = Signal()

    def __init__(self, engine: EngineHandle, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self.state = State.EMPTY
        self.run_id = 0
        self.step = 0
        self.has_stopped = False
        self._woken.connect(self.take, Qt.ConnectionType.QueuedConnection)
        engine.set_wake(self._woken.emit)

    def start(self) -> None:
        """Start the engine thread; it shares Python's lock with this one in short turns."""
        sys.setswitchinterval(LOCK_SECONDS)
        self._engine.start()

    @Slot(object)
    def post(self, command: Command) -> None:
        """Hand a command to the engine."""
        self._engine.post(command)

    @Slot(object)
    def request_view(self, view: View | None) -> None:
        """Ask for a picture; None asks for no more."""
        self._engine.request_view(view)

    @Slot(float)
    def count_window_work(self, seconds: float) -> None:
        """Tell how long this thread has worked."""
        self._engine.count_window_work(seconds)

    @Slot()
    def take(self) -> None:
        """Take and re-emit what the engine has; called by the wake-up."""
        events = self._engine.take_events()
        frame = self._engine.take_frame()
        for event in events:
            self._take_event(event)
        if frame is not None and frame.run_id >= self.run_id:
            self.frame_arrived.emit(frame)

    @Slot()
    def give_up(self) -> None:
        """Count the engine as stopped: because it said so, or because nobody waits any longer."""
        if not self.has_stopped:
            self.has_stopped = True
            self.stopped.emit()

    def close(self, timeout: float) -> bool:
        """Listen no longer and wait for the engine thread; whether it ended in `timeout` s."""
        self._engine.set_wake(None)
        return self._engine.join(timeout)

    def _take_event(self, event: Event) -> None:
        if 0 < event.run_id < self.run_id:
            return  # of a run that is gone
        self.run_id = max(self.run_id, event.run_id)
        if isinstance(event, StateChanged):
            self.state = event.new
            self.step = event.step
        elif isinstance(event, Stepped) and len(event.steps):
            self.step = int(event.steps[-1])
        self.event_arrived.emit(event)
        if isinstance(event, StateChanged):
            self.state_changed.emit(event.new)
        elif isinstance(event, EngineStopped):
            self.give_up()
