"""Where an axis has its ticks and what they say. No Qt here."""

import math

JUMPS = 20  # into how many parts the end of a range is rounded
DECADE_FACTORS = ((1, 2, 5), (1, 3), (1,))
SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def nice_step(span: float, count: int) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that divides `span` into at most `count`."""
    if span <= 0:
        return 1.0
    rough = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if factor * power >= rough * (1 - 1e-9):
            return factor * power
    return 10.0 * power


def tick_text(value: float, step: float) -> str:
    """A tick's number with the digits its neighbours need: `0.05`, `24`, `1.5k`, `120k`, `2M`."""
    largest = max(abs(value), step)
    for unit, suffix in SUFFIXES:
        if largest >= unit:
            digits = max(0, -math.floor(math.log10(step / unit) + 1e-9))
            text = f"{value / unit:.{digits}f}"
            return "0" if value == 0 else text + suffix
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{digits}f}"


def linear_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Ticks at round numbers between `low` and `high`, at most about `count`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return []
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(index * step, tick_text(index * step, step)) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Ticks for an axis of base-ten logarithms, at most `count`, but no fewer than two.

    They are at 1, 2, 5 a decade; where these crowd at 1, 3 or at decades, or at some of those; in
    a short range, at round values.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return []
    most = max(count, 2)
    crowded: list[tuple[float, str]] = []
    for factors in DECADE_FACTORS:
        ticks = _decade_ticks(low, high, factors)
        if 2 <= len(ticks) <= most:
            return ticks
        if len(ticks) > most:
            crowded = ticks
    for finer in range(most, most + 10):  # a few more always give two
        if len(crowded) < 2:
            values = linear_ticks(10.0**low, 10.0**high, finer)
            crowded = [(math.log10(value), text) for value, text in values if value > 0]
    return crowded[:: max(math.ceil(len(crowded) / most), 1)]


def _decade_ticks(low: float, high: float, factors: tuple[int, ...]) -> list[tuple[float, str]]:
    return [
        (position, f"{factor * 10.0**decade:.6g}")
        for decade in range(math.floor(low), math.ceil(high) + 1)
        for factor in factors
        if low <= (position := decade + math.log10(factor)) <= high
    ]


def padded_range(low: float, high: float, padding: float = 0.06) -> tuple[float, float]:
    """A range with air around it; never empty.

    Its ends move in jumps, so that the axis is laid out anew now and then, not at each refresh.
    """
    if high <= low:
        middle, air = low, max(abs(low) * 0.1, 1e-6)
        return middle - air, middle + air
    air = (high - low) * padding
    step = nice_step(high - low, JUMPS)
    return math.floor((low - air) / step) * step, math.ceil((high + air) / step) * step


def range_from_zero(high: float, padding: float = 0.08) -> tuple[float, float]:
    """A range from zero to a little above `high`, for amounts; never empty; moves in jumps."""
    if high <= 0:
        return 0.0, 1.0 + padding
    step = nice_step(high, JUMPS)
    return 0.0, math.ceil(high * (1 + padding) / step) * step


def grown_end(last: float) -> float:
    """The right end of a step axis: a round number a little beyond `last`.

    It moves in jumps, so that the axis is laid out anew now and then and not at each refresh.
    """
    if last <= 10:
        return 10.0
    step = nice_step(last, 12)
    return math.ceil(last * 1.02 / step) * step
