"""Vertical lines in a plot where things happened."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.palette import DARK, Palette
from app.panels.metrics_history import Mark, MarkKind
from app.panels.view_item import ViewItem

MARK_LOOKS = {
    MarkKind.RESET: ("muted", Qt.PenStyle.DashLine),
    MarkKind.DEGREE: ("disabled", Qt.PenStyle.DotLine),
    MarkKind.CHANGE: ("changed", Qt.PenStyle.DashLine),
    MarkKind.LOSS: ("changed", Qt.PenStyle.SolidLine),
}


class MarkLines(ViewItem):
    """Dashed vertical lines over the whole height, all in one item however many there are."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: Sequence[Mark] = ()
        self._colors = DARK
        self.setZValue(-10)

    def take(self, marks: Sequence[Mark], colors: Palette) -> None:
        """Draw these marks in these colours."""
        if list(marks) != list(self._marks) or colors != self._colors:
            self._marks = tuple(marks)
            self._colors = colors
            self.update()

    def paint(self, painter: QPainter, *_: object) -> None:
        """Draw the lines that are in view."""
        view = self.viewRect()
        for mark in self._marks:
            if not view.left() <= mark.step <= view.right():
                continue
            color, style = MARK_LOOKS[mark.kind]
            pen = QPen(QColor(getattr(self._colors, color)))
            pen.setCosmetic(True)
            pen.setStyle(style)
            painter.setPen(pen)
            painter.drawLine(QPointF(mark.step, view.top()), QPointF(mark.step, view.bottom()))
