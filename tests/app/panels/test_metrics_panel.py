import dataclasses
import time

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QGuiApplication, QMouseEvent, QPixmap, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.pace import EARLY_SHARE
from app.palette import DARK, LIGHT
from app.panels.metrics_history import MarkKind
from app.panels.metrics_panel import LOSS_CURVES, REPAINT_INTERVAL_MS, MetricsPanel
from app.panels.plot import Plot
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
from tests.app.panels.engine_events import history_read, photo, run_started, scene_opened, stepped
from tests.settling import LIMIT_MS, settle, show, wait_for_layout


@pytest.fixture
def panel(qtbot: QtBot) -> MetricsPanel:
    panel = MetricsPanel()
    qtbot.addWidget(panel)
    panel.resize(800, 240)
    show(qtbot, panel)
    panel.handle(run_started())
    return panel


def drawn(panel: MetricsPanel, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not panel.is_stale, timeout=LIMIT_MS)


def point_at(plot: Plot, step: float) -> None:
    """Move the mouse over a step."""
    area = plot.findChild(PlotArea)
    assert area is not None
    move_mouse(area, area.mapFrom(plot, plot.place_of(step)).toPoint())


def move_mouse(
    area: PlotArea, place: QPoint, held: Qt.MouseButton = Qt.MouseButton.NoButton
) -> None:
    """Tell the area of a mouse there; the screen's own pointer, which comes late, stays away."""
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(place),
        QPointF(area.mapToGlobal(place)),
        Qt.MouseButton.NoButton,
        held,
        Qt.KeyboardModifier.NoModifier,
    )
    QGuiApplication.sendEvent(area, event)


def turn_wheel(plot: Plot, step: float, angle: int) -> None:
    """Turn the wheel over a step."""
    area = plot.findChild(PlotArea)
    assert area is not None
    place = QPointF(area.mapFrom(plot, plot.place_of(step)).toPoint())
    event = QWheelEvent(
        place,
        QPointF(area.mapToGlobal(place)),
        QPoint(0, 0),
        QPoint(0, angle),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QGuiApplication.sendEvent(area, event)


def read_step(plot: Plot) -> float:
    """The step whose values are read."""
    line = plot.reading.split("<br>")[0].replace(",", "")
    steps = [float(word) for word in line.split() if word.isdigit()]  # one, or the first and last
    return sum(steps) / len(steps)


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


def test_a_plot_that_was_never_drawn_reads_nothing(qtbot: QtBot) -> None:
    plot = Plot("Loss", LOSS_CURVES)
    qtbot.addWidget(plot)
    plot.show_cursor(1.0)
    assert plot.reading == ""


def test_values_under_the_pointer_are_read_in_every_plot(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 101), splats=171_204, loss=0.25))
    panel.handle(SettingApplied(1, 50, "opacity_lr", 0.025, 0.05))
    drawn(panel, qtbot)
    panel.loss.hovered.emit(50.0)
    assert "step 50" in panel.loss.reading
    assert "total 0.25" in panel.loss.reading
    assert "0.025 → 0.05" in panel.loss.reading
    assert "171,204" in panel.splats.reading
    assert "0.025 → 0.05" not in panel.splats.reading  # once is enough
    panel.splats.hovered.emit(50.0)
    assert "0.025 → 0.05" in panel.splats.reading
    assert "0.025 → 0.05" not in panel.loss.reading
    panel.splats.hovered.emit(None)
    assert panel.loss.reading == ""


def test_a_held_out_value_of_another_step_is_named_with_that(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 301)))
    panel.handle(Evaluated(1, 150, 21.0, 0.8, ()))
    drawn(panel, qtbot)
    panel.psnr.hovered.emit(180.0)
    first, held_out = panel.psnr.reading.split("<br>")[:2]
    assert first.startswith("mean of steps 17")  # those that share a pixel, round 180
    assert "21 (step 150)" in held_out


