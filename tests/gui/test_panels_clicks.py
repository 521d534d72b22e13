"""Real clicks and keys on the side panels, delivered to the window as the desktop would."""

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QWidget

from app.panels.setting_controls import Slider
from app.panels.setting_row import POST_INTERVAL_MS
from engine.messages import (
    Command,
    Evaluate,
    PruneNow,
    ResetOpacity,
    SetSetting,
    SettingApplied,
    State,
)
from engine.settings import Settings, all_settings
from tests.gui.window_room import Room
from tests.settling import LIMIT_MS, settle, wait_for_layout

pytestmark = pytest.mark.gl


@pytest.fixture
def panel_room(painted_room: Room) -> Room:
    """The window that the tests share, with default settings and nothing posted yet."""
    painted_room.window.settings_panel.set_start_values(Settings(), "classic", Settings())
    painted_room.engine.commands.clear()
    return painted_room


def place_of(widget: QWidget, inside: QPoint | None = None) -> QPoint:
    return widget.mapTo(widget.window(), inside or widget.rect().center())


def click(widget: QWidget, inside: QPoint | None = None) -> None:
    """Click through the window, so that whatever lies on top at that place gets it."""
    handle = widget.window().windowHandle()
    point = place_of(widget, inside)
    QTest.mouseClick(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, point)


def settings_posted(room: Room, name: str) -> list[SetSetting]:
    return [c for c in room.engine.commands if isinstance(c, SetSetting) and c.name == name]


def bring_into_sight(room: Room, name: str) -> None:
    panel = room.window.settings_panel
    panel.list.set_closed_groups([])
    settle()
    panel.list.area.ensureWidgetVisible(panel.row(name))
    settle()


def posted(room: Room, kind: type[Command]) -> Callable[[], bool]:
    return lambda: any(isinstance(command, kind) for command in room.engine.commands)


