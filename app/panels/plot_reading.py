"""What is read under the pointer of a plot, and where it is written. No Qt here."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from app.palette import Palette
from app.panels.metrics_history import Mark, MarkKind, nearest
from app.panels.plot_header import Curve

MOST_LINES = 9
NARROWEST_PX = 110  # lines are not broken for less
GAP_PX = 4  # between cursor and reading
STAYS = "\N{NO-BREAK SPACE}"  # where no line is broken

Points = tuple[np.ndarray, np.ndarray]
Box = tuple[int, int, int, int]  # left, top, width, height
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
    Several marks are told in short, or their lines would hide the curves.
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
    lines = [_steps_word(found, shown_step)]
    for curve, x, y, index in found:
        color = getattr(colors, curve.color)
        is_whole = curve.digits == 0 or y[index] >= 1e4
        value = f"{y[index]:,.0f}" if is_whole else f"{y[index]:,.{curve.digits}g}"
        elsewhere = curve.dots and x[index] != shown_step
        at = f" (step{STAYS}{x[index]:,.0f})" if elsewhere else ""
        lines.append(f'<span style="color:{color}">{curve.word} {value}{at}</span>')
    near = [mark for mark in marks if abs(mark.step - step) <= reach]
    for mark in near:
        is_change = mark.kind in (MarkKind.CHANGE, MarkKind.LOSS)
        color = colors.changed if is_change else colors.muted
        text = mark.text if len(near) == 1 else mark.short_text
        lines.append(f'<span style="color:{color}">{mark.step:,} {text}</span>')
    return "<br>".join(lines[:MOST_LINES])


def _steps_word(
    found: Sequence[tuple[Curve, np.ndarray, np.ndarray, int]], shown_step: float
) -> str:
    """The step that is read, or the steps whose mean it is where a line has fewer points."""
    x = next((x for curve, x, _, _ in found if not curve.dots), None)
    between = int(np.median(np.diff(x))) if x is not None and len(x) > 1 else 1
    if between <= 1:
        return f"step {shown_step:,.0f}"
    first = max(1, round(shown_step - (between - 1) / 2))
    return f"mean of steps {first:,}{STAYS}to{STAYS}{first + between - 1:,}"


def _index(curve: Curve, x: np.ndarray, step: float, reach: float) -> int | None:
    if not curve.dots:
        return nearest(x, step)
    until = int(np.searchsorted(x, step + reach, side="right"))
    return until - 1 if until else None


def reading_boxes(
    curves: Box, cursor: int, wanted: int, height_of: Callable[[int], int]
) -> list[Box]:
    """Where a reading may stand: beside the cursor, above or below; the best first. All in px.

    `curves` is where these are drawn, `wanted` the width that breaks no line, `height_of` the
    height by the width. With no room at either side it stands across, over the axis as well.
    """
    left, top, width, height = curves
    end, bottom = left + width, top + height
    before, behind = (left, cursor - GAP_PX), (cursor + GAP_PX, end)
    boxes: list[Box] = []
    for begin, stop in (before, behind) if cursor - left > end - cursor else (behind, before):
        room = stop - begin
        if room < min(wanted, NARROWEST_PX):
            continue
        wide = min(wanted, room)
        high = height_of(wide)
        places = (begin, stop - wide) if begin == left else (stop - wide, begin)
        boxes += [(x, y, wide, high) for x in places for y in (top, bottom - high)]
    if boxes := [box for box in boxes if box[3] <= height]:
        return boxes
    wide = min(wanted, end)
    high = height_of(wide)
    below = max(bottom - high, 0)  # a small plot's title gives way to the last line
    return [(end - wide, y, wide, high) for y in ((top, below) if high <= height else (below,))]


def least_hiding(boxes: Sequence[Box], x: np.ndarray, y: np.ndarray) -> Box:
    """The box to write in: the first, unless another hides at most half as many points.

    `x` and `y`, (n,), are in the boxes' px. So a box does not jump about for a point or two.
    """
    hidden = [
        int(np.count_nonzero((x >= left) & (x <= left + width) & (y >= top) & (y <= top + height)))
        for left, top, width, height in boxes
    ]
    least = int(np.argmin(hidden))
    return boxes[least] if hidden[least] <= hidden[0] / 2 else boxes[0]
