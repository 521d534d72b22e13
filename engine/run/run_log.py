"""The log file of a run."""

import logging
from pathlib import Path


class RunLog(logging.FileHandler):
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
