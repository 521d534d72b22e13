"""Nothing goes wrong unseen: every stray error reaches the log file and the window.

`Diagnostics` hooks into the main thread, other threads, destructors and Qt's own messages, and
lets faulthandler write the stacks of a hard crash. It is installed before anything else.
"""

import dataclasses
import faulthandler
import logging
import platform
import sys
import threading
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import TextIO

from PySide6 import __version__ as qt_version
from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

from engine.run.run_log import LogFile

LOG_NAME = "splatscope.log"
CRASH_NAME = "crash.log"
LOG_BYTES, LOG_FILES = 1_000_000, 3

log = logging.getLogger("splatscope")


@dataclasses.dataclass(frozen=True)
class Problem:
    """What an error card shows; problems with equal `key` are counted, not stacked."""

    message: str
    details: str = ""
    path: Path | None = None
    is_of_scene: bool = False  # and means nothing any more when another scene opens
    is_warning: bool = False  # nothing was stopped by it

    @property
    def key(self) -> tuple[str, Path | None]:
        """What makes two problems the same one."""
        return self.message, self.path

    def is_about(self, *places: Path) -> bool:
        """Whether its path is one of these, or lies in one of these folders."""
        path = self.path
        return path is not None and any(path.is_relative_to(place) for place in places)


class _ProgramLog(LogFile, RotatingFileHandler):
    """The log of the program over all its runs."""


class Diagnostics(QObject):
    """The hooks and the log file; `problem_met` brings stray errors to the window."""

    problem_met = Signal(object)  # Problem, from any thread

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / LOG_NAME
        self._crash_file: TextIO = (folder / CRASH_NAME).open("a", encoding="utf-8")
        self._handler = _ProgramLog(
            self.log_path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
        self._handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)-7s %(threadName)s %(name)s: %(message)s")
        )
        self._saved = (sys.excepthook, threading.excepthook, sys.unraisablehook)

    def install(self) -> None:
        """Take over every hook."""
        logging.getLogger().addHandler(self._handler)
        logging.getLogger().setLevel(logging.INFO)
        faulthandler.enable(self._crash_file)
        sys.excepthook = self._main_error
        threading.excepthook = self._thread_error
        sys.unraisablehook = self._unraisable
        qInstallMessageHandler(self._qt_message)
        log.info("started: %s", system_facts().replace("\n", ", "))

    def remove(self) -> None:
        """Put every hook back and close the files."""
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._saved
        qInstallMessageHandler(None)
        faulthandler.disable()
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        self._crash_file.close()

    def _main_error(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            self._saved[0](kind, error, trace)
            return
        self._report("The window met an error", kind, error, trace)

    def _thread_error(self, arguments: threading.ExceptHookArgs) -> None:
        name = arguments.thread.name if arguments.thread is not None else "a thread"
        self._report(
            f"The thread {name} met an error",
            arguments.exc_type,
            arguments.exc_value,
            arguments.exc_traceback,
        )

    def _unraisable(self, found: "sys.UnraisableHookArgs") -> None:
        what = f"An error passed unseen ({found.err_msg or 'while cleaning up'})"
        self._report(what, found.exc_type, found.exc_value, found.exc_traceback)

    def _report(
        self,
        what: str,
        kind: type[BaseException],
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        log.error("%s\n%s", what, details)
        if sys.stderr is not None:
            sys.stderr.write(details)
        message = f"{what}: {kind.__name__}: {error}"
        self.problem_met.emit(Problem(message, details, getattr(error, "path", None)))

    def _qt_message(self, kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        levels = {
            QtMsgType.QtDebugMsg: logging.DEBUG,
            QtMsgType.QtInfoMsg: logging.INFO,
            QtMsgType.QtWarningMsg: logging.WARNING,
        }
        level = levels.get(kind, logging.ERROR)
        logging.getLogger("qt").log(level, "%s (%s)", text, context.category or "default")
        if level >= logging.ERROR:
            self.problem_met.emit(Problem(f"Qt reports: {text}", text))


def system_facts() -> str:
    """Versions and machine, one fact a line, for a report."""
    torch = sys.modules.get("torch")
    facts = [
        f"Python {platform.python_version()}",
        f"PySide6 {qt_version}",
        f"torch {torch.__version__}" if torch is not None else "torch not loaded",
        f"{platform.system()} {platform.release()} {platform.machine()}",
    ]
    return "\n".join(facts)
