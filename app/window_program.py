"""From the flags to the window, and from its end to the exit code.

Hooks come first, so that no error passes unseen. The window closes before the engine thread is
joined, and the thread before Qt goes.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication

from app.diagnostics import Diagnostics, Problem, log
from app.interrupts import Interrupts
from app.main_window import MainWindow
from app.preferences import Preferences, preferences_path
from app.start_signals import exit_code
from app.theme import Theme
from app.training_session import TrainingSession
from app.viewport.display_probe import DisplayFound, choose_viewport
from app.viewport.photo_pictures import decode_photo
from app.viewport.viewport import make_viewport
from app.window_number import WindowNumber
from engine.cli_flags import EXIT_FAILURE, given_changes
from engine.device import set_threads
from engine.engine_thread import Engine
from engine.handle import EngineHandle
from engine.scene_names import DEMO_NAME
from engine.settings import Settings
from engine.usual_preset import PresetChoice

JOIN_SECONDS = 10.0


@dataclasses.dataclass(frozen=True)
class Start:
    """What is known before Qt is there."""

    options: argparse.Namespace
    settings: Settings
    base: Settings  # the preset
    preset: PresetChoice  # its name, and why that one
    usual: PresetChoice  # of scenes that bring none of their own
    preferences: Preferences
    warning: str  # about the preferences, "" when all is well
    found: DisplayFound


def run(
    start: Start,
    log_folder: Path,
    engine: EngineHandle | None,
    when_shown: Callable[[], None],
) -> int:
    """Open the window and stay until it is closed; the exit code.

    `engine` stands for the real one in tests. `when_shown` is called when the window can be seen.
    """
    diagnostics = Diagnostics(log_folder)
    diagnostics.install()
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        application = QApplication(["splatscope"])
    interrupts = Interrupts(application)
    number = WindowNumber(preferences_path().parent)
    try:
        session = TrainingSession(engine if engine is not None else Engine())
        window = _make_window(start, application, session, diagnostics)
        window.closed.connect(application.quit)
        interrupts.arrived.connect(window.commands.close_by_signal)
        session.start()
        window.appear(number.value)
        QTimer.singleShot(0, when_shown)
        _tell_and_open(window, start)
        code = application.exec()
        ended = session.close(JOIN_SECONDS)
        if ended:
            set_threads(1)  # the kernels' own threads end
        window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        if not ended:
            sentence = f"The engine did not stop within {JOIN_SECONDS:g} s."
            log.error(sentence)
            sys.stderr.write(f"splatscope: {sentence}\n")
            return EXIT_FAILURE
        return exit_code(interrupts.number) if interrupts.number else code
    finally:
        number.release()
        interrupts.close()
        diagnostics.remove()


def _make_window(
    start: Start, application: QApplication, session: TrainingSession, diagnostics: Diagnostics
) -> MainWindow:
    application.setApplicationName("splatscope")
    application.setApplicationDisplayName("Splatscope")
    application.setQuitOnLastWindowClosed(False)  # the window says when all is done
    theme = Theme(application, start.preferences.theme)
    choice = choose_viewport(start.options.viewport, start.found)
    log.info("%s", choice.reason)
    viewport = make_viewport(choice.kind, decode_photo)
    window = MainWindow(session, theme, viewport, start.preferences, diagnostics)
    window.status.set_viewport_reason(choice.reason)
    window.settings_panel.set_start_values(
        start.settings, start.preset.name, start.base, start.preset.reason
    )
    window.commands.usual_preset = start.usual
    window.commands.start_when_open = not start.options.paused
    window.commands.preset_follows_scene = start.options.preset in (None, DEMO_NAME)
    window.commands.resume_changes = given_changes(start.options)
    if start.options.viewport == "gl" and choice.kind != "gl":
        window.error_cards.show_problem(Problem(choice.reason))
    return window


def _tell_and_open(window: MainWindow, start: Start) -> None:
    if start.warning:
        log.warning("%s", start.warning)
        window.error_cards.show_problem(Problem(start.warning))
    if start.options.scene is not None:
        window.commands.open_named(start.options.scene)
