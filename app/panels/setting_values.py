"""How a setting's value is written, typed and put on a slider. No Qt here.

A slider works in whole positions; `SliderScale` maps them to values and back. Logarithmic ranges
that include zero keep position 0 for zero itself. What a slider gives is rounded to two
significant digits, so that a drag lands on values a person would type.
"""

import dataclasses
import itertools
import math

from engine.setting_info import Scale, SettingInfo, Value
from engine.settings import Settings, all_settings

POSITIONS = 1000
WIDEST_LINEAR_COUNT = 100  # whole numbers over a wider linear range are typed, not dragged


def _rounded(value: float, digits: int) -> float:
    if value == 0:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


@dataclasses.dataclass(frozen=True)
class SliderScale:
    """The mapping between slider positions 0 to `last` and values of one numeric setting."""

    info: SettingInfo
    last: int
    low: float  # the value at position 0, or at position 1 where position 0 is zero
    high: float
    logarithmic: bool
    has_zero: bool

    def value(self, position: int) -> Value:
        """The value at a slider position, rounded and in the setting's own type."""
        position = min(max(position, 0), self.last)
        if self.has_zero and position == 0:
            return self.info.check(0)
        if position == self.last:
            return self.info.check(self.high)
        first = 1 if self.has_zero else 0
        share = (position - first) / (self.last - first)
        if self.logarithmic:
            raw = _rounded(self.low * (self.high / self.low) ** share, 2)
        else:
            raw = _rounded(self.low + (self.high - self.low) * share, 2)
        raw = min(max(raw, self.low), self.high)
        return self.info.check(round(raw) if self.info.kind is int else raw)

    def position(self, value: Value) -> int:
        """The slider position nearest to a value; values outside the scale go to its ends."""
        number = float(value)
        first = 1 if self.has_zero else 0
        if number <= self.low:
            return 0 if not self.has_zero or number < self.low / 2 else first
        if self.logarithmic:
            share = math.log(number / self.low) / math.log(self.high / self.low)
        else:
            share = (number - self.low) / (self.high - self.low)
        return min(max(round(first + share * (self.last - first)), 0), self.last)


def slider_scale(info: SettingInfo) -> SliderScale | None:
    """The slider of a setting; None for words, switches and whole numbers best typed."""
    if info.kind not in (int, float) or info.minimum is None or info.maximum is None:
        return None
    if info.scale is Scale.LINEAR:
        span = info.maximum - info.minimum
        if info.kind is int and span > WIDEST_LINEAR_COUNT:
            return None
        last = int(span) if info.kind is int else POSITIONS
        return SliderScale(info, last, info.minimum, info.maximum, False, False)
    low = info.minimum
    if low == 0:
        # The lowest value beside zero: five decades below the top, and well below the default.
        low = 1.0 if info.kind is int else info.maximum * 1e-5
        if info.kind is float and float(info.default) > 0:
            low = min(low, float(info.default) / 10)
    return SliderScale(info, POSITIONS, low, info.maximum, True, info.minimum == 0)


def format_value(info: SettingInfo, value: Value, with_unit: bool = False) -> str:
    """A value as the panel writes it: `3,000 steps`, `1.6e-4`, `0.008`, `on`, `never`."""
    if info.zero and value == 0:
        return info.zero
    if info.kind is bool:
        return "on" if value else "off"
    if info.kind is str:
        return str(value)
    text = f"{int(value):,}" if info.kind is int else format_number(float(value))
    return f"{text} {info.unit}" if with_unit and info.unit else text


def format_number(value: float, digits: int = 6) -> str:
    """A number to so many significant digits, with an exponent below a thousandth."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits}g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0")
    if mantissa.endswith("."):
        mantissa += "0"
    return f"{mantissa}e{int(exponent)}"


def parse_value(info: SettingInfo, text: str) -> Value:
    """The value typed into a field; a trailing unit is allowed. Raises SettingError."""
    stripped = text.strip()
    if info.unit and stripped.endswith(info.unit):
        stripped = stripped.removesuffix(info.unit).strip()
    return info.check(stripped)


def describe_range(info: SettingInfo) -> str:
    """The allowed range in words, such as `0 to 16,384`."""
    if info.minimum is None or info.maximum is None:
        return ", ".join(info.choices)
    if info.kind is int:
        return f"{int(info.minimum):,} to {int(info.maximum):,}"
    return f"{format_number(info.minimum)} to {format_number(info.maximum)}"


def problem_words(info: SettingInfo, text: str) -> str:
    """Why a typed text cannot be taken, in the words and numbers of the panel."""
    unit = f" {info.unit}" if info.unit else ""
    expected = f"one of {describe_range(info)}" if info.choices else describe_range(info) + unit
    return f"“{text.strip()}” cannot be used: expected {expected}."


def matches(info: SettingInfo, query: str) -> bool:
    """Whether every word of a search is somewhere in the setting's name, label or meaning."""
    text = f"{info.name} {info.label} {info.group_label} {info.meaning}".replace("_", " ").lower()
    return all(word in text for word in query.replace("_", " ").lower().split())


@dataclasses.dataclass(frozen=True)
class Change:
    """One gesture of the user: values before and after, by name."""

    gesture: int
    before: dict[str, Value]
    after: dict[str, Value]


class ChangeHistory:
    """What the user changed, for undo and redo of values; one gesture is one entry."""

    LIMIT = 200

    def __init__(self) -> None:
        self._done: list[Change] = []
        self._undone: list[Change] = []

    def record(self, gesture: int, before: Settings, after: Settings) -> None:
        """Remember a change; one of the same gesture is merged with what came before it."""
        differing = [i.name for i in all_settings() if before[i.name] != after[i.name]]
        old = {name: before[name] for name in differing}
        new = {name: after[name] for name in differing}
        self._undone.clear()
        if self._done and self._done[-1].gesture == gesture:
            last = self._done.pop()
            old = old | last.before
            new = last.after | new
        kept = [name for name in new if old[name] != new[name]]
        if kept:
            self._done.append(
                Change(gesture, {name: old[name] for name in kept}, {n: new[n] for n in kept})
            )
        del self._done[: -self.LIMIT]

    @property
    def gesture_to_undo(self) -> int:
        """The gesture that `undo` would take back; 0 without one."""
        return self._done[-1].gesture if self._done else 0

    @property
    def gesture_to_redo(self) -> int:
        """The gesture that `redo` would do again; 0 without one."""
        return self._undone[-1].gesture if self._undone else 0

    def undo(self) -> dict[str, Value]:
        """The values to go back to, by name; empty when there is nothing to undo."""
        if not self._done:
            return {}
        change = self._done.pop()
        self._undone.append(change)
        return change.before

    def redo(self) -> dict[str, Value]:
        """The values to set again, by name; empty when there is nothing to redo."""
        if not self._undone:
            return {}
        change = self._undone.pop()
        self._done.append(change)
        return change.after

    def clear(self) -> None:
        """Forget everything; done when a run begins."""
        self._done.clear()
        self._undone.clear()

    @property
    def can_undo(self) -> bool:
        """Whether `undo` would give something."""
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether `redo` would give something."""
        return bool(self._undone)


gesture_numbers = itertools.count(1)
"""Ids of gestures, unique in the process; 0 means none."""
