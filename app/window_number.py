"""Which of the program's windows this is, so that a second one does not lie over the first.

Where windows of other programs lie nobody can ask portably, but each can hold a file that tells
that it is there. Such a file is let go when its process ends, however that is.
"""

from pathlib import Path

from PySide6.QtCore import QLockFile

MOST = 8  # windows get numbers; those after them are placed as the first is


class WindowNumber:
    """The lowest number that no other window holds; 0 for the first. Held until `release`."""

    def __init__(self, folder: Path) -> None:
        """`folder` keeps the files; it is made if need be, and where it cannot be all are first."""
        self.value = 0
        self._lock: QLockFile | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:  # the preferences tell of it when they are written
            return
        for number in range(MOST):
            lock = QLockFile(str(folder / f"window-{number}.lock"))
            lock.setStaleLockTime(0)  # its age says nothing: a window may be open for days
            if lock.tryLock(0):
                self.value, self._lock = number, lock
                return
            if lock.error() is not QLockFile.LockError.LockFailedError:
                return

    def release(self) -> None:
        """Let another window have the number."""
        if self._lock is not None:
            self._lock.unlock()
