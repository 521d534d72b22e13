"""The log, filtered by level, with a report to copy for whoever is asked for help."""

import logging
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QToolButton, QWidget

from app.diagnostics import system_facts
from app.flow_layout import FlowLayout
from app.panels.log_lines import LINE_LIMIT, LogLine, LogLines, line_for, without_home
from app.panels.panel import Panel
from app.panels.setting_controls import Choice
from app.theme import set_role
from engine.messages import Event, RunStarted, SettingApplied
from engine.settings import Settings

LEVELS = {
    "Everything": logging.DEBUG,
    "Info": logging.INFO,
    "Warnings": logging.WARNING,
    "Errors": logging.ERROR,
}
TAIL_LINES = 200
TOLD_BY_EVENTS = "engine.session"  # all that this logger says comes as an event too


class _Records(QObject):
    """Carries log records of any thread into the window's."""

    arrived = Signal(object)  # LogLine


class WindowLogHandler(logging.Handler):
    """A logging handler whose lines reach the panel in the window's own thread."""

    def __init__(self, level: int = logging.INFO) -> None:
        super().__init__(level)
        self.records = _Records()

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on; called in the thread that logs."""
        if record.name == TOLD_BY_EVENTS:
            return
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({record.exc_info[1]!r})"
        self.records.arrived.emit(LogLine(record.levelno, text, record.created))


class LogPanel(Panel):
    """Lines of events and of Python's logging; bounded, with the latest errors kept longer."""

    def __init__(self, log_folder: Path | None = None, parent: QWidget | None = None) -> None:
        super().__init__("Log", parent)
        self.lines = LogLines()
        self.handler = WindowLogHandler()
        self.handler.records.arrived.connect(self.add, Qt.ConnectionType.QueuedConnection)
        self._log_folder = log_folder
        self._run: RunStarted | None = None
        self._settings = Settings()
        self._level = logging.INFO
        self._copied_timer = QTimer(self)
        self._copied_timer.setSingleShot(True)
        self._copied_timer.setInterval(1_500)
        self._copied_timer.timeout.connect(self._offer_copy)
        self._build()

    def attach(self) -> None:
        """Listen to Python's logging, until `detach`."""
        logging.getLogger().addHandler(self.handler)

    def detach(self) -> None:
        """Listen no more."""
        logging.getLogger().removeHandler(self.handler)

    def handle(self, event: Event) -> None:
        """Write what an event tells."""
        if isinstance(event, RunStarted):
            self._run = event
            self._settings = event.settings
        elif isinstance(event, SettingApplied) and not event.held:
            self._settings = self._settings.changed(event.name, event.new)
        line = line_for(event)
        if line is not None:
            self.add(line)

    @Slot(object)
    def add(self, line: LogLine) -> None:
        """Append a line."""
        self.lines.add(line)
        if line.level >= self._level:
            self.view.appendPlainText(str(line))

    def report(self) -> str:
        """Versions, device, settings, errors and the end of the log; no home directory in it."""
        parts = ["Splatscope diagnostics", system_facts()]
        if self._run is not None:
            parts.append(f"Device: {self._run.device}\nRun: {self._run.folder}")
        changes = self._settings.differences()
        listed = "\n".join(f"{name} = {value}" for name, value in changes.items())
        parts.append(f"Settings that differ from the defaults:\n{listed or 'none'}")
        errors = "\n".join(str(line) for line in self.lines.errors)
        parts.append(f"Last errors:\n{errors or 'none'}")
        tail = "\n".join(str(line) for line in self.lines.tail(TAIL_LINES))
        parts.append(f"Log:\n{tail or 'empty'}")
        return without_home("\n\n".join(parts)) + "\n"

    def _copy_report(self) -> None:
        QGuiApplication.clipboard().setText(self.report())
        self.copy_button.setText("Copied")
        self._copied_timer.start()

    def _offer_copy(self) -> None:
        self.copy_button.setText("Copy diagnostics")

    def _open_folder(self) -> None:
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._log_folder))):
            words = f"No file manager answered; the log files lie in {self._log_folder}"
            self.add(LogLine(logging.WARNING, words))

    def _set_level(self, word: str) -> None:
        self._level = LEVELS[word]
        self.view.setPlainText("\n".join(map(str, self.lines.at_least(self._level))))
        bar = self.view.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _build(self) -> None:
        self.level = Choice(tuple(LEVELS), self)
        self.level.setCurrentText("Info")
        self.level.setAccessibleName("Show log lines of")
        self.level.setToolTip("Which lines to show")
        self.level.textActivated.connect(self._set_level)
        self.copy_button = QPushButton(self)
        self._offer_copy()
        self.copy_button.setToolTip(
            "Copy versions, device, changed settings, last errors and the log, for a bug report"
        )
        self.copy_button.setAccessibleName("Copy diagnostics")
        self.copy_button.clicked.connect(self._copy_report)
        self.folder_button = QToolButton(self)
        self.folder_button.setText("Open folder")
        self.folder_button.setToolTip(f"Open {self._log_folder}")
        self.folder_button.setAccessibleName("Open the folder of the log files")
        self.folder_button.setVisible(self._log_folder is not None)
        self.folder_button.clicked.connect(self._open_folder)
        for control in (self.copy_button, self.folder_button):
            set_role(control, "quiet")
        self.header.addWidget(self.level)
        self.view = QPlainTextEdit(self)
        self.view.setReadOnly(True)
        self.view.setMaximumBlockCount(LINE_LIMIT)
        self.view.setUndoRedoEnabled(False)
        self.view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.view.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.view.setTabChangesFocus(True)
        self.view.setAccessibleName("Log lines")
        set_role(self.view, "log")
        self.body.addWidget(self.view, 1)
        line = FlowLayout()
        line.addWidget(self.copy_button)
        line.addWidget(self.folder_button)
        self.body.addLayout(line)
