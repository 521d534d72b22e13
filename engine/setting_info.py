"""What can be said about one setting, and the check of a value against it.

The settings themselves are declared in `engine.setting_groups`.
"""

import dataclasses
import datetime
import enum
import sys
from typing import Any

from engine.errors import SettingError

Value = bool | int | float | str
_SHOWN = 60  # characters of a wrong value


class Applies(enum.Enum):
    """When a change takes hold."""

    NOW = "now"
    NEXT_REFINE = "next refine"
    RESTART = "restart"


class Scale(enum.Enum):
    """How a slider spreads its range."""

    LINEAR = "linear"
    LOG = "log"


def setting(
    default: Value,
    meaning: str,
    *,
    label: str,
    minimum: float | None = None,
    maximum: float | None = None,
    scale: Scale = Scale.LINEAR,
    unit: str = "",
    zero: str = "",
    applies: Applies = Applies.NOW,
    changes_loss: bool = False,
) -> Any:
    """Declare one setting.

    `zero` names 0 where that is no amount, such as "never"; `changes_loss` marks those that make
    loss before and after differ.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "meaning": meaning,
            "label": label,
            "minimum": minimum,
            "maximum": maximum,
            "scale": scale,
            "unit": unit,
            "zero": zero,
            "applies": applies,
            "changes_loss": changes_loss,
        },
    )


@dataclasses.dataclass(frozen=True)
class SettingInfo:
    """What is declared about one setting."""

    name: str
    group: str
    group_label: str
    label: str
    kind: type  # bool, int, float or str
    choices: tuple[str, ...]
    default: Value
    minimum: float | None
    maximum: float | None
    scale: Scale
    unit: str
    zero: str  # what 0 is called, "" where it is a number like any other
    meaning: str
    applies: Applies
    changes_loss: bool

    @property
    def flag(self) -> str:
        """The command-line flag."""
        return "--" + self.name.replace("_", "-")

    def check(self, value: object) -> Value:
        """The value in its declared type, or a SettingError that says what was expected."""
        if isinstance(value, str) and self.kind is not str:
            value = self._parse(value)
        if self.kind is str:
            if value not in self.choices:
                raise self._error(value, f"one of {', '.join(self.choices)}")
            return str(value)
        if self.kind is bool:
            if not isinstance(value, bool):
                raise self._error(value, "true or false")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error(value, "a number")
        if not _is_finite(value) or (self.kind is int and value != int(value)):
            raise self._error(value, "a whole number" if self.kind is int else "a finite number")
        if (self.minimum is not None and value < self.minimum) or (
            self.maximum is not None and value > self.maximum
        ):
            expected = f"{self._shown(self.minimum)} to {self._shown(self.maximum)}"
            raise self._error(value, expected)
        return int(value) if self.kind is int else float(value)

    def _parse(self, text: str) -> object:
        stripped = text.strip()
        if self.kind is bool:
            words = {"true": True, "yes": True, "on": True, "1": True}
            words |= {"false": False, "no": False, "off": False, "0": False}
            return words.get(stripped.lower(), text)
        if self.zero and stripped.lower() == self.zero:
            return 0
        plain = stripped.replace(",", "").replace("_", "")
        if self.kind is int and plain.removeprefix("-").isdecimal() and len(plain) <= _SHOWN:
            return int(plain)  # a float would round it
        try:
            return float(plain)
        except ValueError:
            return text

    def _shown(self, value: object) -> str:
        """A value as a user would write it: whole numbers without exponent or point."""
        if isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
            return f"{int(value):,}" if self.kind is int and value == int(value) else f"{value:g}"
        is_date = isinstance(value, datetime.date | datetime.time)  # which TOML has, and JSON not
        text = str(value) if is_date else repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    def _error(self, value: object, expected: str) -> SettingError:
        return SettingError(
            f"{self.name} is {self._shown(value)}; expected {expected}.", value=value
        )


def _is_finite(number: float) -> bool:
    """Whether it is a float's, or a whole number that a float can hold."""
    return abs(number) <= sys.float_info.max
