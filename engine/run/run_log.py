"""The log file of a run, and what all log files do where the disk is full."""

import logging
import sys
from pathlib import Path


class LogFile(logging.FileHandler):
    """A log file; that it cannot be written is one line on standard error, not one a record."""

    _is_told = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Tell of the error under way, the first time."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self._tell(error)
        else:
            super().handleError(record)

    def close(self) -> None:
        """Close the file, whose last lines may not go into it either."""
        try:
            super().close()
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        if self._is_told:
            return
        self._is_told = True
        print(  # noqa: T201
            f"splatscope: {self.baseFilename} could not be written: {error.strerror or error}. "
            "Lines are missing there; nothing else is touched.",
            file=sys.stderr,
        )


class RunLog(LogFile):
    """Takes what the program logs while its run is open, and nothing afterwards.

    Another thread may hold a handler that is just being closed; logging's own would then open the
    file again, and nobody would close it.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it, and listen from now on. Raises OSError."""
        super().__init__(path, encoding="utf-8")
        self._is_over = False
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if not self._is_over:
            super().emit(record)

    def close(self) -> None:
        """Listen no more and close the file."""
        logging.getLogger().removeHandler(self)
        self.acquire()
        try:
            self._is_over = True
        finally:
            self.release()
        super().close()
