"""The curves of one plot."""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF
from shiboken6 import VoidPtr

from app.palette import DARK, Palette
from app.panels.plot_header import Curve
from app.panels.plot_reading import NO_POINTS
from app.panels.plot_scale import PlotScale

DOT_RADIUS_PX = 2.5


class CurveLines:
    """Lines through points, broken where a value is not finite, with dots where a curve has them.

    A point alone, such as that of a run's first step, is a dot as well: no line leads to it.
    Pens are one pixel wide and no wider: Qt draws those some forty times as fast.
    """

    def __init__(self, curves: Sequence[Curve]) -> None:
        self._curves = tuple(curves)
        self._points = {curve.key: NO_POINTS for curve in curves}
        self.set_colors(DARK)

    def set_points(self, key: str, x: np.ndarray, y: np.ndarray) -> None:
        """Draw a curve through these points, arrays of equal length (n,)."""
        self._points[key] = (x, y)

    def set_colors(self, colors: Palette) -> None:
        """Draw in the colours of a theme."""
        self._pens = {c.key: QPen(QColor(getattr(colors, c.color)), 1.0) for c in self._curves}

    def paint(self, painter: QPainter, scale: PlotScale) -> None:
        """Draw the lines, then the dots."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        places = {key: (scale.x(x), scale.y(y)) for key, (x, y) in self._points.items()}
        dotted = {curve.key for curve in self._curves if curve.dots}
        dots: list[tuple[str, QPointF]] = []
        for key, (x, y) in places.items():
            painter.setPen(self._pens[key])
            for piece in finite_pieces(y):
                painter.drawPolyline(polygon_of(x[piece], y[piece]))
                if key in dotted or piece.stop - piece.start == 1:
                    ends = zip(x[piece].tolist(), y[piece].tolist(), strict=True)
                    dots += [(key, QPointF(*end)) for end in ends]
        painter.setPen(Qt.PenStyle.NoPen)
        for key, place in dots:
            painter.setBrush(self._pens[key].color())
            painter.drawEllipse(place, DOT_RADIUS_PX, DOT_RADIUS_PX)


def finite_pieces(y: np.ndarray) -> list[slice]:
    """The runs of finite values in `y` (n,), in order."""
    finite = np.isfinite(y)
    if len(y) and finite.all():
        return [slice(0, len(y))]  # as nearly always, for a fifth of the price
    edges = np.flatnonzero(np.diff(finite, prepend=False, append=False))
    return [slice(*edge) for edge in edges.reshape(-1, 2).tolist()]


def polygon_of(x: np.ndarray, y: np.ndarray) -> QPolygonF:
    """A polygon of points (n,) and (n,), written into its memory: 70 times as fast as a list."""
    polygon = QPolygonF()
    polygon.resize(len(x))
    # PySide's stubs know neither the pointer that `data` returns nor a VoidPtr's size and buffer
    memory = VoidPtr(polygon.data(), 16 * len(x), True)  # type: ignore[call-arg,arg-type]
    points = np.frombuffer(memory, dtype=np.float64).reshape(-1, 2)  # type: ignore[call-overload]
    points[:, 0], points[:, 1] = x, y
    return polygon
