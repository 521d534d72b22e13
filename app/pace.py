"""How often a part of the window shows numbers anew while they keep coming."""

import math
import time

from PySide6.QtCore import QObject, Qt, QTimer, Signal

EARLY_SHARE = 0.1  # of the interval: numbers that come so much too early need not wait for it
LATE_MS = 500  # how long the end of the interval waits for numbers that may be about to come


class Pace(QObject):
    """Emits `due` soon after `ask`, but about every `interval_ms` at most.

    What is due when numbers come is emitted in the same turn of the event loop, before anything is
    painted. So parts that follow the same numbers are painted together: painting the window twice
    costs nearly twice as much, however small the parts are.
    """

    due = Signal()
    _soon = Signal()

    def __init__(self, interval_ms: int, parent: QObject) -> None:
        super().__init__(parent)
        self._interval = interval_ms / 1000
        self._emitted_at = -math.inf
        self._is_soon = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._emit)
        self._soon.connect(self._emit, Qt.ConnectionType.QueuedConnection)

    def ask(self) -> None:
        """Something new is there to be shown."""
        left = self._emitted_at + self._interval - time.monotonic()
        if left <= EARLY_SHARE * self._interval:
            self.hurry()
        elif not self._timer.isActive():
            self._timer.start(math.ceil(1000 * left) + LATE_MS)

    def hurry(self) -> None:
        """Something new must be shown now."""
        if not self._is_soon:
            self._is_soon = True
            self._soon.emit()

    def _emit(self) -> None:
        self._is_soon = False
        self._timer.stop()
        self._emitted_at = time.monotonic()
        self.due.emit()
