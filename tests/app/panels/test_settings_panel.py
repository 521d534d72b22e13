import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeySequence, QShortcut, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QSlider, QWidget
from pytestqt.qtbot import QtBot

from engine.messages import (
    CommandRefused,
    OpacitiesReset,
    PruneNow,
    Refined,
    SetSetting,
    SettingApplied,
    State,
    StateChanged,
)
from engine.settings import Settings, all_settings
from tests.app.panels.desk import Desk
from tests.app.panels.engine_events import run_started, stepped
from tests.settling import LIMIT_MS, wait_for_layout


def test_every_declared_setting_has_a_row_with_name_and_meaning(desk: Desk) -> None:
    for info in all_settings():
        row = desk.row(info.name)
        control = row.field or row.choice or row.switch
        assert control is not None
        assert info.label in control.accessibleName()
        assert info.meaning in control.toolTip()
        assert info.meaning in row.label.toolTip()


def test_before_a_run_values_are_held_here_and_nothing_is_posted(desk: Desk) -> None:
    desk.type("opacity_lr", "1e-4")
    desk.type("seed", "7")
    assert desk.posted == []
    assert desk.panel.settings()["opacity_lr"] == 1e-4
    assert desk.panel.settings()["seed"] == 7
    assert desk.start_values[-1] == desk.panel.settings()
    assert desk.panel.summary == "classic + 2 changes"


def test_in_a_run_a_typed_value_is_posted_pending_and_then_applied(desk: Desk) -> None:
    desk.begin_run()
    desk.type("opacity_lr", "1e-4")
    command = desk.posted[-1]
    assert isinstance(command, SetSetting)
    assert (command.name, command.value) == ("opacity_lr", 1e-4)
    assert command.gesture > 0
    assert desk.row("opacity_lr").badge_text == "pending…"
    desk.apply(2_300)
    assert desk.row("opacity_lr").badge_text == "applied at step 2,300"
    assert desk.start_values == []


def test_a_wrong_value_is_told_beside_the_field_and_not_posted(desk: Desk) -> None:
    desk.begin_run()
    desk.type("opacity_lr", "fast")
    row = desk.row("opacity_lr")
    assert desk.posted == []
    assert row.note_text == "“fast” cannot be used: expected 0 to 1."
    assert desk.text("opacity_lr") == "fast"
    assert desk.panel.settings()["opacity_lr"] == 0.025
    desk.type("opacity_lr", "0.05")
    assert row.note_text == ""
    assert len(desk.posted) == 1


def test_a_refused_value_gives_way_to_the_one_in_force_when_the_field_is_left(
    desk: Desk, qtbot: QtBot
) -> None:
    desk.begin_run()
    row = desk.row("opacity_lr")
    field, other = row.field, desk.row("scale_lr").field
    assert field is not None
    assert other is not None
    desk.panel.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus, timeout=LIMIT_MS)
    desk.type("opacity_lr", "7")
    assert field.text() == "7"
    other.setFocus()
    assert field.text() == "0.025"
    assert field.property("role") == ""
    assert "“7” cannot be used" in row.note_text  # for a while, so that it can be read
    row._error_timer.timeout.emit()
    assert row.note_text == ""
    assert desk.posted == []


def test_a_refused_value_gives_way_to_one_that_comes_from_elsewhere(desk: Desk) -> None:
    desk.begin_run()
    desk.type("opacity_lr", "7")
    desk.panel.load_preset("mine", Settings().changed("opacity_lr", 0.1))
    assert desk.text("opacity_lr") == "0.1"
    assert desk.row("opacity_lr").note_text == ""


def test_escape_takes_back_what_was_typed(desk: Desk) -> None:
    field = desk.row("opacity_lr").field
    assert field is not None
    field.selectAll()
    QTest.keyClicks(field, "7")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "0.025"


def test_an_applied_value_does_not_disturb_one_that_is_being_typed(desk: Desk) -> None:
    desk.begin_run()
    field = desk.row("opacity_lr").field
    assert field is not None
    field.selectAll()
    QTest.keyClicks(field, "0.07")
    desk.panel.handle(SettingApplied(1, 10, "opacity_lr", 0.025, 0.03))
    assert field.text() == "0.07"


def test_a_drag_posts_at_most_ten_times_a_second_and_always_its_end(
    desk: Desk, qtbot: QtBot
) -> None:
    desk.begin_run()
    slider = desk.row("opacity_lr").slider
    assert slider is not None
    slider.setSliderDown(True)
    for position in range(300, 420):
        slider.setSliderPosition(position)
    assert len(desk.posted) == 1  # the first at once, the rest wait for their time
    qtbot.waitUntil(lambda: len(desk.posted) == 2, timeout=LIMIT_MS)
    slider.setSliderPosition(500)
    slider.setSliderDown(False)
    commands = [command for command in desk.posted if isinstance(command, SetSetting)]
    assert commands[-1].value == desk.panel.settings()["opacity_lr"]
    assert len({command.gesture for command in commands}) == 1
    assert commands[0].gesture > 0


