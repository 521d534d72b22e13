"""How far the run is: a bar over the iterations with marks of what happens and happened when."""

import dataclasses
import itertools
import operator
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.palette import DARK, Palette
from app.theme import set_role
from engine.messages import (
    Event,
    HistoryRead,
    OpacitiesReset,
    RunStarted,
    Saved,
    SceneOpened,
    SettingApplied,
    ShDegreeRaised,
    State,
    StateChanged,
    Stepped,
)
from engine.settings import Settings, setting_info

SIDE = 14.0
NAME_GAP = 10.0  # between the names of two marks
TWEAK_GAP = 8.0  # between a name and the middle of a triangle
MARK_REACH = 6.0  # how near the pointer must be to ask for a mark
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


def name_places(
    marks: list[tuple[float, str]], width: Callable[[str], float], first: float, last: float
) -> list[tuple[float, str]]:
    """Where the names of `marks` (place, name) are written: left edges, with the names, in px.

    A name stands under its mark, in the middle where there is room, else a little to the side. A
    name is written once; one without any room between `first` and `last` is left out.
    """
    places: list[tuple[float, str]] = []
    told: set[str] = set()
    free = first
    for x, name in marks:
        span = width(name)
        left = min(max(x - span / 2, free), last - span)
        if name in told or left < free or not left <= x <= left + span:
            continue
        places.append((left, name))
        told.add(name)
        free = left + span + NAME_GAP
    return places


def tweak_name_place(tips: list[float], width: float, first: float, last: float) -> float | None:
    """The left edge in px of a name of the last of the triangles at `tips`, which rise.

    It stands at the triangle's right, or else at the left of all it would cover; None without room.
    """
    left = tips[-1] + TWEAK_GAP
    if left + width < last:
        return left
    left = tips[-1] - TWEAK_GAP - width
    for tip in reversed(tips[:-1]):
        if tip > left - TWEAK_GAP:
            left = min(left, tip - TWEAK_GAP - width)
    return left if left >= first else None


