"""The curves of one plot, all in one item."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from app.palette import Palette
from app.panels.plot_header import Curve
from app.panels.view_item import ViewItem

DOT_RADIUS_PX = 2.5


@dataclasses.dataclass
class _Drawn:
    path: QPainterPath
    dots: list[QPointF]
    pen: QPen


class CurveLines(ViewItem):
    """Lines through points, broken where a value is not finite, with dots where a curve has them.

    pyqtgraph's own curve item asks every curve for its bounds at every repaint and lays its axes
    out anew; here the item is as large as the view, and a repaint is nothing but the drawing.
    """

    def __init__(self, curves: Sequence[Curve]) -> None:
        super().__init__()
        self._dotted = {curve.key for curve in curves if curve.dots}
        self._drawn = {curve.key: _Drawn(QPainterPath(), [], QPen()) for curve in curves}

    def set_points(self, key: str, x: np.ndarray, y: np.ndarray) -> None:
        """Draw a curve through these points, arrays of equal length (n,)."""
        drawn = self._drawn[key]
        drawn.path = pg.arrayToQPath(x, y, connect="finite") if len(x) else QPainterPath()
        if key in self._dotted:
            finite = np.isfinite(y)
            places = zip(x[finite].tolist(), y[finite].tolist(), strict=True)
            drawn.dots = [QPointF(*place) for place in places]
        self.update()

    def set_colors(self, curves: Sequence[Curve], colors: Palette) -> None:
        """Draw in the colours of a theme."""
        for curve in curves:
            pen = QPen(QColor(getattr(colors, curve.color)), 1.0)
            pen.setCosmetic(True)
            self._drawn[curve.key].pen = pen
        self.update()

    def paint(self, painter: QPainter, *_: object) -> None:
        """Draw the lines, then the dots, round whatever the scales are."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for drawn in self._drawn.values():
            painter.setPen(drawn.pen)
            painter.drawPath(drawn.path)
        to_pixels = painter.transform()
        painter.resetTransform()
        painter.setPen(Qt.PenStyle.NoPen)
        for drawn in self._drawn.values():
            painter.setBrush(drawn.pen.color())
            for dot in drawn.dots:
                painter.drawEllipse(to_pixels.map(dot), DOT_RADIUS_PX, DOT_RADIUS_PX)
        painter.setTransform(to_pixels)