def test_two_drags_are_two_gestures(desk: Desk) -> None:
    desk.begin_run()
    slider = desk.row("opacity_lr").slider
    assert slider is not None
    for position in (300, 700):
        slider.setSliderDown(True)
        slider.setSliderPosition(position)
        slider.setSliderDown(False)
    gestures = [command.gesture for command in desk.posted if isinstance(command, SetSetting)]
    assert len(set(gestures)) == 2


def test_one_undo_takes_back_a_whole_drag_as_a_new_change(desk: Desk) -> None:
    desk.begin_run()
    slider = desk.row("opacity_lr").slider
    assert slider is not None
    slider.setSliderDown(True)
    for position in (300, 400, 500):
        slider.setSliderPosition(position)
    slider.setSliderDown(False)
    desk.apply(10)
    desk.panel.undo()
    command = desk.posted[-1]
    assert isinstance(command, SetSetting)
    assert command.value == 0.025
    desk.apply(11)
    desk.panel.redo()
    command = desk.posted[-1]
    assert isinstance(command, SetSetting)
    assert command.value == desk.panel.settings()["opacity_lr"] != 0.025


def test_a_key_on_the_slider_is_posted(desk: Desk) -> None:
    desk.begin_run()
    slider = desk.row("scale_lr").slider
    assert slider is not None
    QTest.keyClick(slider, Qt.Key.Key_PageUp)
    command = desk.posted[-1]
    assert isinstance(command, SetSetting)
    assert float(command.value) > 0.005


