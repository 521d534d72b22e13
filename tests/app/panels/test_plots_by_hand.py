"""Plots under the mouse and the keys: values are read, all plots zoom and move together."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.metrics_panel import LOSS_CURVES, MetricsPanel
from app.panels.plot import Plot
from app.panels.plot_area import PlotArea
from engine.messages import (
    Evaluated,
    SettingApplied,
)
from tests.app.panels.drawn_metrics import drawn, shown_panel
from tests.app.panels.engine_events import stepped


@pytest.fixture
def panel(qtbot: QtBot) -> MetricsPanel:
    return shown_panel(qtbot)


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
    assert "21 (step\N{NO-BREAK SPACE}150)" in held_out


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
