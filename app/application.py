"""The window program from its arguments to its exit code.

The order matters: hooks first, so that no error passes unseen; the probe of the display runs in a
child while this process imports the engine (torch) and then Qt's widgets; the window closes before
the engine thread is joined, and the thread before Qt goes.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import platformdirs
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from app.diagnostics import Diagnostics, Problem, log
from app.display_check import display_problem
from app.interrupts import Interrupts
from app.viewport.display_probe import DisplayFound, DisplayProbe, choose_viewport
from engine.cli_flags import (
    EXIT_ARGUMENTS,
    EXIT_FAILURE,
    Parser,
    add_preset_flag,
    add_setting_flags,
    given_changes,
    given_values,
)
from engine.errors import EngineError
from engine.handle import EngineHandle
from engine.presets import DEFAULT_PRESET, load_preset
from engine.scene_names import DEMO_NAME
from engine.settings import Settings

JOIN_SECONDS = 10.0
EXIT_INTERRUPTED = 130


def run_window(arguments: Sequence[str], engine: EngineHandle | None = None) -> int:
    """Open the window and stay until it is closed; the exit code.

    `engine` stands for the real one in tests.
    """
    parser = window_parser()
    options, extra = parser.parse_known_args(list(arguments))
    parser.refuse_unknown(extra)
    probe = DisplayProbe()
    try:
        base = load_preset(_preset_name(options))
        settings = base.updated(given_values(options))
    except EngineError as error:
        probe.result()
        return _say(str(error), EXIT_ARGUMENTS)
    diagnostics = Diagnostics(log_folder())
    diagnostics.install()
    try:
        found = probe.result()
        if found.trouble:
            reason = display_problem() or found.trouble
            advice = "`splatscope train SCENE --output DIR` trains without a window."
            return _say(f"No window can be opened: {reason} {advice}", EXIT_FAILURE)
        return _run(options, settings, base, found, diagnostics, engine)
    finally:
        diagnostics.remove()


def _preset_name(options: argparse.Namespace) -> str:
    """The preset named, else the demo's own for the demo and the usual one for all others."""
    suited = DEMO_NAME if options.scene == DEMO_NAME else DEFAULT_PRESET
    return str(options.preset or suited)


def window_parser() -> Parser:
    """The arguments of the window program."""
    parser = Parser(prog="splatscope", description="Open the window and train a scene.")
    parser.add_argument("scene", nargs="?", help="scene or run folder to open; demo: the built-in")
    parser.add_argument("--paused", action="store_true", help="open the scene without training it")
    parser.add_argument(
        "--viewport",
        choices=("auto", "gl", "painted"),
        default="auto",
        help="how the view is drawn; auto takes OpenGL where a graphics card draws it",
    )
    add_preset_flag(parser)
    add_setting_flags(parser)
    return parser


def log_folder() -> Path:
    """Where the log files lie; SPLATSCOPE_LOG_DIR moves them."""
    named = os.environ.get("SPLATSCOPE_LOG_DIR")
    if named:
        return Path(named)
    return Path(platformdirs.user_log_dir("splatscope", appauthor=False))


def _run(
    options: argparse.Namespace,
    settings: Settings,
    base: Settings,
    found: DisplayFound,
    diagnostics: Diagnostics,
    engine: EngineHandle | None,
) -> int:
    from app.main_window import MainWindow
    from app.preferences import load_preferences
    from app.theme import Theme
    from app.training_session import TrainingSession
    from app.viewport.photo_pictures import decode_photo
    from app.viewport.viewport import make_viewport
    from engine.device import set_threads
    from engine.engine_thread import Engine

    preferences, warning = load_preferences()
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        application = QApplication(["splatscope"])
    application.setApplicationName("splatscope")
    application.setApplicationDisplayName("Splatscope")
    application.setQuitOnLastWindowClosed(False)  # the window says when all is done
    theme = Theme(application, preferences.theme)
    session = TrainingSession(engine if engine is not None else Engine())
    choice = choose_viewport(options.viewport, found)
    log.info("%s", choice.reason)
    viewport = make_viewport(choice.kind, decode_photo)
    window = MainWindow(session, theme, viewport, preferences, diagnostics)
    window.status.set_viewport_reason(choice.reason)
    window.settings_panel.set_start_values(settings, Path(_preset_name(options)).stem, base)
    window.commands.start_when_open = not options.paused
    window.commands.preset_follows_scene = options.preset in (None, DEMO_NAME)
    window.closed.connect(application.quit)
    window.commands.resume_changes = given_changes(options)
    interrupts = Interrupts(window)
    interrupts.arrived.connect(window.close)
    session.start()
    window.appear()
    if warning:
        window.status.show_notice(warning)
    if options.viewport == "gl" and choice.kind != "gl":
        window.error_cards.show_problem(Problem(choice.reason))
    if options.scene is not None:
        window.commands.open_named(options.scene)
    code = application.exec()
    interrupted = interrupts.number == signal.SIGINT
    interrupts.close()
    ended = session.close(JOIN_SECONDS)
    if ended:
        set_threads(1)  # the kernels' own threads end
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if not ended:
        return _say(f"The engine did not stop within {JOIN_SECONDS:g} s.", EXIT_FAILURE)
    return EXIT_INTERRUPTED if interrupted else code


def _say(sentence: str, code: int) -> int:
    """Print a sentence on standard error; returns the code."""
    log.error("%s", sentence)
    sys.stderr.write(f"splatscope: {sentence}\n")
    return code
