"""The engine as its users see it: commands and view requests in, events and frames out.

`engine.engine_thread.Engine` is the real one; tests of the window use a scripted one.
"""

from collections.abc import Callable
from typing import Protocol

from engine.messages import Command, Event, Frame, View


class EngineHandle(Protocol):
    """Every method may be called from any thread and returns at once (`join` excepted)."""

    def start(self) -> None:
        """Start the engine thread; state is EMPTY."""

    def post(self, command: Command) -> None:
        """Queue a command; it is answered by an event, between two steps."""

    def request_view(self, view: View | None) -> None:
        """Ask for a picture; the newest request replaces an older one, None withdraws it.

        The request stands: while the preview is live, frames of it keep coming.
        """

    def count_window_work(self, seconds: float) -> None:
        """Count the seconds that a window's thread worked into the share of a resting view."""

    def take_events(self) -> list[Event]:
        """The events since the last call, in order. Never loses one; metrics come merged."""

    def take_frame(self) -> Frame | None:
        """The newest finished frame, once; None when there is no new one."""

    def set_wake(self, wake: Callable[[], None] | None) -> None:
        """`wake` is called from the engine thread when events or a frame are waiting.

        It is called once until `take_events` and `take_frame` are called again.
        """

    def join(self, timeout: float) -> bool:
        """Wait for the thread to end; whether it did."""