def test_what_is_read_follows_the_pointer_when_the_plot_moves_on(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 101)))
    drawn(panel, qtbot)
    point_at(panel.loss, 60.0)
    assert read_step(panel.loss) == pytest.approx(60, abs=1)
    panel.handle(stepped(range(101, 1_001)))
    drawn(panel, qtbot)
    pointed = panel.loss.pointed_step
    assert pointed is not None
    assert pointed > 400
    # what is drawn is a mean of so many steps as share a pixel
    assert read_step(panel.loss) == pytest.approx(pointed, abs=1_000 / panel.loss.columns + 1)
    assert panel.splats.cursor_step == pytest.approx(pointed)


def test_the_wheel_zooms_about_the_pointer_in_all_plots(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 1_001)))
    drawn(panel, qtbot)
    low, high = panel.loss.view_range
    turn_wheel(panel.loss, 250.0, 120)
    nearer = panel.psnr.view_range
    assert (250 - nearer[0]) / (250 - low) == pytest.approx(0.75, abs=0.02)  # a pixel is 5 steps
    assert (nearer[1] - 250) / (high - 250) == pytest.approx(0.75, abs=0.02)
    turn_wheel(panel.loss, 250.0, -120)
    assert panel.loss.view_range == pytest.approx((low, high), abs=1)


def test_a_drag_moves_all_plots_and_a_click_none(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 1_001)))
    drawn(panel, qtbot)
    everything = panel.loss.view_range
    panel.loss.zoomed.emit(400.0, 600.0)
    low, high = panel.loss.view_range
    area = panel.loss.findChild(PlotArea)
    assert area is not None
    begin = QPoint(area.width() // 2, area.height() // 2)
    QTest.mousePress(area, Qt.MouseButton.LeftButton, pos=begin)
    move_mouse(area, begin + QPoint(1, 0), Qt.MouseButton.LeftButton)  # a hand is never quite still
    assert panel.loss.view_range == (low, high)
    move_mouse(area, begin + QPoint(50, 0), Qt.MouseButton.LeftButton)
    QTest.mouseRelease(area, Qt.MouseButton.LeftButton, pos=begin + QPoint(50, 0))
    moved = 50 * (high - low) / area.scale.width
    assert panel.splats.view_range == pytest.approx((low - moved, high - moved), abs=1)
    move_mouse(area, begin)
    assert panel.splats.view_range == pytest.approx((low - moved, high - moved), abs=1)
    QTest.mouseDClick(area, Qt.MouseButton.LeftButton, pos=begin)
    assert panel.splats.view_range == everything


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


def test_a_zoom_stays_among_the_steps_that_there_are(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 1_001)))
    drawn(panel, qtbot)
    everything = panel.loss.view_range
    panel.loss.zoomed.emit(-300_000.0, 300_000.0)
    assert panel.loss.view_range == everything
    panel.loss.zoomed.emit(-150.0, 50.0)
    assert panel.loss.view_range == (0.0, 200.0)
    panel.loss.zoomed.emit(1_900.0, 2_100.0)
    assert panel.loss.view_range == (everything[1] - 200.0, everything[1])
    panel.loss.zoomed.emit(500.0, 500.01)
    low, high = panel.loss.view_range
    assert (low + high) / 2 == pytest.approx(500.0, abs=0.01)
    assert high - low == pytest.approx(5.0)


def test_a_zoom_holds_for_all_plots_until_everything_is_asked_for(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.handle(stepped(range(1, 5_001)))
    drawn(panel, qtbot)
    panel.loss.zoomed.emit(1_000.0, 2_000.0)
    panel.handle(stepped(range(5_001, 5_101)))
    drawn(panel, qtbot)
    assert panel.psnr.view_range == (1_000, 2_000)
    panel.psnr.all_asked.emit()
    assert panel.loss.view_range[1] >= 5_100


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


def test_a_plot_is_read_and_zoomed_with_keys(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.handle(stepped(range(1, 1_001)))
    drawn(panel, qtbot)
    QTest.keyClick(panel.loss, Qt.Key.Key_Right)
    assert "step" in panel.loss.reading
    QTest.keyClick(panel.loss, Qt.Key.Key_Plus)
    low, high = panel.psnr.view_range
    assert high - low < 700
    QTest.keyClick(panel.loss, Qt.Key.Key_0)
    assert panel.psnr.view_range[1] >= 1_000
    QTest.keyClick(panel.loss, Qt.Key.Key_Escape)
    assert panel.loss.reading == ""


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
