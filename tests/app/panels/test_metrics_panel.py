"""Curves, marks and dots of a run, and how the plots share the room."""

import dataclasses
import time

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRect
from PySide6.QtGui import QColor, QGuiApplication, QPixmap
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.pace import EARLY_SHARE
from app.palette import DARK, LIGHT
from app.panels.metrics_history import MarkKind
from app.panels.metrics_panel import REPAINT_INTERVAL_MS, MetricsPanel
from app.panels.plot_area import PlotArea
from engine.messages import (
    Evaluated,
    OpacitiesReset,
    PhotosGrew,
    Refined,
    SettingApplied,
    ShDegreeRaised,
    State,
)
from tests.app.panels.drawn_metrics import drawn, shown_panel
from tests.app.panels.engine_events import history_read, photo, run_started, scene_opened, stepped
from tests.settling import LIMIT_MS, settle, show, wait_for_layout


@pytest.fixture
def panel(qtbot: QtBot) -> MetricsPanel:
    return shown_panel(qtbot)


def test_curves_are_drawn_from_no_more_points_than_pixels(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 20_001)))
    drawn(panel, qtbot)
    for key in ("total", "l1", "dssim"):
        x, y = panel.loss.data(key)
        assert 50 < len(x) <= panel.loss.columns
        assert np.isfinite(y).all()
    low, high = panel.loss.view_range
    assert low <= 1
    assert 20_000 <= high < 26_000


