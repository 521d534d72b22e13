"""The command line: train, eval, render, check, doctor. No window, no Qt.

Exit codes: 0 when every promised file exists, 1 for a failure with a sentence that names the cause,
2 for bad arguments, 130 after Ctrl+C, 141 when standard output was closed by its reader. Results
go to standard output, with --json as one document; progress and remarks go to standard error.
"""

import argparse
import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence

from engine.cli_flags import (
    EXIT_FAILURE,
    Parser,
    add_preset_flag,
    add_setting_flags,
    add_version_flag,
    not_empty,
    user_path,
)
from engine.cli_refusals import refuse_early
from engine.cli_streams import OutputLost, lasting_streams
from engine.errors import EngineError, SettingError
from engine.run.metrics_log import finite
from engine.wording import printable

WORDS = ("train", "eval", "render", "check", "doctor")
EXIT_INTERRUPTED = 130
EXIT_NOBODY_READS = 141  # what a shell reports of a program that SIGPIPE ended
_PICTURE_SETTINGS = (
    *("resolution", "test_every", "cutoffs", "antialiased", "background"),
    *("backend", "gpu", "threads", "low_priority"),
)
_SCENE_HELP = "A folder with a COLMAP model or transforms.json and photos, or 'demo'."
_MODEL_HELP = "A run folder, a checkpoint (.safetensors) or a splat file (.ply)."


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; the exit code."""
    with lasting_streams():
        try:
            try:
                return _carry_out(arguments)
            finally:
                sys.stdout.flush()
        except KeyboardInterrupt:
            print("splatscope: interrupted.", file=sys.stderr)  # noqa: T201
            return EXIT_INTERRUPTED
        except OutputLost as lost:
            return EXIT_NOBODY_READS if lost.nobody_reads else fail(str(lost), debug=False)


def _carry_out(arguments: Sequence[str] | None) -> int:
    parser, words = _parsers()
    chosen, extra = parser.parse_known_args(arguments)
    if chosen.word is None:
        parser.refuse_unknown(extra)
        parser.error(f"name one of {', '.join(WORDS)}; see --help.")
    words[chosen.word].refuse_unknown(extra)
    handler = _log_to_stderr(debug=chosen.debug)
    try:
        refuse_early(chosen)
        code: int = chosen.carry_out(chosen)
    except SettingError as error:
        words[chosen.word].error(str(error))
    except EngineError as error:
        return fail(str(error), debug=chosen.debug)
    except OutputLost:
        raise
    except Exception as error:  # noqa: BLE001  the exit code and the sentence are promised
        return fail(
            f"an unexpected error: {type(error).__name__}: {error} (--debug shows where).",
            debug=chosen.debug,
        )
    finally:
        logging.getLogger().removeHandler(handler)
    return code


def _log_to_stderr(*, debug: bool) -> logging.Handler:
    """What is logged reaches the run's own log; on the screen only with --debug."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.DEBUG if debug else logging.CRITICAL)
    logging.getLogger().addHandler(handler)
    return handler


def fail(message: str, *, debug: bool) -> int:
    """Say why on standard error; the exit code of a failure."""
    if debug:
        traceback.print_exc()
    print(f"splatscope: {printable(message)}", file=sys.stderr)  # noqa: T201
    return EXIT_FAILURE


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document on standard output, null for what is not finite."""
    print(json.dumps(finite(document), allow_nan=False))  # noqa: T201


def _parsers() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="splatscope",
        description="Train 3D Gaussian splats. Without one of these words a window opens: "
        "splatscope [SCENE] [--paused] [--viewport auto|gl|painted] [settings as for train].",
    )
    add_version_flag(parser)
    parser.set_defaults(word=None)
    commands = parser.add_subparsers(metavar="train|eval|render|check|doctor", parser_class=Parser)
    words = {
        "train": _train_parser(commands),
        "eval": _eval_parser(commands),
        "render": _render_parser(commands),
        "check": _check_parser(commands),
        "doctor": _doctor_parser(commands),
    }
    for word, sub in words.items():
        sub.set_defaults(word=word)
        sub.add_argument("--debug", action="store_true", help="Show the log and tracebacks.")
    return parser, words


def _command(
    commands: "argparse._SubParsersAction[Parser]", word: str, text: str, action: Callable[..., int]
) -> Parser:
    sub = commands.add_parser(word, help=text, description=text)
    sub.set_defaults(carry_out=action)
    return sub


def _train_parser(commands: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = _command(commands, "train", "Train a scene headless.", _train)
    sub.add_argument("scene", nargs="?", type=not_empty, metavar="SCENE", help=_SCENE_HELP)
    sub.add_argument(
        "--output", required=True, type=user_path, metavar="DIR", help="The run folder."
    )
    sub.add_argument(
        "--resume",
        action="store_true",
        help="Continue the run in DIR up to --iterations; flags given win over the run's own.",
    )
    sub.add_argument("--json", action="store_true", help="Print the result as JSON.")
    add_preset_flag(sub)
    add_setting_flags(sub)
    return sub


def _eval_parser(commands: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = _command(commands, "eval", "Measure PSNR and SSIM on the held-out photos.", _evaluate)
    sub.add_argument("model", type=user_path, metavar="RUN_OR_PLY", help=_MODEL_HELP)
    sub.add_argument("scene", type=not_empty, metavar="SCENE", help=_SCENE_HELP)
    sub.add_argument("--json", action="store_true", help="Print the scores as JSON.")
    add_setting_flags(sub, _PICTURE_SETTINGS)
    return sub


def _render_parser(commands: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = _command(commands, "render", "Draw the held-out photos' views as PNG files.", _render)
    sub.add_argument("model", type=user_path, metavar="RUN_OR_PLY", help=_MODEL_HELP)
    sub.add_argument("scene", type=not_empty, metavar="SCENE", help=_SCENE_HELP)
    sub.add_argument(
        "--output", required=True, type=user_path, metavar="DIR", help="For the pictures."
    )
    sub.add_argument("--all", action="store_true", help="Draw the views of all photos.")
    sub.add_argument("--json", action="store_true", help="Print what was drawn as JSON.")
    add_setting_flags(sub, _PICTURE_SETTINGS)
    return sub


def _check_parser(commands: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = _command(commands, "check", "Say what is wrong with a scene, by file name.", _check)
    sub.add_argument("scene", type=not_empty, metavar="SCENE", help=_SCENE_HELP)
    sub.add_argument("--json", action="store_true", help="Print the findings as JSON.")
    add_setting_flags(sub, ("resolution", "test_every", "threads"))
    return sub


def _doctor_parser(commands: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = _command(commands, "doctor", "Say what works on this machine.", _doctor)
    sub.add_argument("--json", action="store_true", help="Print the report as JSON.")
    return sub


# torch takes a second to import; an argument error should not wait for it


def _train(arguments: argparse.Namespace) -> int:
    from engine.cli_train import train

    return train(arguments)


def _evaluate(arguments: argparse.Namespace) -> int:
    from engine.cli_pictures import evaluate

    return evaluate(arguments)


def _render(arguments: argparse.Namespace) -> int:
    from engine.cli_pictures import render

    return render(arguments)


def _check(arguments: argparse.Namespace) -> int:
    from engine.cli_check import check

    return check(arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from engine.doctor import doctor

    return doctor(arguments)
