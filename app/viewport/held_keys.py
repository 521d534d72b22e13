"""Which keys are held down, whatever a keyboard's repeating makes of it."""

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QKeyEvent

RELEASE_MS = 40  # after which no press that belongs to a release is still under way


class HeldKeys(QObject):
    """Tells of a key once when it goes down, and once when it comes up.

    Under X a key that is held repeats as a release and a press of one time stamp. Qt marks them as
    repeated only where it finds both waiting at once; while the window is busy it often does not,
    and they look like a hand's. So a release counts once no such press has come for a moment.
    """

    went_down = Signal(int)  # Qt.Key
    came_up = Signal(int)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._down: set[int] = set()
        self._released: dict[int, int] = {}  # when, by the events' clock, of those about to come up
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(RELEASE_MS)
        self._timer.timeout.connect(self._let_up)

    def __contains__(self, key: int) -> bool:
        """Whether it is held."""
        return key in self._down

    def press(self, event: QKeyEvent) -> bool:
        """Take a press; False where it is a repeat of one before."""
        key, released = event.key(), self._released.pop(event.key(), None)
        if event.isAutoRepeat() or (released is not None and event.timestamp() <= released):
            return False
        if released is not None:
            self._come_up(key)
        if key not in self._down:
            self._down.add(key)
            self.went_down.emit(key)
        return True

    def release(self, event: QKeyEvent) -> None:
        """Take a release, which need not be one."""
        if event.key() in self._down and not event.isAutoRepeat():
            self._released[event.key()] = event.timestamp()
            self._timer.start()

    def let_go(self) -> None:
        """All come up at once."""
        self._released.clear()
        for key in tuple(self._down):
            self._come_up(key)

    def _let_up(self) -> None:
        released, self._released = self._released, {}
        for key in released:
            self._come_up(key)

    def _come_up(self, key: int) -> None:
        if key in self._down:
            self._down.discard(key)
            self.came_up.emit(key)