def test_a_run_that_goes_on_shows_the_steps_done_before(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.resize(1_200, 240)
    panel.handle(run_started(step=100))
    changed = SettingApplied(1, 40, "opacity_lr", 0.05, 0.1)
    panel.handle(history_read(100, changed))
    panel.handle(stepped(range(101, 121)))
    drawn(panel, qtbot)
    for plot, key in ((panel.loss, "total"), (panel.psnr, "train"), (panel.splats, "splats")):
        x, _ = plot.data(key)
        assert (x[0] < 10, x[-1] > 110) == (True, True)
    assert panel.psnr.data("held_out")[0].tolist() == [100]
    assert panel.speed.data("speed")[1][:5].tolist() == pytest.approx([20.0] * 5)
    assert [(mark.step, mark.after) for mark in panel.history.marks] == [(40, "0.1")]
    assert panel.loss.view_range[0] == 0


def test_a_run_without_training_psnr_of_before_draws_what_is_known(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    past = history_read(100)
    panel.handle(dataclasses.replace(past, psnr=np.full(100, np.nan)))
    panel.handle(stepped(range(101, 121)))
    drawn(panel, qtbot)
    x, y = panel.psnr.data("train")
    assert x[0] > 100
    assert np.isfinite(y).all()


def test_nothing_is_drawn_while_hidden_and_all_of_it_when_shown(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.hide()
    panel.handle(stepped(range(1, 101)))
    qtbot.wait(REPAINT_INTERVAL_MS + 100)
    assert len(panel.loss.data("total")[0]) == 0
    show(qtbot, panel)
    drawn(panel, qtbot)
    assert len(panel.loss.data("total")[0]) == 100


def test_plots_are_drawn_at_most_once_a_second(
    panel: MetricsPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(panel, qtbot)
    count = 0
    draw = panel.loss.set_marks

    def counted(marks: object) -> None:
        nonlocal count
        count += 1
        draw(marks)  # type: ignore[arg-type]

    monkeypatch.setattr(panel.loss, "set_marks", counted)
    begin = time.monotonic()
    for step in range(1, 61):
        panel.handle(stepped([step]))
        qtbot.wait(20)
    intervals = (time.monotonic() - begin) * 1000 / REPAINT_INTERVAL_MS
    # the first one comes at once where a busy machine took a second to come this far
    assert 1 <= count <= 1 + intervals / (1 - EARLY_SHARE)


def test_curves_go_with_the_run_that_they_were_of(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped([1, 2, 3]))
    panel.handle(ShDegreeRaised(1, 2, 1))
    drawn(panel, qtbot)
    panel.set_state(State.EMPTY)
    drawn(panel, qtbot)
    assert len(panel.loss.data("total")[0]) == 0
    assert panel.history.marks == []


def test_marks_stand_where_things_happened(panel: MetricsPanel) -> None:
    panel.handle(OpacitiesReset(1, 3_000, 0.01))
    panel.handle(ShDegreeRaised(1, 1_000, 1))
    panel.handle(PhotosGrew(1, "larger", 1_001, 2))
    panel.handle(Refined(1, 600, 1, 1, 1, 1_000))
    panel.handle(SettingApplied(1, 2_300, "position_lr_start", 1.6e-4, 8e-5))
    panel.handle(SettingApplied(1, 2_400, "ssim_weight", 0.2, 0.4))
    panel.handle(SettingApplied(1, 2_500, "preview_share_rest", 0.02, 0.05))
    panel.handle(SettingApplied(1, 2_600, "resolution", 0, 2, held=True))
    marks = [(mark.step, mark.kind) for mark in panel.history.marks]
    assert marks == [
        (3_000, MarkKind.RESET),
        (1_000, MarkKind.DEGREE),
        (1_001, MarkKind.LOSS),
        (2_300, MarkKind.CHANGE),
        (2_400, MarkKind.LOSS),
    ]
    assert panel.history.marks[2].text.startswith("photos at 1/2 size (loss not comparable")
    assert "1.6e-4 → 8.0e-5" in panel.history.marks[3].text
    assert "not comparable" in panel.history.marks[4].text


def test_evaluations_are_dots_and_the_number_of_held_out_photos_stands_beside(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(scene_opened([photo("a", held_out=True), photo("b"), photo("c", held_out=True)]))
    panel.handle(stepped(range(1, 2_001)))
    panel.handle(Evaluated(1, 1_000, 25.0, 0.9, ()))
    panel.handle(Evaluated(1, 2_000, 27.0, 0.9, ()))
    drawn(panel, qtbot)
    x, y = panel.psnr.data("held_out")
    assert (list(x), list(y)) == ([1_000, 2_000], [25.0, 27.0])
    assert panel.psnr.legend_text("held_out") == "● held out (2)"


def test_a_curve_is_a_line_in_its_colour_broken_where_a_value_is_missing(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    plot, color = panel.loss, QColor(DARK.accent)
    panel.handle(stepped(range(1, 101)))
    drawn(panel, qtbot)
    x = np.arange(1.0, 101.0)
    for key in ("total", "dssim"):
        plot.set_curve(key, x, np.full(100, np.nan))
    plot.set_curve("l1", x, np.where((x < 40) | (x > 60), 0.3, np.nan))
    plot.fit(0.0, 100.0)
    picture = plot.grab().toImage()

    def is_drawn(step: float) -> bool:
        place = plot.place_of(step)  # a constant lies in the middle of its range
        column = [picture.pixelColor(round(place.x()), round(place.y()) + dy) for dy in (-1, 0, 1)]
        return any(abs(seen.hue() - color.hue()) < 15 and seen.value() > 90 for seen in column)

    assert is_drawn(20)
    assert is_drawn(80)
    assert not is_drawn(50)


def test_a_scene_without_held_out_photos_says_so(panel: MetricsPanel) -> None:
    panel.handle(scene_opened([photo("a")]))
    assert panel.psnr.legend_text("held_out") == "● none held out"


def test_a_new_run_begins_with_empty_plots(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 101)))
    panel.handle(OpacitiesReset(1, 50, 0.01))
    drawn(panel, qtbot)
    panel.handle(run_started())
    drawn(panel, qtbot)
    assert len(panel.loss.data("total")[0]) == 0
    assert panel.history.marks == []


def test_another_scene_begins_with_empty_plots_before_its_first_step(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 51)))
    panel.handle(OpacitiesReset(1, 20, 0.01, by_hand=True))
    drawn(panel, qtbot)
    panel.handle(scene_opened([photo("a"), photo("b", held_out=True)]))
    drawn(panel, qtbot)
    assert len(panel.loss.data("total")[0]) == 0
    assert panel.history.marks == []


def test_more_steps_repaint_the_curves_and_not_what_stands_behind_them(
    panel: MetricsPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel.handle(stepped(range(1, 1_001)))
    drawn(panel, qtbot)
    settle()
    behind = []
    paint = PlotArea._paint_backdrop

    def noted(area: PlotArea, ratio: float) -> QPixmap:
        behind.append(area)
        return paint(area, ratio)

    monkeypatch.setattr(PlotArea, "_paint_backdrop", noted)
    before = panel.loss.grab().toImage()
    panel.handle(stepped(range(1_001, 1_021)))  # within the round end of the axis
    drawn(panel, qtbot)
    assert panel.loss.grab().toImage() != before
    assert behind == []
    panel.handle(stepped(range(1_021, 1_401)))
    drawn(panel, qtbot)
    panel.loss.grab()
    assert behind != []


def test_a_logarithmic_loss_is_drawn_by_its_logarithm_and_read_as_it_is(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 101), loss=0.1))
    panel.set_logarithmic(True)
    drawn(panel, qtbot)
    assert panel.loss.data("total")[1][0] == pytest.approx(0.1)
    assert panel.loss.height_range[0] < -1 < panel.loss.height_range[1]
    panel.loss.hovered.emit(50.0)
    assert "total 0.1" in panel.loss.reading


@pytest.mark.parametrize(
    ("width", "pages"),
    [
        (1_400, [["Loss", "PSNR", "Splats", "Speed"]]),
        (800, [["Loss", "PSNR", "Splats"], ["Loss", "PSNR", "Speed"]]),
        (400, [["Loss", "PSNR"], ["Splats", "Speed"]]),
        (170, [["Loss"], ["PSNR"], ["Splats"], ["Speed"]]),
    ],
)
def test_plots_share_places_where_there_is_little_room(
    panel: MetricsPanel, qtbot: QtBot, width: int, pages: list[list[str]]
) -> None:
    def shown() -> list[str]:
        return [plot.title for plot in panel.plots if plot.isVisible()]

    panel.resize(width, 240)
    qtbot.waitUntil(lambda: shown() == pages[0], timeout=LIMIT_MS)
    for number, page in enumerate(pages):
        assert shown() == page
        buttons = [button for button in panel.turn_buttons if button.isVisible()]
        assert len(buttons) == (len(pages) > 1)
        following = pages[(number + 1) % len(pages)]
        if buttons:
            new = next(title for title in following if title not in page)
            assert new.lower() in buttons[0].text()
            buttons[0].click()
    assert [plot.title for plot in panel.plots if plot.isVisible()] == pages[0]


@pytest.mark.parametrize("width", [800, 400, 320])
def test_the_button_that_turns_to_other_plots_keeps_its_place(
    panel: MetricsPanel, qtbot: QtBot, width: int
) -> None:
    def place() -> QRect:
        (button,) = [button for button in panel.turn_buttons if button.isVisible()]
        return QRect(button.mapTo(panel, QPoint(0, 0)), button.size())

    panel.resize(width, 240)
    settle()
    first = place()
    for _ in range(4):
        next(button for button in panel.turn_buttons if button.isVisible()).click()
        settle()
        assert place() == first


def test_plots_without_points_have_no_ticks(panel: MetricsPanel, qtbot: QtBot) -> None:
    assert panel.loss.tick_words == ([], [])
    panel.handle(stepped(range(1, 101)))
    drawn(panel, qtbot)
    across, up = panel.loss.tick_words
    assert len(across) > 1
    assert len(up) > 1


def test_an_amount_that_does_not_change_is_drawn_above_zero(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 101), splats=5_900))
    drawn(panel, qtbot)
    low, high = panel.splats.height_range
    assert low == 0
    assert 5_900 < high < 7_000


