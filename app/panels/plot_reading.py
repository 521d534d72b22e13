"""What is read under the pointer of a plot: step, values, and what happened there. No Qt here."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.palette import Palette
from app.panels.metrics_history import Mark, MarkKind, nearest
from app.panels.plot_header import Curve

MOST_LINES = 9

Points = tuple[np.ndarray, np.ndarray]
NO_POINTS: Points = (np.empty(0), np.empty(0))


def reading_text(
    curves: Sequence[Curve],
    data: Mapping[str, Points],
    marks: Sequence[Mark],
    step: float,
    reach: float,
    colors: Palette,
) -> str:
    """Lines of rich text about `step` and the marks within `reach` steps; "" without points.

    Dots are measured now and then: the last before the step, or within `reach` after it, counts.
    """
    found = [
        (curve, *points, index)
        for curve in curves
        if (index := _index(curve, (points := data.get(curve.key, NO_POINTS))[0], step, reach))
        is not None
    ]
    if not found:
        return ""
    # the step of a line, which has one for every place; else of the dots
    shown_step = next((float(x[i]) for curve, x, _, i in found if not curve.dots), None)
    if shown_step is None:
        _, x, _, index = found[0]
        shown_step = float(x[index])
    lines = [f"step {shown_step:,.0f}"]
    for curve, x, y, index in found:
        color = getattr(colors, curve.color)
        value = f"{y[index]:,.{curve.digits}g}" if y[index] < 1e4 else f"{y[index]:,.0f}"
        elsewhere = curve.dots and x[index] != shown_step
        at = f" (step {x[index]:,.0f})" if elsewhere else ""
        lines.append(f'<span style="color:{color}">{curve.word} {value}{at}</span>')
    for mark in marks:
        if abs(mark.step - step) <= reach:
            is_change = mark.kind in (MarkKind.CHANGE, MarkKind.LOSS)
            color = colors.changed if is_change else colors.muted
            lines.append(f'<span style="color:{color}">{mark.step:,} {mark.text}</span>')
    return "<br>".join(lines[:MOST_LINES])


def _index(curve: Curve, x: np.ndarray, step: float, reach: float) -> int | None:
    if not curve.dots:
        return nearest(x, step)
    until = int(np.searchsorted(x, step + reach, side="right"))
    return until - 1 if until else None