def test_the_wheel_over_an_unfocused_control_scrolls_the_list_instead(desk: Desk) -> None:
    desk.begin_run()
    for name in ("scale_lr", "background"):
        row = desk.row(name)
        control: QSlider | QComboBox | None = row.slider or row.choice
        assert control is not None
        control.clearFocus()
        turn = QWheelEvent(
            QPointF(5, 5),
            QPointF(control.mapToGlobal(QPoint(5, 5))),
            QPoint(0, 0),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(control, turn)
    assert desk.posted == []


def test_a_changed_row_is_marked_and_reset_by_button_and_by_double_click(desk: Desk) -> None:
    desk.begin_run()
    row = desk.row("opacity_lr")
    assert not row.reset_button.isVisible()
    desk.type("opacity_lr", "0.05")
    assert row.reset_button.isVisible()
    assert row.label.property("role") == "changed"
    row.reset_button.click()
    assert desk.panel.settings()["opacity_lr"] == 0.025
    desk.type("opacity_lr", "0.05")
    QTest.mouseDClick(row.label, Qt.MouseButton.LeftButton)
    assert desk.panel.settings()["opacity_lr"] == 0.025
    assert not row.reset_button.isVisible()
    assert row.label.property("role") == ""


def test_a_restart_setting_is_editable_and_held(desk: Desk) -> None:
    desk.begin_run()
    desk.type("resolution", "400")
    desk.panel.handle(SettingApplied(1, 50, "resolution", 0, 400, held=True))
    assert desk.text("resolution") == "400"
    assert desk.row("resolution").badge_text == "restart"
    desk.panel.handle(run_started(desk.panel.settings()))
    assert desk.text("resolution") == "400"


def test_a_refused_change_goes_back_and_says_why(desk: Desk) -> None:
    desk.begin_run()
    desk.type("iterations", "10")
    command = desk.posted[-1]
    desk.panel.handle(CommandRefused(1, command, "Step 10 is already behind us."))
    row = desk.row("iterations")
    assert desk.panel.settings()["iterations"] == 30_000
    assert row.note_text == "Step 10 is already behind us."
    assert row.badge_text == ""
    desk.type("gradient_threshold", "3e-4")
    refused = CommandRefused(1, desk.posted[-1], "gradient_threshold is 3.0; expected less.")
    desk.panel.handle(refused)
    assert desk.row("gradient_threshold").note_text == "gradient threshold is 3.0; expected less."


def test_a_change_made_elsewhere_is_shown(desk: Desk) -> None:
    desk.begin_run()
    desk.panel.handle(SettingApplied(1, 30_000, "iterations", 30_000, 31_000))
    assert desk.text("iterations") == "31,000 steps"


def test_an_older_acknowledgement_does_not_end_the_wait_for_a_newer_value(desk: Desk) -> None:
    desk.begin_run()
    desk.type("opacity_lr", "0.05")
    desk.type("opacity_lr", "0.06")
    desk.panel.handle(SettingApplied(1, 9, "opacity_lr", 0.025, 0.05))
    assert desk.row("opacity_lr").badge_text == "pending…"
    assert desk.text("opacity_lr") == "0.06"
    desk.panel.handle(SettingApplied(1, 10, "opacity_lr", 0.05, 0.06))
    assert desk.row("opacity_lr").badge_text == "applied at step 10"


def test_changes_made_while_a_scene_loads_are_posted_when_its_run_begins(desk: Desk) -> None:
    opened_with = desk.panel.settings()
    desk.panel.handle(StateChanged(0, State.EMPTY, State.LOADING, 0))
    desk.panel.set_state(State.LOADING)
    desk.type("opacity_lr", "0.05")
    assert desk.posted == []
    desk.panel.handle(run_started(opened_with))
    assert [c.value for c in desk.posted if isinstance(c, SetSetting)] == [0.05]
    assert desk.panel.settings()["opacity_lr"] == 0.05


def test_the_cap_below_the_count_offers_a_prune(desk: Desk, qtbot: QtBot) -> None:
    desk.begin_run()
    desk.panel.handle(stepped([1, 2, 3], splats=171_204))
    desk.type("max_splats", "150,000")
    row = desk.row("max_splats")
    assert "171,204" in row.note_text
    assert row.note is not None
    assert row.note.button.isVisible()
    row.note.button.click()
    assert isinstance(desk.posted[-1], PruneNow)
    desk.panel.handle(Refined(1, 4, 0, 0, 50_000, 121_204, by_hand=True))
    qtbot.waitUntil(lambda: row.note_text == "", timeout=LIMIT_MS)


def test_the_position_row_shows_the_rate_in_force(desk: Desk, qtbot: QtBot) -> None:
    desk.begin_run()
    desk.panel.handle(stepped([1, 2], position_lr=4 * 1.5e-4))
    row = desk.row("position_lr_start")
    qtbot.waitUntil(lambda: row.note_text == "in force now: 1.5e-4", timeout=LIMIT_MS)


def test_a_refine_setting_tells_when_it_took_hold(desk: Desk, qtbot: QtBot) -> None:
    desk.begin_run()
    desk.panel.handle(stepped([4_210]))
    desk.type("gradient_threshold", "3e-4")
    desk.apply(4_210)
    row = desk.row("gradient_threshold")
    assert row.badge_text == "next refine · step 4,300"
    desk.panel.handle(Refined(1, 4_300, 1, 1, 1, 1_000))
    qtbot.waitUntil(lambda: row.badge_text == "applied at step 4,300", timeout=LIMIT_MS)


def test_undo_keys_pass_an_untouched_field_and_serve_a_half_typed_one(
    desk: Desk, qtbot: QtBot
) -> None:
    undone: list[int] = []
    shortcut = QShortcut(QKeySequence("Ctrl+Z"), desk.panel)
    shortcut.activated.connect(lambda: undone.append(1))
    desk.panel.activateWindow()
    field = desk.row("opacity_lr").field
    assert isinstance(field, QLineEdit)
    field.setFocus()
    qtbot.waitUntil(field.hasFocus, timeout=LIMIT_MS)
    QTest.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert undone == [1]
    field.selectAll()
    QTest.keyClicks(field, "7")
    QTest.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert undone == [1]
    assert field.text() == "0.025"


@pytest.mark.parametrize("width", [280, 340])
def test_no_text_is_clipped_in_a_narrow_panel(desk: Desk, qtbot: QtBot, width: int) -> None:
    desk.begin_run()
    desk.panel.resize(width, 720)
    desk.panel.handle(stepped([4_210], splats=2_000_000))
    for name in ("position_lr_start", "max_splats", "checkpoint_interval", "gradient_threshold"):
        info = desk.row(name).info
        desk.type(name, f"{info.maximum}")
    desk.apply(14_210)

    def nothing_is_clipped() -> None:
        assert desk.panel.width() == width
        for info in all_settings():
            row = desk.row(info.name)
            assert row.label.text() == info.label, "the name gave way"
            if row.field is not None:
                room = row.field.width() - 14
                assert row.field.fontMetrics().horizontalAdvance(row.field.text()) <= room
            for part in row.findChildren(QWidget):
                if part.isVisible():
                    right = part.mapTo(row, QPoint(part.width(), 0)).x()
                    assert right <= row.width(), f"{info.name} is wider than the panel"

    wait_for_layout(qtbot, nothing_is_clipped)


def test_what_has_just_happened_is_not_announced_any_longer(
    desk: Desk, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.panel._badge_pace, "_interval", LIMIT_MS)  # seconds: no turn by itself
    desk.begin_run()
    row = desk.row("opacity_reset_interval")
    desk.panel.handle(stepped([2_999]))
    qtbot.waitUntil(lambda: row.badge_text == "next at step 3,000", timeout=LIMIT_MS)
    desk.panel.handle(stepped([3_000]))
    desk.panel.handle(OpacitiesReset(1, 3_000, 0.01))
    qtbot.waitUntil(lambda: row.badge_text == "next at step 6,000", timeout=LIMIT_MS)


def test_badges_rest_while_the_panel_is_hidden(desk: Desk) -> None:
    desk.begin_run()
    desk.panel.hide()
    desk.panel.handle(stepped([5_999]))
    assert desk.row("opacity_reset_interval").badge_text == "next at step 3,000"
    desk.panel.show()
    assert desk.row("opacity_reset_interval").badge_text == "next at step 6,000"
