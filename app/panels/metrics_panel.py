"""The plots: loss by term, PSNR, splats and speed, with marks where things happened.

As many stand side by side as there is room for; a button in the last one turns to the others.

Numbers are taken in as they come; the plots are drawn anew at most once a second, from as many
points as they have pixels, and only while they can be seen.
"""

from functools import partial

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.pace import Pace
from app.palette import Palette
from app.panels.axis_ticks import grown_end
from app.panels.metrics_history import Mark, MarkKind, MetricsHistory, reduced
from app.panels.panel import Panel
from app.panels.plot import Plot
from app.panels.plot_header import Curve
from app.panels.setting_values import format_value
from app.theme import set_role
from engine.messages import (
    Evaluated,
    Event,
    HistoryRead,
    OpacitiesReset,
    PhotosGrew,
    RunStarted,
    SceneOpened,
    SettingApplied,
    ShDegreeRaised,
    State,
    Stepped,
)
from engine.settings import setting_info

REPAINT_INTERVAL_MS = 1000  # training pays for every drawing: 2 % of its speed at 500
CLOSEST_STEPS = 5  # fewer are not shown, however far one zooms in
CALM_POINTS = 8  # a training photo's PSNR is drawn as means of at least so many steps
# from so many px on, which plots are shown together; the last of each page turns to the next
PAGES = (
    (1150, ((0, 1, 2, 3),)),
    (520, ((0, 1, 2), (0, 1, 3))),
    (350, ((0, 1), (2, 3))),
    (0, ((0,), (1,), (2,), (3,))),
)
UNMARKED_GROUPS = ("preview", "device")  # changes that do not touch what is learnt

LOSS_CURVES = (
    Curve("total", "total", "text"),
    Curve("l1", "L1", "accent"),
    Curve("dssim", "1 - SSIM", "violet"),
)
PSNR_CURVES = (Curve("held_out", "held out", "good", dots=True), Curve("train", "train", "accent"))
SPLAT_CURVES = (Curve("splats", "splats", "text", digits=0),)
SPEED_CURVES = (Curve("speed", "steps/s", "accent", digits=3),)