def test_a_click_on_the_groove_puts_the_knob_there_and_posts_it(panel_room: Room) -> None:
    room = panel_room
    room.open()
    bring_into_sight(room, "opacity_lr")
    row = room.window.settings_panel.row("opacity_lr")
    slider = row.slider
    assert isinstance(slider, Slider)
    target = QPoint(slider.width() // 4, slider.height() // 2)
    click(slider, target)
    room.qtbot.waitUntil(lambda: bool(settings_posted(room, "opacity_lr")), timeout=LIMIT_MS)
    # The knob is 12 px wide, so a click may be off by that much of the slider's width.
    assert slider.value() / slider.maximum() == pytest.approx(0.25, abs=12 / slider.width())
    last = settings_posted(room, "opacity_lr")[-1]
    assert last.value == room.window.settings_panel.settings()["opacity_lr"]
    assert not slider.isSliderDown()


def test_a_drag_with_the_mouse_is_one_gesture_with_few_posts(panel_room: Room) -> None:
    room = panel_room
    room.open()
    bring_into_sight(room, "opacity_lr")
    slider = room.window.settings_panel.row("opacity_lr").slider
    assert isinstance(slider, Slider)
    handle = room.window.windowHandle()
    middle = slider.height() // 2
    begin = time.monotonic()
    QTest.mousePress(
        handle,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
        place_of(slider, QPoint(20, middle)),
    )
    for x in range(21, 100):
        QTest.mouseMove(handle, place_of(slider, QPoint(x, middle)))
        QApplication.processEvents()
    QTest.mouseRelease(
        handle,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
        place_of(slider, QPoint(99, middle)),
    )
    tenths = (time.monotonic() - begin) * 1000 / POST_INTERVAL_MS
    commands = settings_posted(room, "opacity_lr")
    assert len({command.gesture for command in commands}) == 1
    # of 80 moves the first, the last, and one each tenth of a second; Qt's timers may be 5 % early
    assert 2 <= len(commands) <= 2 + tenths / 0.95
    assert commands[-1].value == room.window.settings_panel.settings()["opacity_lr"]


def test_a_value_is_typed_with_the_keyboard_and_undone_with_ctrl_z(panel_room: Room) -> None:
    room = panel_room
    room.open()
    bring_into_sight(room, "opacity_lr")
    field = room.window.settings_panel.row("opacity_lr").field
    assert isinstance(field, QLineEdit)
    click(field)
    assert field.hasFocus()
    field.selectAll()
    handle = room.window.windowHandle()
    for key in "1e-4":
        QTest.keyClick(handle, key)
    QTest.keyClick(handle, Qt.Key.Key_Return)
    room.qtbot.waitUntil(
        lambda: [c.value for c in settings_posted(room, "opacity_lr")] == [1e-4], timeout=LIMIT_MS
    )
    room.engine.emit(SettingApplied(room.session.run_id, 12, "opacity_lr", 0.025, 1e-4))
    row = room.window.settings_panel.row("opacity_lr")
    room.qtbot.waitUntil(lambda: row.badge_text == "applied at step 12", timeout=LIMIT_MS)
    QTest.keyClick(handle, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    room.qtbot.waitUntil(
        lambda: settings_posted(room, "opacity_lr")[-1].value == 0.025, timeout=LIMIT_MS
    )
    first, second = settings_posted(room, "opacity_lr")
    assert first.gesture != second.gesture


def test_the_dot_of_a_changed_row_takes_the_change_back(panel_room: Room) -> None:
    room = panel_room
    room.open()
    bring_into_sight(room, "opacity_lr")
    panel = room.window.settings_panel
    panel.row("opacity_lr").edited.emit("opacity_lr", 0.5, 1)
    settle()
    dot = panel.row("opacity_lr").reset_button
    assert dot.isVisible()
    click(dot)
    assert panel.settings()["opacity_lr"] == 0.025
    assert not dot.isVisible()


def test_the_buttons_of_deeds_post_them(panel_room: Room) -> None:
    room = panel_room
    room.open()
    buttons = room.window.action_panel.buttons
    for kind in (ResetOpacity, PruneNow, Evaluate):
        assert buttons[kind].isEnabled()
        click(buttons[kind])
        room.qtbot.waitUntil(posted(room, kind), timeout=LIMIT_MS)


def test_a_click_on_a_photo_chooses_it_exactly_once(panel_room: Room) -> None:
    room = panel_room
    room.open()
    panel = room.window.photos_panel
    chosen: list[int] = []
    panel.photo_chosen.connect(chosen.append)
    area = panel.list.visualRect(panel.shown.index(2, 0))
    click(panel.list.viewport(), area.center())
    assert chosen == [2]
    click(panel.list.viewport(), area.center())
    assert chosen == [2, 2]


def test_after_a_click_on_a_photo_the_views_keys_act(panel_room: Room) -> None:
    room = panel_room
    room.open()
    panel = room.window.photos_panel
    click(panel.list.viewport(), panel.list.visualRect(panel.shown.index(2, 0)).center())
    room.qtbot.waitUntil(room.view.surface.widget.hasFocus, timeout=LIMIT_MS)
    assert room.view.photo == 2
    room.qtbot.waitUntil(lambda: room.view.photos.get(2) is not None, timeout=LIMIT_MS)


@pytest.mark.parametrize("size", [(1280, 720), (1600, 1000)])
def test_no_label_of_the_settings_is_cut_in_the_window(
    panel_room: Room, size: tuple[int, int]
) -> None:
    room = panel_room
    room.open()
    room.window.resize(*size)
    panel = room.window.settings_panel
    panel.list.set_closed_groups([])

    def nothing_is_cut() -> None:
        assert room.window.size().toTuple() == size
        for info in all_settings():
            row = panel.row(info.name)
            assert row.label.text() == info.label
            for label in row.findChildren(QLabel):
                if label.isVisible() and not label.wordWrap():
                    assert label.width() >= label.sizeHint().width() - 1, label.text()

    wait_for_layout(room.qtbot, nothing_is_cut)


def test_every_control_of_the_panels_has_a_name_and_a_tooltip(panel_room: Room) -> None:
    room = panel_room
    room.open(state=State.TRAINING)
    window = room.window
    window.settings_panel.list.set_closed_groups([])
    panels = (
        window.settings_panel,
        window.photos_panel,
        window.metrics_panel,
        window.action_panel,
        window.log_panel,
        window.findings_panel,
    )
    nameless = []
    for panel in panels:
        for child in panel.findChildren(QWidget):
            takes_keys = child.focusPolicy() & Qt.FocusPolicy.TabFocus
            inside_another = child.objectName().startswith("qt_") or child.window() is not window
            if takes_keys and not inside_another and not child.accessibleName():
                text = getattr(child, "text", None)
                if not (callable(text) and text()):
                    nameless.append(f"{type(panel).__name__}: {type(child).__name__}")
    assert nameless == [], nameless