def test_a_plot_can_be_copied_as_values_and_as_a_picture(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped([1, 2, 3], loss=0.25))
    drawn(panel, qtbot)
    panel.loss.copy_values()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "curve\tstep\tvalue"
    assert "total\t2\t0.25" in lines
    panel.loss.copy_picture()
    assert not QGuiApplication.clipboard().pixmap().isNull()


def test_the_context_menu_offers_what_works(panel: MetricsPanel) -> None:
    words = [action.text() for action in panel.loss.context_menu().actions()]
    assert words == ["Show all steps", "Logarithmic", "", "Copy picture", "Copy values"]
    words = [action.text() for action in panel.psnr.context_menu().actions()]
    assert "Logarithmic" not in words


def test_marks_and_background_follow_the_theme(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 1_001)))
    panel.handle(SettingApplied(1, 500, "ssim_weight", 0.2, 0.4))
    drawn(panel, qtbot)
    panel.set_colors(LIGHT)
    picture = panel.loss.grab().toImage()
    ratio = picture.devicePixelRatio()
    place = panel.loss.place_of(500.0)
    column = [
        picture.pixelColor(round(place.x() * ratio) + shift, y).name()
        for y in range(picture.height() // 4, picture.height() // 2)
        for shift in (-1, 0, 1)
    ]
    assert LIGHT.panel in column
    assert LIGHT.changed in column
    assert isinstance(place, QPointF)


@pytest.mark.parametrize("width", [640, 780, 1_100])
def test_no_word_of_a_legend_is_cut(panel: MetricsPanel, qtbot: QtBot, width: int) -> None:
    panel.handle(scene_opened([photo(str(number), held_out=True) for number in range(120)]))
    panel.resize(width, 240)

    def every_word_is_whole() -> None:
        assert panel.width() == width
        for plot in panel.plots:
            if plot.isVisible():
                for label in plot.findChildren(QLabel):
                    if label.isVisible() and label.text().startswith("●"):
                        assert label.width() >= label.sizeHint().width(), label.text()
                        right = label.mapTo(plot, label.rect().topRight()).x()
                        assert right < plot.width(), label.text()

    wait_for_layout(qtbot, every_word_is_whole)
