"""What is read under the pointer of a plot: step, values, and what happened there. No Qt here."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.palette import Palette
from app.panels.metrics_history import Mark, MarkKind, nearest
from app.panels.plot_header import Curve

MOST_LINES = 9

Points = tuple[np.ndarray, np.ndarray]


def reading_text(
    curves: Sequence[Curve],
    data: Mapping[str, Points],
    marks: Sequence[Mark],
    step: float,
    reach: float,
    colors: Palette,
) -> str:
    """Lines of rich text about `step` and the marks within `reach` steps; "" without points."""
    lines = []
    shown_step: float | None = None
    for curve in curves:
        x, y = data.get(curve.key, (np.empty(0), np.empty(0)))
        index = nearest(x, step)
        if index is None:
            continue
        if shown_step is None or not curve.dots:
            shown_step = float(x[index])
        color = getattr(colors, curve.color)
        value = f"{y[index]:,.{curve.digits}g}" if y[index] < 1e4 else f"{y[index]:,.0f}"
        lines.append(f'<span style="color:{color}">{curve.word} {value}</span>')
    if shown_step is None:
        return ""
    lines.insert(0, f"step {shown_step:,.0f}")
    for mark in marks:
        if abs(mark.step - step) <= reach:
            is_change = mark.kind in (MarkKind.CHANGE, MarkKind.LOSS)
            color = colors.changed if is_change else colors.muted
            lines.append(f'<span style="color:{color}">{mark.step:,} {mark.text}</span>')
    return "<br>".join(lines[:MOST_LINES])
