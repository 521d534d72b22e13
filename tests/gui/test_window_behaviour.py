"""The window tells what the engine does and allows what is legal."""

import dataclasses
from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

from app import window_memory
from app.actions import ACTIONS
from app.palette import DARK, LIGHT
from engine.messages import (
    ContinueFor,
    Evaluated,
    Finished,
    OpenScene,
    Pause,
    Restart,
    ResumeRun,
    Save,
    Saved,
    SettingApplied,
    Start,
    State,
    StepN,
    Stop,
)
from engine.presets import load_preset
from engine.scene_names import DEMO_FOLDER
from engine.usual_preset import PresetChoice
from tests.gui.scripted_engine import stepped
from tests.gui.window_room import Room, enter, tell
from tests.settling import LIMIT_MS, wait_for_layout

pytestmark = pytest.mark.gl


@pytest.mark.parametrize("state", list(State))
def test_each_action_can_be_used_exactly_in_its_states(painted_room: Room, state: State) -> None:
    room = painted_room
    if state is State.CLOSING:
        room.window.actions_table.set_state(state)
    else:
        enter(room, state)
    for info in ACTIONS:
        if info.group != "Settings":  # undo and redo depend on what was changed as well
            assert room.window.actions_table[info.key].isEnabled() == (state in info.states), info
    if state is State.CLOSING:
        room.window.actions_table.set_state(room.session.state)


def test_buttons_post_their_commands(painted_room: Room) -> None:
    room = painted_room
    room.open()
    posted = room.engine.commands
    buttons = room.window.toolbar.buttons
    for key, expected in (("step", StepN()), ("save", Save()), ("stop", Stop())):
        buttons[key].click()
        assert posted[-1] == expected
    buttons["start_pause"].click()
    assert posted[-1] == Pause()
    room.qtbot.waitUntil(lambda: room.session.state is State.PAUSED, timeout=LIMIT_MS)
    assert buttons["start_pause"].text() == "Resume"
    buttons["start_pause"].click()
    assert posted[-1] == Start()


def test_a_space_in_the_view_pauses(painted_room: Room) -> None:
    room = painted_room
    room.open()
    room.view.take_focus()
    handle = room.window.windowHandle()
    QTest.keyClick(handle, Qt.Key.Key_Space)
    assert room.engine.commands[-1] == Pause()


def test_a_small_window_forgets_no_width_that_was_wanted(painted_room: Room) -> None:
    window, qtbot = painted_room.window, painted_room.qtbot
    wide = window.divisions["sides"].splitter.sizes()
    window.resize(820, 420)
    wait_for_layout(qtbot, lambda: _is_narrower(window.settings_panel, wide[2]))
    window_memory.remember(window)
    window_memory.restore(window, 0)  # as the next session begins
    window.resize(1280, 800)
    wait_for_layout(qtbot, lambda: _has_width(window.settings_panel, wide[2]))
    assert window.left.width() == wide[0]


def _is_narrower(panel: QWidget, width: int) -> None:
    assert panel.width() < width


def _has_width(panel: QWidget, width: int) -> None:
    assert panel.width() == width


def test_a_finished_run_offers_what_comes_next(painted_room: Room) -> None:
    room = painted_room
    room.open()
    tell(room, Finished(room.session.run_id, 3000, Path("c.safetensors"), Path("e.ply")))
    enter(room, State.FINISHED)
    strip = room.window.finished_strip
    assert strip.isVisible()
    strip.count_box.setValue(700)
    strip.continue_button.click()
    assert room.engine.commands[-1] == ContinueFor(700)
    texts = [button.text() for button in strip.findChildren(QAbstractButton)]
    assert "Restart" in texts
    assert any("Export" in text for text in texts)


def test_held_changes_offer_a_restart(painted_room: Room) -> None:
    room = painted_room
    room.open()
    run = room.session.run_id
    tell(room, SettingApplied(run, 5, "seed", 0, 7, held=True))
    strip = room.window.restart_strip
    assert strip.isVisible()
    assert strip.restart_button.text() == "Restart with 1 change"
    assert "this run is kept" in strip.label.full_text
    tell(room, SettingApplied(run, 5, "resolution", 0, 2, held=True))
    assert strip.restart_button.text() == "Restart with 2 changes"
    strip.restart_button.click()
    assert room.engine.commands[-1] == Restart()
    tell(room, SettingApplied(run, 6, "seed", 7, 0), SettingApplied(run, 6, "resolution", 2, 0))
    assert not strip.isVisible()


def test_the_status_line_tells_speed_time_left_and_where_the_run_is(painted_room: Room) -> None:
    room = painted_room
    room.open("banana")
    run = room.session.run_id
    tell(room, stepped(run, 1, 100), Saved(run, 100, Path("checkpoints/s.safetensors"), 0.1))
    status = room.window.status
    room.qtbot.waitUntil(lambda: "20.0 steps/s" in status.facts.full_text, timeout=LIMIT_MS)
    for part in (
        "Training",
        "1,100 splats",
        "537 MB",
        "CPU, 2 threads",
        "preview 2.0%",
        "ETA 24 min",
    ):
        assert part in status.facts.full_text
    assert status.folder_button.text() == "runs/banana-1"
    assert status.saved.text() == "saved just now"


def test_a_second_scene_starts_clean(painted_room: Room) -> None:
    room = painted_room
    room.open("first")
    tell(room, Evaluated(room.session.run_id, 100, 25.0, 0.8, ()))
    assert room.view.shown.held_out == (25.0, 100)
    frame = room.view.frame
    assert frame is not None
    pills = room.view.shown.frame_pills(dataclasses.replace(frame, step=120), False)
    assert "held-out 25.00 dB at step 100" in [pill.text for pill in pills]  # not of step 120
    room.open("second")
    assert room.view.shown.held_out is None
    assert "second" in room.window.toolbar.scene_label.toolTip()
    assert "second" in room.window.windowTitle()


