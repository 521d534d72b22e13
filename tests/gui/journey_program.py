"""Run by `test_journey_desktop`: the program from start to exit; prints what it saw as JSON.

It opens the demo, closes the window in the middle of training, and tells which threads are left
when everything has returned.
"""

import json
import sys
import threading
import time
from pathlib import Path

import torch  # noqa: F401  before Qt, as in the program itself
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.application import run_window
from app.main_window import MainWindow
from cuda_rasterizer.native import thread_count
from engine.messages import Event, Saved

CLOSE_AT_STEP = 20
FLAGS = ("--resolution", "2", "--evaluation-interval", "0", "--checkpoint-interval", "0")


class Witness:
    """Waits for the window and for a step, closes the window, and takes the time."""

    def __init__(self, application: QApplication) -> None:
        self.saving = 0.0
        self.closed_at = 0.0
        self.step = 0
        self.run: Path | None = None
        self._window: MainWindow | None = None
        self._timer = QTimer(application)
        self._timer.timeout.connect(self._look)
        self._timer.start(5)

    def _look(self) -> None:
        if self._window is None:
            windows = QApplication.topLevelWidgets()
            self._window = next((w for w in windows if isinstance(w, MainWindow)), None)
            if self._window is not None:
                self._window.session.event_arrived.connect(self._take)
            return
        session = self._window.session
        if session.step < CLOSE_AT_STEP or self._window.viewport.frame is None:
            return
        self._timer.stop()
        self.step, self.run = session.step, self._window.run_folder
        self.closed_at = time.monotonic()
        self._window.close()
        self._window = None

    def _take(self, event: Event) -> None:
        if isinstance(event, Saved) and self.closed_at:
            self.saving += event.seconds


def main(kind: str) -> None:
    application = QApplication(["splatscope"])
    witness = Witness(application)
    code = run_window(["demo", "--viewport", kind, *FLAGS])
    seconds = time.monotonic() - witness.closed_at
    told = {
        "code": code,
        "seconds": seconds,
        "saving": witness.saving,
        "step": witness.step,
        "run": str(witness.run),
        "threads": [thread.name for thread in threading.enumerate()],
        "kernel_threads": thread_count(),
    }
    print(json.dumps(told))  # noqa: T201  read by the test


if __name__ == "__main__":
    main(sys.argv[1])
