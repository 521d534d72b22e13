"""Presets: TOML files that hold the differences from the defaults."""

import difflib
import itertools
import os
from pathlib import Path

import tomli_w

from engine.documents import UNREADABLE, problem_of, read_toml
from engine.errors import SettingError
from engine.plain_files import require_plain_file
from engine.settings import Settings

CLASSIC = "classic"  # the published recipe, which is also what the settings are by default
CPU_FAST = "cpu-fast"
PRESET_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "presets"


def preset_names() -> tuple[str, ...]:
    """The presets that come with the program."""
    return tuple(sorted(path.stem for path in PRESET_FOLDER.glob("*.toml")))


def load_preset(name_or_path: str | Path) -> Settings:
    """Settings from a built-in preset's name or from a TOML file of differences."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = PRESET_FOLDER / f"{name_or_path}.toml"
        if not path.exists():
            near = difflib.get_close_matches(str(name_or_path), preset_names(), n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SettingError(
                f"There is no preset {str(name_or_path)!r}; there are {', '.join(preset_names())}, "
                f"or give the path of a .toml file.{hint}",
                value=str(name_or_path),
            )
    try:
        require_plain_file(path)
        values = read_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingError(f"The preset file {path} does not exist.", path=path) from None
    except OSError as error:
        raise SettingError(
            f"The preset file {path} cannot be read: {error.strerror or error}.", path=path
        ) from error
    except UNREADABLE as error:
        raise SettingError(
            f"The preset file {path} cannot be read: {problem_of(error)}. Expected lines such as "
            "'opacity_lr = 0.05'.",
            path=path,
        ) from error
    try:
        return Settings().updated(values)
    except SettingError as error:
        raise SettingError(f"Preset {path}: {error}", path=path, value=error.value) from error


def preset_description(name: str) -> str:
    """What the comment at the head of a built-in preset says of it."""
    lines = (PRESET_FOLDER / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    head = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.lstrip("# ") for line in head)


def nearest_preset(settings: Settings) -> str:
    """The built-in preset from which the fewest values differ; classic where that is a tie."""
    names = (CLASSIC, *preset_names())
    return min(names, key=lambda name: len(settings.differences(load_preset(name))))


def save_preset(path: Path, settings: Settings) -> None:
    """Write the differences from the defaults as a preset file, whole or not at all."""
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("wb") as file:
            tomli_w.dump(settings.differences(), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SettingError(
            f"The preset file {path} cannot be written: {error.strerror}. Choose a folder that "
            "you may write to.",
            path=path,
        ) from error
