"""How far the run is: a bar over the iterations with marks of what happens and happened when."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.palette import DARK, Palette
from app.theme import set_role
from engine.messages import (
    Event,
    OpacitiesReset,
    RunStarted,
    Saved,
    SceneOpened,
    SettingApplied,
    ShDegreeRaised,
    StateChanged,
    Stepped,
)
from engine.settings import Settings

SIDE = 14.0
BAR_TOP, BAR_HEIGHT = 20.0, 6.0
MOST_RESETS = 40


def schedule_marks(settings: Settings) -> list[tuple[int, str]]:
    """Steps at which the schedule does something, with a name, in order."""
    last = int(settings["iterations"])
    marks = []
    for degree in range(1, int(settings["sh_degree_max"]) + 1):
        marks.append((degree * int(settings["sh_interval"]), f"SH {degree}"))
    interval = int(settings["opacity_reset_interval"])
    stop = int(settings["densify_stop"])
    if interval > 0:
        resets = range(interval, min(stop, last + 1), interval)
        if len(resets) <= MOST_RESETS:
            marks.extend((step, "opacity reset") for step in resets)
    marks.append((stop, "densify ends"))
    return sorted(mark for mark in marks if 0 < mark[0] < last)


class ProgressStrip(QWidget):
    """A slim bar; hover it for the words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "panel")
        self.setAccessibleName("Progress of the run")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.colors: Palette = DARK
        self.settings: Settings | None = None
        self.step = 0
        self._marks: list[tuple[int, str]] = []
        self._tweaks: list[tuple[int, str]] = []
        self._saves: list[int] = []

    def sizeHint(self) -> QSize:
        """Wide, and as high as the bar with its words."""
        return QSize(400, 50)

    def handle(self, event: Event) -> None:
        """Follow the run."""
        if isinstance(event, Stepped) and len(event.steps):
            self._set_step(int(event.steps[-1]))
        elif isinstance(event, StateChanged):
            self._set_step(event.step)
        elif isinstance(event, SceneOpened):
            self.settings = None
            self._clear()
        elif isinstance(event, RunStarted):
            self._clear()
            self._set_settings(event.settings)
            self._set_step(event.step)
        elif isinstance(event, SettingApplied) and self.settings is not None and not event.held:
            self._set_settings(self.settings.changed(event.name, event.new))
            if event.step > 0:
                self._tweaks.append((event.step, event.name.replace("_", " ")))
        elif isinstance(event, Saved):
            self._saves.append(event.step)
        elif not isinstance(event, OpacitiesReset | ShDegreeRaised):
            return
        self.update()

    def set_colors(self, colors: Palette) -> None:
        """Another theme."""
        self.colors = colors
        self.update()

    def _clear(self) -> None:
        self._marks, self._tweaks, self._saves, self.step = [], [], [], 0

    def _set_settings(self, settings: Settings) -> None:
        self.settings = settings
        self._marks = schedule_marks(settings)
        self._set_step(self.step)

    def _set_step(self, step: int) -> None:
        self.step = step
        last = 0 if self.settings is None else int(self.settings["iterations"])
        share = f" of {last:,}" if last else ""
        changes = [f"{name} changed at step {at:,}" for at, name in self._tweaks[-5:]]
        self.setToolTip("\n".join([f"Step {step:,}{share}", *changes]))
        self.setAccessibleDescription(f"Step {step:,}{share}")

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint bar, marks and words."""
        super().paintEvent(event)
        if self.settings is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * 0.85)
        painter.setFont(font)
        last = int(self.settings["iterations"])
        span = self.width() - 2 * SIDE
        done = span * min(1.0, self.step / last)
        painter.setPen(Qt.PenStyle.NoPen)
        for length, color in ((span, self.colors.grid), (done, self.colors.accent)):
            painter.setBrush(QColor(color))
            if length > 0:
                painter.drawRoundedRect(QRectF(SIDE, BAR_TOP, length, BAR_HEIGHT), 3, 3)
        self._paint_marks(painter, span / last, last)
        self._paint_tweaks(painter, span / last)
        painter.end()

    def _paint_marks(self, painter: QPainter, per_step: float, last: int) -> None:
        metrics = QFontMetricsF(painter.font())
        end = f"{last:,}"
        right = self.width() - SIDE
        painter.setPen(QColor(self.colors.muted))
        end_width = metrics.horizontalAdvance(end)
        baseline = BAR_TOP + BAR_HEIGHT + 5 + metrics.ascent()
        painter.drawText(QPointF(right - end_width, baseline), end)
        free_from, told = SIDE, set()
        for step, name in self._marks:
            x = SIDE + step * per_step
            ahead = step > self.step
            line = QColor(self.colors.violet if name.startswith("SH") else self.colors.muted)
            painter.setPen(QPen(line, 1.6))
            painter.drawLine(QPointF(x, BAR_TOP - 4), QPointF(x, BAR_TOP + BAR_HEIGHT + 4))
            width = metrics.horizontalAdvance(name)
            left = x - width / 2
            fits = left >= free_from and left + width < right - end_width - 10
            if fits and (name not in told or ahead) and name not in told:
                painter.setPen(QColor(self.colors.muted))
                painter.drawText(QPointF(left, baseline), name)
                free_from = left + width + 10
                told.add(name)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.colors.handle))
        for step in self._saves:
            painter.drawEllipse(QPointF(SIDE + step * per_step, BAR_TOP + BAR_HEIGHT / 2), 2.5, 2.5)

    def _paint_tweaks(self, painter: QPainter, per_step: float) -> None:
        metrics = QFontMetricsF(painter.font())
        for i, (step, name) in enumerate(self._tweaks):
            x = SIDE + step * per_step
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.colors.changed))
            tip, wide = QPointF(x, BAR_TOP - 3), 4.0
            painter.drawPolygon(
                QPolygonF([tip, tip + QPointF(-wide, -7.0), tip + QPointF(wide, -7.0)])
            )
            if i == len(self._tweaks) - 1:
                width = metrics.horizontalAdvance(name)
                left = x + 8 if x + 8 + width < self.width() - SIDE else x - 8 - width
                painter.setPen(QColor(self.colors.changed))
                painter.drawText(QPointF(left, BAR_TOP - 5), name)
