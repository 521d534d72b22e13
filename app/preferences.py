"""What the window remembers between sessions: a small versioned JSON file.

A file that cannot be used never stops the start: it is set aside as `.bad`, a warning says so,
and the window starts with defaults. `SPLATSCOPE_CONFIG_DIR` moves the file, for tests and for
those who keep their settings elsewhere.
"""

import dataclasses
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import platformdirs

from engine.documents import UNREADABLE, problem_of

VERSION = 1
FILE_NAME = "preferences.json"
RECENT_LIMIT = 12
TITLE_PX = 32  # what a desktop's frame may take above a window
CASCADE_PX = 36  # from one window to the next one over it
LEAST_VISIBLE_PX = 80  # of a window's title, so that it can be taken hold of

log = logging.getLogger(__name__)

Rectangle = tuple[int, int, int, int]  # left, top, width, height


@dataclasses.dataclass
class Preferences:
    """The remembered values; change them freely and call `save_preferences`."""

    theme: str = "dark"
    geometry: Rectangle | None = None
    maximized: bool = False
    splitters: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    closed_groups: list[str] | None = None  # of the settings panel; None as it comes
    logarithmic_loss: bool = False
    recent_scenes: list[str] = dataclasses.field(default_factory=list)
    folders: dict[str, str] = dataclasses.field(default_factory=dict)  # by purpose

    def remember_scene(self, path: Path) -> None:
        """Put a scene first among the recent ones."""
        name = str(path)
        others = [known for known in self.recent_scenes if known != name]
        self.recent_scenes = [name, *others][:RECENT_LIMIT]

    def folder(self, purpose: str) -> Path:
        """Where to begin looking for files of one purpose: the last folder used, or home."""
        known = self.folders.get(purpose)
        return Path(known) if known and Path(known).is_dir() else Path.home()

    def remember_folder(self, purpose: str, path: Path) -> None:
        """Begin there the next time."""
        self.folders[purpose] = str(path)


def preferences_path() -> Path:
    """Where the file lies."""
    folder = os.environ.get("SPLATSCOPE_CONFIG_DIR")
    base = Path(folder) if folder else Path(platformdirs.user_config_dir("splatscope"))
    return base / FILE_NAME


def load_preferences(path: Path | None = None) -> tuple[Preferences, str]:
    """The preferences and a warning for the user, "" when all is well.

    A broken or newer file is kept beside as `.bad`, and the defaults are returned.
    """
    path = path or preferences_path()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Preferences(), ""
    except (OSError, UnicodeDecodeError) as error:
        return Preferences(), _set_aside(path, str(error))
    try:
        content = json.loads(text)
    except UNREADABLE as error:
        return Preferences(), _set_aside(path, problem_of(error))
    try:
        return _parse(content), ""
    except (ValueError, TypeError, KeyError) as error:
        return Preferences(), _set_aside(path, str(error))


