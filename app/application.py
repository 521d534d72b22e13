"""The window program from its arguments to its exit code.

The order matters: wrong arguments are told before anything slow; the probe of the display runs in
a child, which shows that the program starts, while this process imports torch and then Qt.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from app.display_check import display_problem
from app.palette import DARK, PALETTES
from app.preferences import load_preferences
from app.viewport.display_probe import DisplayProbe
from engine.cli import WORDS
from engine.cli_flags import (
    EXIT_ARGUMENTS,
    EXIT_FAILURE,
    Parser,
    add_preset_flag,
    add_setting_flags,
    add_version_flag,
    given_values,
    nearest_word,
    not_empty,
)
from engine.cli_refusals import refuse_scene
from engine.errors import EngineError
from engine.presets import load_preset
from engine.scene_names import DEMO_NAME, scene_path

if TYPE_CHECKING:
    from engine.handle import EngineHandle

_NOTHING = "is neither a command nor something to open"


def run_window(
    arguments: Sequence[str], engine: "EngineHandle | None" = None, *, shows_sign: bool = False
) -> int:
    """Open the window and stay until it is closed; the exit code.

    `engine` stands for the real one in tests. With `shows_sign`, something is on the screen before
    the window can be.
    """
    parser = window_parser()
    options, extra = parser.parse_known_args(list(arguments))
    if meant := _meant_command(arguments, options.scene):
        return _say(f"{options.scene} {_NOTHING}; did you mean splatscope {meant}?", EXIT_ARGUMENTS)
    parser.refuse_unknown(extra)
    try:
        given = given_values(options)
        named = load_preset(options.preset) if options.preset else None
    except EngineError as error:
        return _say(str(error), EXIT_ARGUMENTS)
    if options.scene is not None and not scene_path(options.scene).exists():
        return _say(
            f"{options.scene} {_NOTHING}: it does not exist. "
            "Expected a scene's folder, a run folder or demo; see splatscope --help.",
            EXIT_ARGUMENTS,
        )
    try:
        _refuse_other_files(options.scene)
    except EngineError as error:
        return _say(str(error), EXIT_ARGUMENTS)
    preferences, warning = load_preferences()
    colors = PALETTES.get(preferences.theme, DARK)
    sign = (colors.panel, colors.text, colors.muted) if shows_sign else ()
    probe = DisplayProbe(sign)
    try:
        # torch before Qt: the two bring OpenMP and C++ runtimes, and torch's must be found first
        import torch  # noqa: F401

        from app.window_commands import DEMO_PRESET
        from app.window_program import Start, run
        from engine.usual_preset import PresetChoice, usual_preset

        found = probe.result()
        if found.trouble:
            reason = display_problem() or found.trouble
            advice = "`splatscope train SCENE --output DIR` trains without a window."
            return _say(f"No window can be opened: {reason} {advice}", EXIT_FAILURE)
        usual = usual_preset(str(given.get("backend", "auto")))
        if named is not None:
            preset, base = PresetChoice(Path(options.preset).stem, ""), named
        else:
            preset = DEMO_PRESET if options.scene == DEMO_NAME else usual
            base = load_preset(preset.name)
        settings = base.updated(given)
        start = Start(options, settings, base, preset, usual, preferences, warning, found)
        return run(start, log_folder(), engine, when_shown=probe.put_away)
    finally:
        probe.end()


def _meant_command(arguments: Sequence[str], scene: str | None) -> str | None:
    """The command, or `demo`, that the first word resembles where it names nothing to open."""
    if scene is None or arguments[0] != scene or scene_path(scene).exists():
        return None
    return None if Path(scene).name != scene else nearest_word(scene, (*WORDS, DEMO_NAME))


def _refuse_other_files(scene: str | None) -> None:
    """SceneError when a file is named that is no scene; what is in a folder, the window tells."""
    if scene is not None and scene_path(scene).is_file():
        refuse_scene(scene_path(scene))


def window_parser() -> Parser:
    """The arguments of the window program."""
    parser = Parser(prog="splatscope", description="Open the window and train a scene.")
    parser.add_argument(
        "scene", nargs="?", type=not_empty, help="scene or run folder to open; demo: the built-in"
    )
    parser.add_argument("--paused", action="store_true", help="open the scene without training it")
    parser.add_argument(
        "--viewport",
        choices=("auto", "gl", "painted"),
        default="auto",
        help="how the view is drawn; auto takes OpenGL where a graphics card draws it",
    )
    add_version_flag(parser)
    add_preset_flag(parser)
    add_setting_flags(parser)
    return parser


def log_folder() -> Path:
    """Where the log files lie; SPLATSCOPE_LOG_DIR moves them."""
    named = os.environ.get("SPLATSCOPE_LOG_DIR")
    if named:
        return Path(named)
    return Path(platformdirs.user_log_dir("splatscope", appauthor=False))


def _say(sentence: str, code: int) -> int:
    """Print a sentence on standard error; returns the code."""
    sys.stderr.write(f"splatscope: {sentence}\n")
    return code