def test_a_folder_can_be_dropped_anywhere(painted_room: Room, tmp_path: Path) -> None:
    room = painted_room
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    how = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton)
    none = Qt.KeyboardModifier.NoModifier
    entering = QDragEnterEvent(QPoint(200, 200), *how, none)
    room.window.dragEnterEvent(entering)
    assert entering.isAccepted()
    room.window.dropEvent(QDropEvent(QPointF(200, 200), *how, none))
    command = room.engine.commands[-1]
    assert isinstance(command, OpenScene)
    assert command.path == tmp_path


def test_flags_of_the_start_hold_for_the_first_opening_only(
    painted_room: Room, tmp_path: Path
) -> None:
    commands = painted_room.window.commands
    (tmp_path / "run.toml").touch()
    commands.resume_changes = {"iterations": 50}
    commands.open_scene(tmp_path)
    commands.open_scene(tmp_path)
    first, second = painted_room.engine.commands[-2:]
    assert isinstance(first, ResumeRun)
    assert first.changes == (("iterations", 50),)
    assert isinstance(second, ResumeRun)
    assert second.changes == ()


class StyleChanges(QObject):
    """Counts how often the style of each widget changes."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[QObject] = Counter()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.StyleChange:
            self.counts[watched] += 1
        return False


def test_another_theme_polishes_a_widget_no_more_often_the_deeper_it_lies(
    painted_room: Room,
) -> None:
    """While it trains on a busy machine that was the difference between one second and eight."""
    changes = StyleChanges()
    application = QApplication.instance()
    assert application is not None
    application.installEventFilter(changes)
    painted_room.window.theme.toggle()
    application.removeEventFilter(changes)
    painted_room.window.theme.toggle()
    assert changes.counts[painted_room.window.settings_panel.row("opacity_lr")] > 0
    # once without a sheet and once with the new one; legends have a sheet of their own as well
    assert max(changes.counts.values()) <= 6


def test_the_theme_changes_and_comes_back(painted_room: Room) -> None:
    room = painted_room
    assert room.window.theme.colors is DARK
    room.window.actions_table["theme"].trigger()
    assert room.window.theme.colors is LIGHT
    assert room.view.shown.colors is LIGHT
    assert all(panel.colors is LIGHT for panel in room.window.panels)
    room.window.actions_table["theme"].trigger()
    assert room.window.theme.colors is DARK


def test_the_key_sheet_opens_from_the_view_and_lists_every_key(painted_room: Room) -> None:
    room = painted_room
    room.open()
    room.view.take_focus()
    QTest.keyClick(room.window.windowHandle(), Qt.Key.Key_Question)
    sheet = room.window.key_sheet
    room.qtbot.waitUntil(sheet.isVisible, timeout=LIMIT_MS)
    words = "\n".join(label.text() for label in sheet.findChildren(QLabel))
    for info in ACTIONS:
        if info.view_key or info.shortcut:
            assert info.tooltip in words
    sheet.close()


def test_every_control_has_a_name_and_a_tooltip_and_tab_reaches_it(painted_room: Room) -> None:
    room = painted_room
    room.open()
    controls = [
        button
        for button in room.window.findChildren(QAbstractButton)
        if button.isVisible()
        and button.isEnabled()
        and button.focusPolicy() != Qt.FocusPolicy.NoFocus
    ]
    assert len(controls) > 15
    unnamed = [b for b in controls if not (b.accessibleName() or b.text())]
    without_tooltip = [b.text() or b.accessibleName() for b in controls if not b.toolTip()]
    assert not unnamed
    assert not without_tooltip
    room.window.toolbar.buttons["open"].setFocus()
    reached = set()
    handle = room.window.windowHandle()
    for _ in range(400):
        widget = QApplication.focusWidget()
        if widget is None or widget in reached:
            break
        reached.add(widget)
        QTest.keyClick(handle, Qt.Key.Key_Tab)
    missing = [b.accessibleName() or b.text() for b in controls if b not in reached]
    assert not missing, f"Tab does not reach: {missing}"
    assert room.view.surface.widget in reached


def test_the_demo_brings_its_preset_and_another_scene_does_not_keep_it(
    painted_room: Room, tmp_path: Path
) -> None:
    panel, commands = painted_room.window.settings_panel, painted_room.window.commands
    usual = load_preset("classic")
    panel.set_start_values(usual, "classic", usual)
    found = []
    for scene in (DEMO_FOLDER, tmp_path):
        commands.open_scene(scene)
        found.append(painted_room.engine.commands[-1].settings)
    assert found == [load_preset("demo"), usual]
    fast = load_preset("cpu-fast")
    commands.usual_preset = PresetChoice("cpu-fast", "No GPU does the work.")
    panel.set_start_values(fast, "cpu-fast", fast)
    for scene, name in ((DEMO_FOLDER, "demo"), (tmp_path, "cpu-fast")):
        commands.open_scene(scene)
        assert painted_room.engine.commands[-1].settings == load_preset(name)
        assert panel.summary == name
    assert "No GPU does the work. (cpu-fast)" in painted_room.window.status.notice.text()

    panel.set_start_values(usual.changed("iterations", 77), "classic", usual)
    commands.open_scene(DEMO_FOLDER)  # what the user changed stays
    assert painted_room.engine.commands[-1].settings == usual.changed("iterations", 77)
