"""Ctrl+C in the terminal and a polite kill close the window as its own button would.

A signal that arrives before the window waits until it is there; what ends the program before even
this one listens is in `start_signals`.
"""

import signal
import socket
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier, Signal

from app.start_signals import SIGNALS


class Interrupts(QObject):
    """Wakes Qt's loop, which would not see Python's signal handlers by itself."""

    arrived = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.number = 0  # of the signal that arrived, 0: none
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._take)
        self._saved = {number: signal.signal(number, self._note) for number in SIGNALS}
        self._saved_fd = signal.set_wakeup_fd(self._writing.fileno())

    def close(self) -> None:
        """Put everything back."""
        signal.set_wakeup_fd(self._saved_fd)
        for number, handler in self._saved.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        self._reading.close()
        self._writing.close()
        self.deleteLater()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number

    def _take(self) -> None:
        self._reading.recv(64)
        self.arrived.emit()
