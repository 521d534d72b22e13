"""The engine: one thread that owns device, model and optimiser, and answers between two steps.

No lock guards the model: what comes in waits in `Inbox`, what goes out is frozen and waits in
`Outbox`. What is open and what takes many phases is `Session`'s; what a command means is in
`run_commands` and `run_opening`.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import torch

from engine import messages as m
from engine.inbox import URGENT, Inbox, Report
from engine.memory import FreedHeap
from engine.messages import Command, Event, Frame, State, View
from engine.outbox import Outbox
from engine.run_commands import CommandRefusal, RunCommands
from engine.run_opening import RunOpening
from engine.session import Session
from engine.states import is_legal, refusal

LOADER_SECONDS = 5.0  # how long a shutdown waits for a loader that was told to stop

_log = logging.getLogger(__name__)
logging.getLogger("engine").setLevel(logging.INFO)  # for the log of the run


class Engine:
    """Satisfies `engine.handle.EngineHandle`: every method may be called from any thread."""

    def __init__(self) -> None:
        self._inbox = Inbox()
        self._outbox = Outbox()
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)

    def start(self) -> None:
        """Start the engine thread; state is EMPTY."""
        self._thread.start()

    def post(self, command: Command) -> None:
        """Queue a command; it is answered by an event, between two steps."""
        self._inbox.post(command)

    def request_view(self, view: View | None) -> None:
        """Ask for a picture; the newest request replaces an older one, None withdraws it."""
        self._inbox.request_view(view)

    def count_window_work(self, seconds: float) -> None:
        """Count the seconds that a window's thread worked into the share of a resting view."""
        self._inbox.count_window_work(seconds)

    def take_events(self) -> list[Event]:
        """The events since the last call, in order."""
        return self._outbox.take_events()

    def take_frame(self) -> Frame | None:
        """The newest finished frame, once."""
        return self._outbox.take_frame()

    def set_wake(self, wake: Callable[[], None] | None) -> None:
        """`wake` is called from the engine thread when events or a frame are waiting."""
        self._outbox.set_wake(wake)

    def join(self, timeout: float) -> bool:
        """Wait for the thread to end; whether it did."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _main(self) -> None:
        torch.set_num_threads(1)  # per thread where torch was built with OpenMP
        session = Session(self._inbox, self._outbox)
        try:
            _Loop(session).run()
        finally:
            session.publish(m.EngineStopped(session.run_id))


class _Loop:
    """The engine thread's own view of the engine."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._commands = RunCommands(session)
        self._opening = RunOpening(session)
        self._heap = FreedHeap()
        self._waiting: deque[Command | Report] = deque()
        self._is_over = False

    def run(self) -> None:
        """Turn until shut down; an error ends a turn, never the thread."""
        while not self._is_over:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001  whatever it is must reach the user
                self._session.fail(error)

    def _turn(self) -> None:
        session = self._session
        self._waiting.extend(session.inbox.take())
        if self._waiting:
            session.settle()
        while self._waiting and not self._is_over:
            item = self._waiting.popleft()
            session.urgent_waits = any(isinstance(other, URGENT) for other in self._waiting)
            self._answer(item)
        if self._is_over:
            return
        self._heap.give_back_when_due()
        if session.state is State.TRAINING and session.run is not None:
            session.serve_view()
            session.train(session.run)
        elif not session.serve_view():
            session.inbox.wait(session.idle_seconds())

    def _answer(self, item: Command | Report) -> None:
        if isinstance(item, Report):
            self._opening.take(item)
            return
        session = self._session
        if not is_legal(item, session.state):
            self._refuse(item, refusal(item, session.state))
            return
        try:
            self._carry_out(item)
        except CommandRefusal as reason:
            self._refuse(item, str(reason), reason.path)

    def _refuse(self, command: Command, reason: str, path: Path | None = None) -> None:
        _log.info("refused %s: %s", type(command).__name__, reason)
        self._session.publish(m.CommandRefused(self._session.run_id, command, reason, path))

    def _carry_out(self, command: Command) -> None:
        run = self._session.run
        match command:
            case m.OpenScene():
                self._opening.open_scene(command)
            case m.ResumeRun():
                self._opening.resume_run(command)
            case m.CancelLoading():
                self._opening.cancel()
            case m.Shutdown():
                self._shut_down(command)
            case _ if run is None:
                self._refuse(command, refusal(command, State.EMPTY))
            case m.Restart():
                self._opening.restart(run, command)
            case _:
                self._commands.carry_out(run, command)

    def _shut_down(self, command: m.Shutdown) -> None:
        """End, unless the run cannot be saved: then wait to be told to save again, or not to."""
        save = command.save
        self._is_over = not save
        self._session.set_state(State.CLOSING)
        self._opening.shut_down(LOADER_SECONDS)
        closed = self._session.close_run(save=save, elsewhere=command.elsewhere) is None
        self._is_over = closed or not save
