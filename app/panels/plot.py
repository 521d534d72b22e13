"""One plot of the metrics: curves over steps, marks where things happened, hovered values.

A plot draws what it is given; what is drawn, and when, is the metrics panel's business.
"""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QLabel, QMenu, QSizePolicy, QVBoxLayout, QWidget

from app.palette import DARK, Palette
from app.panels.axis_ticks import (
    grown_end,
    linear_ticks,
    log_ticks,
    padded_range,
    range_from_zero,
)
from app.panels.metrics_history import Mark
from app.panels.plot_area import PlotArea
from app.panels.plot_header import Curve, PlotHeader
from app.panels.plot_reading import (
    NO_POINTS,
    Box,
    Points,
    least_hiding,
    reading_boxes,
    reading_text,
)
from app.theme import set_role

MARK_REACH_PX = 5
TICK_MARGIN_PX = 6
TICK_WIDTH_PX, TICK_HEIGHT_PX = 48, 26  # no tick has less room


class Plot(QWidget):
    """A card with a title, a legend of coloured words and the plot itself."""

    hovered = Signal(object)  # float step under the pointer, or None
    zoomed = Signal(float, float)  # steps, by the user
    all_asked = Signal()  # the user wants to see everything again
    log_toggled = Signal(bool)

    def __init__(
        self,
        title: str,
        curves: Sequence[Curve],
        can_log: bool = False,
        from_zero: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._from_zero = from_zero
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "panel")
        self.setAccessibleName(f"Plot of {title}")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleDescription(
            "Left and right read values, plus and minus zoom, 0 shows all steps"
        )
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.title = title
        self.logarithmic = False
        self._can_log = can_log
        self._curves = tuple(curves)
        self._colors = DARK
        self._pointer: QPointF | None = None  # in the area, while the pointer is over it
        self._data: dict[str, Points] = {}
        self._marks: Sequence[Mark] = ()
        self._ticks: list[list[str]] = [[], []]
        outer = QVBoxLayout(self)
        outer.setContentsMargins(12, 10, 8, 6)
        outer.setSpacing(6)
        self.header = PlotHeader(title, curves, self)
        outer.addWidget(self.header)
        self._area = self._build_area()
        outer.addWidget(self._area, 1)
        self._build_reading()
        self._write_ticks()
        self.set_colors(DARK)

    # --- what is shown --------------------------------------------------------------------------

    @property
    def columns(self) -> int:
        """How many pixels wide the curves are."""
        return max(int(self._area.scale.width), 16)

    @property
    def view_range(self) -> tuple[float, float]:
        """The steps in view."""
        return self._area.scale.steps

    @property
    def height_range(self) -> tuple[float, float]:
        """The values in view, or their base-ten logarithms."""
        return self._area.scale.heights

    @property
    def reading(self) -> str:
        """What is shown under the pointer; "" for nothing."""
        return self._reading.text() if self._reading.isVisibleTo(self) else ""

    @property
    def cursor_step(self) -> float | None:
        """The step at which values are read, if any."""
        return self._area.cursor_step

    @property
    def tick_words(self) -> tuple[list[str], list[str]]:
        """What stands at the ticks of the lower and of the left axis."""
        return self._ticks[1], self._ticks[0]

    def legend_text(self, key: str) -> str:
        """A curve's word in the legend."""
        return self.header.text(key)

    def place_of(self, step: float) -> QPointF:
        """Where a step is in this widget, at half the height of the curves."""
        scale = self._area.scale
        place = QPointF(scale.x(step), scale.top + scale.height / 2)
        return self._area.mapTo(self, place)

    def data(self, key: str) -> Points:
        """The points drawn of one curve."""
        return self._data.get(key, NO_POINTS)

    def set_curve(self, key: str, x: np.ndarray, y: np.ndarray) -> None:
        """Draw a curve through these points."""
        had_points = self._has_points
        self._data[key] = (x, y)
        self._area.set_points(key, x, self._drawn_height(y))
        if self._has_points is not had_points:
            self._write_ticks()

    @property
    def _has_points(self) -> bool:
        return any(len(points[0]) for points in self._data.values())

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Draw these marks."""
        self._marks = marks
        self._area.set_marks(marks)

    def set_word(self, key: str, word: str, tooltip: str = "") -> None:
        """Change a curve's word in the legend."""
        self.header.set_word(key, word, tooltip)

    def fit(self, first: float, last: float) -> None:
        """Show the steps from `first` to `last`, and the height of the curves there."""
        bottom, top = self._height_of(first, last) or self.height_range
        if (first, last) != self.view_range or (bottom, top) != self.height_range:
            self._area.set_ranges((first, last), (bottom, top))
            self._write_ticks()

    def _height_of(self, first: float, last: float) -> tuple[float, float] | None:
        lows, highs = [], []
        for x, y in self._data.values():
            seen = y[(x >= first) & (x <= last)]
            seen = seen[np.isfinite(seen)]
            if len(seen):
                lows.append(float(seen.min()))
                highs.append(float(seen.max()))
        if not lows:
            return None
        low, high = min(lows), max(highs)
        if self._from_zero:
            return range_from_zero(high)
        if self.logarithmic:
            low, high = float(np.log10(max(low, 1e-12))), float(np.log10(max(high, 1e-12)))
        return padded_range(low, high)

    def fit_all(self, first: float, last: float) -> None:
        """Show everything from `first` on, with round room to the right."""
        self.fit(first, first + grown_end(last - first))

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Draw the values by their logarithms or as they are."""
        if logarithmic == self.logarithmic:
            return
        self.logarithmic = logarithmic
        for key, (x, y) in self._data.items():
            self.set_curve(key, x, y)
        self.fit(*self.view_range)
        self._write_ticks()

    def set_colors(self, colors: Palette) -> None:
        """Repaint in the colours of a theme."""
        self._colors = colors
        self._area.set_colors(colors)
        self.header.set_colors(colors)

    @property
    def pointed_step(self) -> float | None:
        """The step that is under the pointer now, however the plot has moved; None without one."""
        place, scale = self._pointer, self._area.scale
        if place is None or not scale.holds(place.x(), place.y()):
            return None
        return scale.step_at(place.x())

    def show_cursor(self, step: float | None, *, with_marks: bool = True) -> None:
        """Show the values at a step, and what happened there, or no values."""
        self._area.set_cursor_step(step)
        if step is None:
            self._reading.hide()
            return
        low, high = self.view_range
        reach = (high - low) / self.columns * MARK_REACH_PX
        marks = self._marks if with_marks else ()
        text = reading_text(self._curves, self._data, marks, step, reach, self._colors)
        self._reading.setVisible(bool(text))
        if text:
            self._reading.setText(text)
            boxes = self._reading_boxes(step)
            self._reading.setGeometry(*least_hiding(boxes, *self._drawn_points()))

    def _reading_boxes(self, step: float) -> list[Box]:
        scale, area, reading = self._area.scale, self._area.geometry(), self._reading
        reading.setWordWrap(False)
        wanted = reading.sizeHint().width()
        reading.setWordWrap(True)
        left, top = area.left() + int(scale.left), area.top() + int(scale.top)
        curves = (left, top, int(scale.width), int(scale.height))
        cursor = area.left() + int(scale.x(step))
        return reading_boxes(curves, cursor, wanted, reading.heightForWidth)

    def _drawn_points(self) -> Points:
        """The points of all curves, and one in each column that they cross; in this widget's px."""
        scale, area = self._area.scale, self._area.geometry()
        columns = np.arange(scale.left, scale.left + scale.width)
        places, heights = [np.empty(0)], [np.empty(0)]
        for steps, values in self._data.values():
            if len(steps):
                x, y = scale.x(steps), scale.y(self._drawn_height(values))
                places.append(np.union1d(columns, x))
                heights.append(np.interp(places[-1], x, y, np.nan, np.nan))
        return area.left() + np.concatenate(places), area.top() + np.concatenate(heights)

    def _drawn_height(self, y: np.ndarray) -> np.ndarray:
        return np.log10(np.maximum(y, 1e-12)) if self.logarithmic else y

    # --- building -------------------------------------------------------------------------------

    def _build_area(self) -> PlotArea:
        area = PlotArea(self._curves, self)
        area.resized.connect(self._write_ticks)
        area.zoomed.connect(self.zoomed)
        area.all_asked.connect(self.all_asked)
        area.pointed.connect(self._follow_pointer)
        return area

    def _build_reading(self) -> None:
        self._reading = QLabel(self)
        self._reading.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._reading.setTextFormat(Qt.TextFormat.RichText)
        self._reading.setWordWrap(True)
        set_role(self._reading, "reading")
        self._reading.hide()

    # --- pointer, keys, menu --------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Read values with left and right, zoom with plus and minus, show all with 0."""
        low, high = self.view_range
        at = self.cursor_step if self.cursor_step is not None else (low + high) / 2
        step = (high - low) / 50
        match event.key():
            case Qt.Key.Key_Left:
                self._pointer = None  # from here on the keys say where
                self.hovered.emit(max(at - step, low))
            case Qt.Key.Key_Right:
                self._pointer = None
                self.hovered.emit(min(at + step, high))
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.zoomed.emit(at - (at - low) / 2, at + (high - at) / 2)
            case Qt.Key.Key_Minus:
                self.zoomed.emit(at - (at - low) * 2, at + (high - at) * 2)
            case Qt.Key.Key_0 | Qt.Key.Key_Home:
                self.all_asked.emit()
            case Qt.Key.Key_Escape if self.cursor_step is not None:
                self.hovered.emit(None)
            case _:
                super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Read no more values."""
        super().focusOutEvent(event)
        self.hovered.emit(None)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer what can be done with the plot."""
        menu = self.context_menu()
        menu.exec(event.globalPos())
        menu.deleteLater()

    def context_menu(self) -> QMenu:
        """The menu of the right mouse button."""
        menu = QMenu(self)
        menu.addAction("Show all steps", self.all_asked.emit)
        if self._can_log:
            log = menu.addAction("Logarithmic")
            log.setCheckable(True)
            log.setChecked(self.logarithmic)
            log.toggled.connect(self.log_toggled)
        menu.addSeparator()
        menu.addAction("Copy picture", self.copy_picture)
        menu.addAction("Copy values", self.copy_values)
        return menu

    def copy_picture(self) -> None:
        """Put a picture of the plot on the clipboard."""
        QGuiApplication.clipboard().setPixmap(self.grab())

    def copy_values(self) -> None:
        """Put the points in view on the clipboard: curve, step, value, separated by tabs."""
        low, high = self.view_range
        lines = ["curve\tstep\tvalue"]
        for curve in self._curves:
            x, y = self.data(curve.key)
            seen = (x >= low) & (x <= high)
            lines += [
                f"{curve.word}\t{step:g}\t{value:.8g}"
                for step, value in zip(x[seen], y[seen], strict=True)
            ]
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _follow_pointer(self, place: QPointF | None) -> None:
        self._pointer = place
        self.hovered.emit(self.pointed_step)

    # --- writing --------------------------------------------------------------------------------

    def _write_ticks(self) -> None:
        if not self._has_points:
            self._set_ticks([], [])
            return
        scale = self._area.scale
        bottom, top = scale.heights
        across = max(int(scale.width) // TICK_WIDTH_PX, 2)
        upward = max(int(scale.height) // TICK_HEIGHT_PX, 2)
        # above, half a number is cut off
        highest = top - (top - bottom) * TICK_MARGIN_PX / scale.height
        if self.logarithmic:
            left_ticks = log_ticks(bottom, highest, upward)
        else:
            ticks = linear_ticks(bottom, top, upward)
            left_ticks = [tick for tick in ticks if tick[0] <= highest]
        self._set_ticks(left_ticks, linear_ticks(*scale.steps, across))

    def _set_ticks(self, left: list[tuple[float, str]], bottom: list[tuple[float, str]]) -> None:
        self._area.set_ticks(left, bottom, is_empty=not self._has_points)
        self._ticks = [[word for _, word in ticks] for ticks in (left, bottom)]
