"""Progress and cancelling of a load, handed down to every reader."""

from collections.abc import Callable

from engine.errors import LoadingCancelled

Progress = Callable[[str, str, int, int], None]  # stage, file, done, total
Cancelled = Callable[[], bool]


class Loading:
    """Reports how far a load is, and stops it when the user has cancelled."""

    def __init__(
        self, progress: Progress | None = None, cancelled: Cancelled | None = None
    ) -> None:
        self._progress = progress
        self._cancelled = cancelled

    def poll(self) -> None:
        """Raises LoadingCancelled when asked to stop; readers call it several times a second."""
        if self._cancelled is not None and self._cancelled():
            raise LoadingCancelled("Loading was cancelled.")

    def report(self, stage: str, file: str, done: int, total: int) -> None:
        """Says which file is being read, and polls."""
        self.poll()
        if self._progress is not None:
            self._progress(stage, file, done, total)