@dataclasses.dataclass(frozen=True)
class Tweak:
    """What the user changed, in a word, and how."""

    step: int
    name: str
    deed: str


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
        self._tweaks: list[Tweak] = []
        self._preset, self._of_preset = "", set[str]()  # a loaded one, and what is yet to come
        self._saves: list[int] = []

    def sizeHint(self) -> QSize:
        """Wide, and as high as the bar with its words."""
        return QSize(400, 50)

    def handle(self, event: Event) -> None:
        """Follow the run."""
        if isinstance(event, Stepped) and len(event.steps):
            before = round(self._done)
            self._set_step(int(event.steps[-1]))
            if round(self._done) == before:
                return  # the bar is as long as it was
        elif isinstance(event, StateChanged) and event.new is not State.LOADING:
            self._set_step(event.step)
        elif isinstance(event, SceneOpened | StateChanged):  # another run is to come
            self.settings = None
            self._clear()
        elif isinstance(event, RunStarted):
            self._clear()
            self._set_settings(event.settings)
            self._set_step(event.step)
        elif isinstance(event, SettingApplied) and self.settings is not None:
            if not event.held:
                self._set_settings(self.settings.changed(event.name, event.new))
            self._mark(event)
        elif isinstance(event, HistoryRead):
            self._take_history(event)
        elif isinstance(event, Saved):
            self._saves.append(event.step)
        elif not isinstance(event, OpacitiesReset | ShDegreeRaised):
            return
        self.update()

    def _mark(self, event: SettingApplied) -> None:
        tweak = Tweak(event.step, setting_info(event.name).label, "changed")
        if event.name in self._of_preset:
            self._of_preset.remove(event.name)
            tweak = Tweak(event.step, f"preset {self._preset}", "loaded")
        else:
            self._of_preset.clear()  # the engine answers to a whole preset at once
        if event.step > 0 and not event.held and self._tweaks[-1:] != [tweak]:
            self._tweaks.append(tweak)

    def expect_preset(self, name: str, settings: frozenset[str]) -> None:
        """The changes of these settings that come next are one: a preset was loaded."""
        self._preset, self._of_preset = name, set(settings)

    def _take_history(self, event: HistoryRead) -> None:
        self._saves = list(event.saved_steps)
        applied = [past for past in event.happenings if isinstance(past, SettingApplied)]
        changes = [past for past in applied if not past.held and past.step > 0]
        for step, group in itertools.groupby(changes, operator.attrgetter("step")):
            names = {past.name for past in group}
            label = setting_info(names.pop()).label if len(names) == 1 else f"{len(names)} settings"
            self._tweaks.append(Tweak(step, label, "changed"))

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
        self.setAccessibleDescription(self._progress())

    @property
    def _done(self) -> float:
        """How long the filled part of the bar is, in px."""
        last = int(self.settings["iterations"]) if self.settings is not None else 1
        return (self.width() - 2 * SIDE) * min(1.0, self.step / last)

    def _progress(self) -> str:
        last = 0 if self.settings is None else int(self.settings["iterations"])
        return f"Step {self.step:,}" + (f" of {last:,}" if last else "")

    def words_at(self, x: float) -> str:
        """What lies at `x` px, a line each; how far the run is where nothing does."""
        changes = [(tweak.step, f"{tweak.name} {tweak.deed}") for tweak in self._tweaks]
        saves = [(step, "checkpoint") for step in self._saves]
        if self.settings is not None:
            per_step = (self.width() - 2 * SIDE) / int(self.settings["iterations"])
            near = [
                f"{name} at step {step:,}"
                for step, name in self._marks + changes + saves
                if abs(SIDE + step * per_step - x) <= MARK_REACH
            ]
            if near:
                return "\n".join(near)
        return "\n".join([self._progress(), *(f"{name} at step {n:,}" for n, name in changes[-5:])])

    def event(self, event: QEvent) -> bool:
        """Tell under the pointer what a mark stands for."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(event.pos().x()), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint bar, marks and words."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        small = QFont(self.font())
        small.setPointSizeF(small.pointSizeF() * 0.85)
        painter.setFont(small)
        last = int(self.settings["iterations"]) if self.settings is not None else 1
        span = self.width() - 2 * SIDE
        painter.setPen(Qt.PenStyle.NoPen)
        for length, color in ((span, self.colors.grid), (self._done, self.colors.accent)):
            painter.setBrush(QColor(color))
            if length > 0:
                painter.drawRoundedRect(QRectF(SIDE, BAR_TOP, length, BAR_HEIGHT), 3, 3)
        if self.settings is not None:
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
        marks = [(SIDE + step * per_step, name) for step, name in self._marks]
        for x, name in marks:
            line = QColor(self.colors.violet if name.startswith("SH") else self.colors.muted)
            painter.setPen(QPen(line, 1.6))
            painter.drawLine(QPointF(x, BAR_TOP - 4), QPointF(x, BAR_TOP + BAR_HEIGHT + 4))
        painter.setPen(QColor(self.colors.muted))
        limit = right - end_width - NAME_GAP
        for left, name in name_places(marks, metrics.horizontalAdvance, SIDE, limit):
            painter.drawText(QPointF(left, baseline), name)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.colors.handle))
        for step in self._saves:
            painter.drawEllipse(QPointF(SIDE + step * per_step, BAR_TOP + BAR_HEIGHT / 2), 2.5, 2.5)

    def _paint_tweaks(self, painter: QPainter, per_step: float) -> None:
        tips = [SIDE + tweak.step * per_step for tweak in self._tweaks]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.colors.changed))
        for x in tips:
            tip, wide = QPointF(x, BAR_TOP - 3), 4.0
            painter.drawPolygon(
                QPolygonF([tip, tip + QPointF(-wide, -7.0), tip + QPointF(wide, -7.0)])
            )
        if not tips:
            return
        name = self._tweaks[-1].name
        width = QFontMetricsF(painter.font()).horizontalAdvance(name)
        left = tweak_name_place(tips, width, SIDE, self.width() - SIDE)
        if left is not None:
            painter.setPen(QColor(self.colors.changed))
            painter.drawText(QPointF(left, BAR_TOP - 5), name)
