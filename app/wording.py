"""Numbers and times as the window writes them."""

import math

from engine.wording import counted as counted
from engine.wording import memory as memory


def duration(seconds: float) -> str:
    """A time span in its two largest units: 4 min 31 s."""
    if not math.isfinite(seconds):
        return "–"  # noqa: RUF001 - a dash for what is not known
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def share(part: float) -> str:
    """A part of one in percent; small parts keep a digit."""
    return f"{part:.0%}" if part >= 0.0995 or part == 0 else f"{part:.1%}"