class MetricsPanel(Panel):
    """Four plots in a row; in a narrow window they share places."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Metrics", parent)
        set_role(self, "")
        self.title_label.hide()
        self.layout().setContentsMargins(0, 0, 0, 0)  # type: ignore[union-attr]
        self.history = MetricsHistory()
        self._first_step = 0
        self._zoom: tuple[float, float] | None = None
        self._page = 0
        self._cursor: float | None = None  # the step at which values are read
        self._repaint_pace = Pace(REPAINT_INTERVAL_MS, self)
        self._repaint_pace.due.connect(self._repaint)
        self.is_stale = False  # numbers have come that are not drawn yet
        self.loss = Plot("Loss", LOSS_CURVES, can_log=True, parent=self)
        self.psnr = Plot("PSNR", PSNR_CURVES, parent=self)
        self.splats = Plot("Splats", SPLAT_CURVES, from_zero=True, parent=self)
        self.speed = Plot("Speed", SPEED_CURVES, from_zero=True, parent=self)
        self.plots = (self.loss, self.psnr, self.splats, self.speed)
        self._pointed = self.loss  # the plot that values were asked of last
        self._build()

    @property
    def logarithmic(self) -> bool:
        """Whether the loss is drawn by its logarithm."""
        return self.loss.logarithmic

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Draw the loss by its logarithm, or as it is."""
        self._log.setChecked(logarithmic)
        self.loss.set_logarithmic(logarithmic)

    def show_all(self) -> None:
        """Follow the whole run again after a zoom."""
        self._zoom = None
        self._repaint()

    # --- events ---------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Take in numbers and marks."""
        match event:
            case Stepped():
                self.history.add_steps(
                    event.steps,
                    event.loss,
                    event.l1,
                    event.ssim,
                    event.psnr,
                    event.splats,
                    event.steps_per_second,
                )
            case Evaluated():
                self.history.add_evaluation(event.step, event.psnr)
            case OpacitiesReset():
                subject = f"opacities reset to {event.value:g}"
                self.history.add_mark(Mark(event.step, MarkKind.RESET, subject))
            case ShDegreeRaised():
                subject = f"SH degree {event.degree}"
                self.history.add_mark(Mark(event.step, MarkKind.DEGREE, subject))
            case PhotosGrew():
                size = f"at 1/{event.divisor} size" if event.divisor > 1 else "at full size"
                self.history.add_mark(Mark(event.step, MarkKind.LOSS, f"photos {size}"))
            case SettingApplied():
                self._mark_change(event)
            case RunStarted():
                self._begin(event.step)
            case HistoryRead():
                self._take_history(event)
            case SceneOpened():
                self._begin(0)
                self._count_held_out(event)
            case _:
                return
        self._repaint_soon()

    def set_state(self, state: State) -> None:
        """Forget the curves where no run is open."""
        super().set_state(state)
        if state is State.EMPTY:
            self._begin(0)
            self._repaint_soon()

    def _begin(self, step: int) -> None:
        self.history.clear()
        self._first_step = step
        self._zoom = None

    def _take_history(self, event: HistoryRead) -> None:
        """Draw the steps done before the run was opened here, in front of those to come."""
        if not len(event.steps):
            return
        self._begin(int(event.steps[0]) - 1)
        self.history.add_past(event)
        for happening in event.happenings:
            self.handle(happening)

    def set_colors(self, colors: Palette) -> None:
        """Repaint in the colours of a theme."""
        super().set_colors(colors)
        for plot in self.plots:
            plot.set_colors(colors)

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with what happened while the panel was hidden."""
        super().showEvent(event)
        if self.is_stale:
            self._repaint_pace.hurry()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the speed its own place where there is room."""
        super().resizeEvent(event)
        self._arrange()
        self._repaint_soon()

    def _mark_change(self, event: SettingApplied) -> None:
        info = setting_info(event.name)
        if event.held or event.old == event.new or info.group in UNMARKED_GROUPS:
            return
        kind = MarkKind.LOSS if info.changes_loss else MarkKind.CHANGE
        subject = f"{info.group_label}, {info.label}"
        before, after = format_value(info, event.old), format_value(info, event.new)
        self.history.add_mark(Mark(event.step, kind, subject, before, after))

    def _count_held_out(self, event: SceneOpened) -> None:
        count = sum(photo.held_out for photo in event.photos)
        plural = "" if count == 1 else "s"
        self.psnr.set_word(
            "held_out",
            f"held out ({count})" if count else "none held out",
            f"Mean over {count} held-out photo{plural}. The fewer there are, the more it jumps "
            "from run to run."
            if count
            else "No photo is held out, so there is no PSNR that training has not seen.",
        )

    # --- drawing --------------------------------------------------------------------------------

    def _repaint_soon(self) -> None:
        self.is_stale = True
        if self.isVisible():
            self._repaint_pace.ask()

    def _repaint(self) -> None:
        if not self.isVisible() or self.window().isMinimized():
            return
        self.is_stale = False
        for plot in self.plots:
            if plot.isVisible():
                self._draw(plot)
        self._read_anew()

    def _read_anew(self) -> None:
        """The curves have moved under the pointer, or the values have changed."""
        pointed = [plot.pointed_step for plot in self.plots if plot.isVisible()]
        under = [step for step in pointed if step is not None]
        if self._cursor is not None:
            self._share_cursor(under[0] if under else self._cursor)

    def _draw(self, plot: Plot) -> None:
        low, high = self._zoom or (-1.0, float(self.history.last_step + 1))
        columns = plot.columns
        steps = self.history.steps
        x = steps.column("step")
        if plot is self.loss:
            for key in ("total", "l1", "dssim"):
                plot.set_curve(key, *reduced(x, steps.column(key), low, high, columns))
        elif plot is self.psnr:
            psnr = steps.column("psnr")
            known = np.isfinite(psnr)  # folders of older versions do not have it
            train = reduced(x[known], psnr[known], low, high, columns, CALM_POINTS)
            plot.set_curve("train", *train)
            measured = self.history.evaluations
            held_out = reduced(measured.column("step"), measured.column("psnr"), low, high, columns)
            plot.set_curve("held_out", *held_out)
        elif plot is self.splats:
            plot.set_curve("splats", *reduced(x, steps.column("splats"), low, high, columns))
        else:
            speed = self.history.speed
            curve = reduced(speed.column("step"), speed.column("speed"), low, high, columns)
            plot.set_curve("speed", *curve)
        plot.set_marks(self.history.marks)
        if self._zoom is None:
            plot.fit_all(self._first_step, max(self.history.last_step, self._first_step + 1))
        else:
            plot.fit(*self._zoom)

    def _take_zoom(self, low: float, high: float) -> None:
        """Show these steps as far as there are any; all again when none would be left out."""
        first = self._first_step
        end = first + grown_end(max(self.history.last_step - first, 1))
        steps = max(high - low, CLOSEST_STEPS)
        if steps >= end - first:
            self.show_all()
            return
        low = min(max((low + high - steps) / 2, first), end - steps)
        self._zoom = (low, low + steps)
        self._repaint()

    def _follow_cursor(self, plot: Plot, step: float | None) -> None:
        self._pointed = plot
        self._share_cursor(step)

    def _share_cursor(self, step: float | None) -> None:
        """Read values in every plot; what happened there stands in the one that is pointed at."""
        self._cursor = step
        for plot in self.plots:
            if plot.isVisible():
                plot.show_cursor(step, with_marks=plot is self._pointed)

    # --- arranging ------------------------------------------------------------------------------

    def _build(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        for plot in self.plots:
            row.addWidget(plot, 1)
            plot.hovered.connect(partial(self._follow_cursor, plot))
            plot.zoomed.connect(self._take_zoom)
            plot.all_asked.connect(self.show_all)
        self.body.addLayout(row, 1)
        self._log = self._header_button(self.loss, "log", "Draw the loss by its logarithm")
        self.loss.header.add_control(self._log)
        self._log.setCheckable(True)
        self._log.toggled.connect(self.set_logarithmic)
        self.loss.log_toggled.connect(self.set_logarithmic)
        self.turn_buttons = [self._header_button(plot, "▸", "") for plot in self.plots]
        for plot, button in zip(self.plots, self.turn_buttons, strict=True):
            plot.header.add_corner(button)
            button.clicked.connect(self._turn_page)
        self._arrange()

    def _header_button(self, plot: Plot, text: str, meaning: str) -> QToolButton:
        button = QToolButton(plot)
        button.setText(text)
        button.setToolTip(meaning)
        button.setAccessibleName(meaning)
        set_role(button, "quiet-small")
        return button

    @property
    def _pages(self) -> tuple[tuple[int, ...], ...]:
        return next(pages for width, pages in PAGES if self.width() >= width)

    def _turn_page(self) -> None:
        self._page = (self._page + 1) % len(self._pages)
        self._arrange()
        self._repaint()
        self.turn_buttons[self._pages[self._page][-1]].setFocus()

    def _arrange(self) -> None:
        pages = self._pages
        self._page %= len(pages)
        shown, following = pages[self._page], pages[(self._page + 1) % len(pages)]
        for place, (plot, button) in enumerate(zip(self.plots, self.turn_buttons, strict=True)):
            plot.setVisible(place in shown)
            button.setVisible(place == shown[-1] and len(pages) > 1)
            other = next((i for i in following if i not in shown), following[0])
            name = self.plots[other].title
            back = self._page == len(pages) - 1
            button.setText(_turn_word(name, back))
            self._keep_width(button)
            meaning = f"Show {name} instead"
            button.setToolTip(meaning)
            button.setAccessibleName(meaning)

    def _keep_width(self, button: QToolButton) -> None:
        """As wide for every word, so that a click in place turns once more."""
        button.ensurePolished()  # the style's padding counts

        def length(word: str) -> int:
            return button.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, word).width()

        padding = button.sizeHint().width() - length(button.text())
        words = [_turn_word(plot.title, back) for plot in self.plots for back in (False, True)]
        button.setFixedWidth(max(map(length, words)) + padding)


def _turn_word(name: str, back: bool) -> str:
    return f"◂ {name.lower()}" if back else f"{name.lower()} ▸"
