"""The inside of a plot: axes, marks, curves and a cursor, and what the mouse does there.

It is painted by hand because training pays for every repaint: 0.5 ms, where a graphics scene with
axes of its own took 2.5 ms.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from app.palette import DARK, Palette
from app.panels.curve_lines import CurveLines
from app.panels.mark_lines import paint_marks
from app.panels.metrics_history import Mark
from app.panels.plot_header import Curve
from app.panels.plot_scale import PlotScale, Range

AXIS_WIDTH_PX = 40
AXIS_HEIGHT_PX = 20
RIGHT_PX = 4
TICK_POINT_SIZE = 7.5
TICK_GAP_PX = 4.0
ZOOM_A_NOTCH = 0.75  # of the steps in view are left by one notch of the wheel
NOTCH = 120  # what Qt counts for one notch
EMPTY_WORDS = "no steps yet"

Ticks = Sequence[tuple[float, str]]


class PlotArea(QWidget):
    """Draws what it is given; wheel and drag ask for another range, nothing changes by itself."""

    pointed = Signal(object)  # QPointF of the pointer here, None when it leaves
    zoomed = Signal(float, float)  # steps wanted in view
    all_asked = Signal()
    resized = Signal()

    def __init__(self, curves: Sequence[Curve], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setMinimumHeight(60)
        self.scale = PlotScale()
        self.cursor_step: float | None = None
        self._lines = CurveLines(curves)
        self._marks: tuple[Mark, ...] = ()
        self._ticks: tuple[Ticks, Ticks] = ((), ())
        self._is_empty = True
        self._colors = DARK
        self._backdrop: QPixmap | None = None  # all but curves and cursor, which rarely changes
        self._drag: tuple[float, PlotScale] | None = None  # where it began, and in what scale

    def sizeHint(self) -> QSize:
        """Room for axes and some curves."""
        return QSize(256, 192)

    # --- what is drawn --------------------------------------------------------------------------

    def set_points(self, key: str, x: np.ndarray, y: np.ndarray) -> None:
        """Draw a curve through these points, arrays of equal length (n,)."""
        self._lines.set_points(key, x, y)
        self.update()

    def set_ranges(self, steps: Range, heights: Range) -> None:
        """Show these steps and these values, or their logarithms."""
        self._set_scale(dataclasses.replace(self.scale, steps=steps, heights=heights))

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Draw these marks."""
        if tuple(marks) != self._marks:
            self._marks = tuple(marks)
            self._draw_anew()

    def set_ticks(self, left: Ticks, bottom: Ticks, *, is_empty: bool) -> None:
        """Write these words at these places; an empty plot says so."""
        if ((left, bottom), is_empty) != (self._ticks, self._is_empty):
            self._ticks, self._is_empty = (left, bottom), is_empty
            self._draw_anew()

    def set_colors(self, colors: Palette) -> None:
        """Repaint in the colours of a theme."""
        self._colors = colors
        self._lines.set_colors(colors)
        self._draw_anew()

    def set_cursor_step(self, step: float | None) -> None:
        """Draw a line at a step, or none."""
        if step != self.cursor_step:
            self.cursor_step = step
            self.update()

    def _set_scale(self, scale: PlotScale) -> None:
        if scale != self.scale:
            self.scale = scale
            self._draw_anew()

    def _draw_anew(self) -> None:
        self._backdrop = None
        self.update()

    # --- painting -------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the curves over what has not changed."""
        ratio = self.devicePixelRatioF()
        if self._backdrop is None or self._backdrop.devicePixelRatio() != ratio:
            self._backdrop = self._paint_backdrop(ratio)
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._backdrop)
        scale = self.scale
        painter.setClipRect(QRectF(scale.left, scale.top, scale.width, scale.height))
        if self.cursor_step is not None:
            painter.setPen(QColor(self._colors.disabled))
            x = scale.x(self.cursor_step)
            painter.drawLine(QLineF(x, scale.top, x, scale.top + scale.height))
        self._lines.paint(painter, scale)
        painter.end()

    def _paint_backdrop(self, ratio: float) -> QPixmap:
        pixmap = QPixmap(self.size() * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(QColor(self._colors.panel))
        painter = QPainter(pixmap)
        scale = self.scale
        right, bottom = scale.left + scale.width, scale.top + scale.height
        paint_marks(painter, self._marks, scale, self._colors)
        painter.setPen(QColor(self._colors.grid))
        painter.drawLine(QLineF(scale.left, scale.top, scale.left, bottom))
        painter.drawLine(QLineF(scale.left, bottom, right, bottom))
        painter.setPen(QColor(self._colors.muted))
        if self._is_empty:
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, EMPTY_WORDS)
        self._paint_ticks(painter)
        painter.end()
        return pixmap

    def _paint_ticks(self, painter: QPainter) -> None:
        scale = self.scale
        font = QFont(self.font())
        font.setPointSizeF(TICK_POINT_SIZE)
        painter.setFont(font)
        metrics = QFontMetricsF(font)
        left, bottom = self._ticks
        middle = (metrics.ascent() - metrics.descent()) / 2  # of the letters, above the baseline
        for value, word in left:
            x = scale.left - TICK_GAP_PX - metrics.horizontalAdvance(word)
            painter.drawText(QPointF(x, scale.y(value) + middle), word)
        baseline = scale.top + scale.height + TICK_GAP_PX + metrics.ascent()
        for step, word in bottom:
            width = metrics.horizontalAdvance(word)
            x = min(scale.x(step) - width / 2, self.width() - width)  # the last may be at the rim
            painter.drawText(QPointF(x, baseline), word)

    # --- size and mouse -------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the axes out anew."""
        super().resizeEvent(event)
        width = max(float(self.width() - AXIS_WIDTH_PX - RIGHT_PX), 1.0)
        height = max(float(self.height() - AXIS_HEIGHT_PX), 1.0)
        self._set_scale(
            dataclasses.replace(self.scale, left=float(AXIS_WIDTH_PX), width=width, height=height)
        )
        self.resized.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of the curves with the left button."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._drag = event.position().x(), self.scale
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move what is held; tell where the pointer is."""
        if self._drag is not None:
            begin, scale = self._drag
            moved = event.position().x() - begin
            if scale != self.scale or abs(moved) >= QApplication.startDragDistance():
                first, last = scale.step_at(scale.left - moved), scale.steps[1]
                self.zoomed.emit(first, last + first - scale.steps[0])
        self.pointed.emit(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let the curves go."""
        self._drag = None
        super().mouseReleaseEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Ask for everything."""
        self.all_asked.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom about the step under the pointer."""
        factor = ZOOM_A_NOTCH ** (event.angleDelta().y() / NOTCH)
        at = self.scale.step_at(event.position().x())
        first, last = self.scale.steps
        self.zoomed.emit(at + (first - at) * factor, at + (last - at) * factor)
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        """Tell that the pointer has left."""
        super().leaveEvent(event)
        self.pointed.emit(None)