def save_preferences(preferences: Preferences, path: Path | None = None) -> str:
    """Write the file whole or not at all; a warning for the user, "" when all is well."""
    path = path or preferences_path()
    partial = path.with_name(path.name + ".part")
    content = {"version": VERSION, **dataclasses.asdict(preferences)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        warning = f"The preferences cannot be written to {path}: {error}"
        log.warning(warning)
        return warning
    return ""


def keep_scene(preferences: Preferences, scene: Path, path: Path | None = None) -> None:
    """Put a scene first among the recent ones, in the file at once.

    The list is everybody's: other windows write into it meanwhile. Nothing else in the file
    changes; what cannot be written is told when the window closes.
    """
    kept, _ = load_preferences(path)
    take_recent(preferences, kept)
    preferences.remember_scene(scene)
    kept.recent_scenes = preferences.recent_scenes
    save_preferences(kept, path)


def take_recent(preferences: Preferences, kept: Preferences) -> None:
    """Take over the recent scenes of the file, unless it has none."""
    preferences.recent_scenes = kept.recent_scenes or preferences.recent_scenes


def clamped(geometry: Rectangle, screens: Sequence[Rectangle]) -> Rectangle:
    """A window's place moved, and shrunk if need be, into one of the screens there are.

    `screens` are the usable areas, the main one first. The window goes where most of it is, or to
    the middle of the main screen when its title could not be reached on any.
    """
    if not screens:
        return geometry
    left, top, width, height = geometry
    best, seen = None, 0
    for x, y, w, h in screens:
        across = min(left + width, x + w) - max(left, x)
        down = min(top + height, y + h) - max(top, y)
        is_reachable = across >= LEAST_VISIBLE_PX and y <= top < y + h - LEAST_VISIBLE_PX // 2
        if is_reachable and across * down > seen:
            best, seen = (x, y, w, h), across * down
    x, y, w, h = best or screens[0]
    if height > h - TITLE_PX:  # or the title would be above the screen
        y, h = y + TITLE_PX, h - TITLE_PX
        top = max(top, y)
    width, height = min(width, w), min(height, h)
    if best is None:
        return x + (w - width) // 2, y + (h - height) // 2, width, height
    return min(max(left, x), x + w - width), min(top, y + h - height), width, height


def cascaded(geometry: Rectangle, number: int, screens: Sequence[Rectangle]) -> Rectangle:
    """The place of window `number` of several that would lie at `geometry`, which is on a screen.

    It lies aslant of the one before, and is smaller where it fills its screen.
    """
    if number == 0 or not screens:
        return geometry
    left, top, width, height = geometry
    x, y, w, h = next(
        (s for s in screens if s[0] <= left < s[0] + s[2] and s[1] <= top < s[1] + s[3]), screens[0]
    )
    left, width = _shifted(left, width, x, x + w, number * CASCADE_PX)
    top, height = _shifted(top, height, y + TITLE_PX, y + h, number * CASCADE_PX)
    return left, top, width, height


def _shifted(start: int, length: int, first: int, end: int, shift: int) -> tuple[int, int]:
    """Start and length moved by `shift` within `first` to `end`: on, or back, or made shorter."""
    if start + length + shift <= end:
        return start + shift, length
    if start - shift >= first:
        return start - shift, length
    return start + shift, end - start - shift


def _set_aside(path: Path, reason: str) -> str:
    bad = path.with_name(path.name + ".bad")
    try:
        path.replace(bad)
        kept = f"it is kept as {bad.name}"
    except OSError as error:
        kept = f"it could not be set aside ({error})"
    warning = f"The preferences in {path} cannot be used ({reason}); {kept}. Starting afresh."
    log.warning(warning)
    return warning


def _parse(content: Any) -> Preferences:
    if not isinstance(content, dict):
        raise TypeError("expected a JSON object")
    version = content.get("version")
    if version != VERSION:
        raise ValueError(f"version is {version!r}, expected {VERSION}")
    fresh = Preferences()
    return Preferences(
        theme=_checked(content.get("theme", fresh.theme), str, "theme"),
        geometry=_rectangle(content.get("geometry")),
        maximized=_checked(content.get("maximized", False), bool, "maximized"),
        splitters={
            str(name): _integers(sizes, "splitters")
            for name, sizes in _checked(content.get("splitters", {}), dict, "splitters").items()
        },
        closed_groups=(
            None
            if content.get("closed_groups") is None
            else _strings(content["closed_groups"], "closed_groups")
        ),
        logarithmic_loss=_checked(content.get("logarithmic_loss", False), bool, "logarithmic_loss"),
        recent_scenes=_strings(content.get("recent_scenes", []), "recent_scenes")[:RECENT_LIMIT],
        folders={
            str(name): _checked(folder, str, "folders")
            for name, folder in _checked(content.get("folders", {}), dict, "folders").items()
        },
    )


def _checked(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}")
    return value


def _integers(value: Any, name: str) -> list[int]:
    return [_checked(item, int, name) for item in _checked(value, list, name)]


def _strings(value: Any, name: str) -> list[str]:
    return [_checked(item, str, name) for item in _checked(value, list, name)]


def _rectangle(value: Any) -> Rectangle | None:
    if value is None:
        return None
    numbers = _integers(value, "geometry")
    if len(numbers) != 4 or min(numbers[2:]) < 1:
        raise ValueError(f"geometry is {value!r}")
    return numbers[0], numbers[1], numbers[2], numbers[3]
