"""Vertical lines in a plot where things happened."""

from collections.abc import Sequence

from PySide6.QtCore import QLineF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.palette import Palette
from app.panels.metrics_history import Mark, MarkKind
from app.panels.plot_scale import PlotScale

MARK_LOOKS = {
    MarkKind.RESET: ("muted", Qt.PenStyle.DashLine),
    MarkKind.DEGREE: ("disabled", Qt.PenStyle.DotLine),
    MarkKind.CHANGE: ("changed", Qt.PenStyle.DashLine),
    MarkKind.LOSS: ("changed", Qt.PenStyle.SolidLine),
}


def paint_marks(
    painter: QPainter, marks: Sequence[Mark], scale: PlotScale, colors: Palette
) -> None:
    """Draw the marks that are in view over the whole height."""
    first, last = scale.steps
    for mark in marks:
        if first <= mark.step <= last:
            color, style = MARK_LOOKS[mark.kind]
            painter.setPen(QPen(QColor(getattr(colors, color)), 1.0, style))
            x = scale.x(float(mark.step))
            painter.drawLine(QLineF(x, scale.top, x, scale.top + scale.height))
