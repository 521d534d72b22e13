"""Command-line flags made from the declaration of the settings; flat, one a setting."""

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from engine.foreign_names import meant_name
from engine.presets import CLASSIC, CPU_FAST, load_preset, preset_names
from engine.setting_info import SettingInfo, Value
from engine.settings import Settings, all_settings, setting_info

EXIT_FAILURE = 1
EXIT_ARGUMENTS = 2
_PREFIX = "setting:"


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, and names the nearest flag for one that it does not know."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})
        self._being_parsed: list[str] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the library does; `error` is to know what was given."""
        self._being_parsed = sys.argv[1:] if args is None else list(args)
        parsed = super().parse_known_args(args, namespace)
        self._being_parsed = None
        return parsed

    def error(self, message: str) -> NoReturn:
        """Print one sentence and leave with 2; a misspelt flag goes before the one it should be."""
        given, self._being_parsed = self._being_parsed, None
        if given is not None:
            extra = self._extra_where_nothing_is_required(given)
            self.refuse_unknown([word for word in extra if word.startswith("-")])
        self.exit(EXIT_ARGUMENTS, f"{self.prog}: {message}\n")

    def _extra_where_nothing_is_required(self, given: list[str]) -> list[str]:
        """What the parser knows nothing of; any other trouble is found again and told."""
        required = [action for action in self._actions if action.required]
        for action in required:
            action.required = False
        try:
            return super().parse_known_args(given)[1]
        finally:
            for action in required:
                action.required = True

    def refuse_unknown(self, extra: Sequence[str]) -> None:
        """Leave with 2 when `extra` holds something; name the nearest flag."""
        if not extra:
            return
        flag = extra[0].split("=")[0]
        names = {name.lstrip("-").replace("-", "_"): name for name in self._option_string_actions}
        near = meant_name(flag.lstrip("-"), names)
        hint = f"; did you mean {names[near]}?" if near else f"; see {self.prog} --help."
        self.error(f"there is no argument {flag}{hint}")


class Version(argparse.Action):
    """Prints the version and leaves."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Do so."""
        from engine.versions import program_version

        print(f"splatscope {program_version()}")  # noqa: T201
        parser.exit(0)


def add_version_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--version`."""
    parser.add_argument("--version", action=Version, nargs=0, help="Print the version.")


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """The one that `word` was probably meant to be, if it resembles one."""
    return next(iter(difflib.get_close_matches(word.lower(), known, n=1)), None)


def not_empty(text: str) -> str:
    """What is named by an argument; an empty one would be the folder where one stands."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; expected a name or a path")
    return text


def user_path(text: str) -> Path:
    """A path as given, with ~ for the home folder, which shells leave in --output=~/run."""
    path = Path(not_empty(text))
    try:
        return path.expanduser()
    except RuntimeError:  # ~name of nobody
        return path


def add_setting_flags(parser: argparse.ArgumentParser, names: Iterable[str] | None = None) -> None:
    """Add a flag for each setting, or for those named."""
    wanted = None if names is None else set(names)
    groups: dict[str, argparse._ArgumentGroup] = {}
    for info in all_settings():
        if wanted is not None and info.name not in wanted:
            continue
        group = groups.get(info.group)
        if group is None:
            group = groups[info.group] = parser.add_argument_group(info.group_label)
        _add_flag(group, info)


def _add_flag(group: argparse._ArgumentGroup, info: SettingInfo) -> None:
    default = f"Default {_shown(info.default)}."
    if info.minimum is not None and info.maximum is not None:
        default = f"{_shown(info.minimum)} to {_shown(info.maximum)}; {default.lower()}"
    text = f"{info.meaning} {default}"
    text = text.replace("%", "%%")
    destination = _PREFIX + info.name
    if info.kind is bool:
        group.add_argument(
            info.flag, action=argparse.BooleanOptionalAction, dest=destination, help=text
        )
    else:
        metavar = "|".join(info.choices) if info.choices else info.kind.__name__.upper()
        group.add_argument(info.flag, dest=destination, metavar=metavar, help=text)


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def add_preset_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--preset`."""
    parser.add_argument(
        "--preset",
        metavar="NAME|FILE.toml",
        help=f"Start from a preset ({', '.join(preset_names())}) or a file of differences. Without "
        f"it: {CLASSIC}, the published recipe, on a GPU, and {CPU_FAST} elsewhere, "
        "for the built-in scene too: `make demo` takes the preset demo, with 1,200 steps.",
    )


def given_values(arguments: argparse.Namespace) -> dict[str, Value]:
    """The settings that were given as flags, checked. Raises SettingError."""
    return {
        name.removeprefix(_PREFIX): setting_info(name.removeprefix(_PREFIX)).check(value)
        for name, value in vars(arguments).items()
        if name.startswith(_PREFIX) and value is not None
    }


def given_changes(arguments: argparse.Namespace) -> dict[str, Value]:
    """What preset and flags say together, as differences from the defaults or given outright."""
    preset = load_preset(arguments.preset) if arguments.preset else Settings()
    return {**preset.differences(), **given_values(arguments)}
