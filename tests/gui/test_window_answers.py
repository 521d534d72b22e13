"""What the window says while it loads, at the end of a run, and to quick clicks."""

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from app.key_sheet import COLUMNS, key_rows
from app.main_window import MainWindow
from app.progress_strip import name_places
from engine.messages import (
    CancelLoading,
    CommandRefused,
    ContinueFor,
    Finished,
    LoadingProgressed,
    OpenScene,
    Pause,
    Refined,
    SettingApplied,
    Start,
    State,
    Stop,
)
from tests.gui.scripted_engine import scene_opened
from tests.gui.window_room import Room, drag, enter, input_window, move_held, newest, tell
from tests.settling import LIMIT_MS, wait_for_layout

pytestmark = pytest.mark.gl


def test_while_loading_nothing_says_that_no_scene_is_open(painted_room: Room) -> None:
    room, window = painted_room, painted_room.window
    window.commands.opening = "banana"
    enter(room, State.LOADING)
    tell(room, LoadingProgressed(room.session.run_id, "Reading photos", "IMG_07.jpg", 7, 30))
    page = window.loading_page
    assert page.isVisible()
    assert not window.empty_page.isVisible()
    assert not window.loading_strip.isVisible()
    assert "banana" in page.heading.full_text
    assert "7 of 30" in page.stage.text()
    assert page.file.full_text == "IMG_07.jpg"
    assert (page.bar.value(), page.bar.maximum()) == (7, 30)
    words = [label.text() for label in window.findChildren(QLabel) if label.isVisible()]
    words.append(window.findings_panel.view.toPlainText())
    assert not [word for word in words if "No scene is open" in word]
    page.cancel_button.click()
    assert room.engine.commands[-1] == CancelLoading()
    enter(room, State.EMPTY)
    assert window.empty_page.isVisible()


def test_once_the_cameras_are_known_the_view_shows_them_under_the_progress(
    painted_room: Room,
) -> None:
    room, window = painted_room, painted_room.window
    enter(room, State.LOADING)
    run = room.session.run_id
    tell(room, scene_opened(run), LoadingProgressed(run, "Decoding", "IMG_08.jpg", 8, 30))
    assert room.view.isVisible()
    assert window.loading_strip.isVisible()
    assert "IMG_08.jpg" in window.loading_strip.label.full_text
    enter(room, State.EMPTY)
    assert not window.loading_strip.isVisible()


def test_the_main_button_of_a_finished_run_goes_on_as_the_banner_says(painted_room: Room) -> None:
    room, window = painted_room, painted_room.window
    room.open()
    iterations = int(window.settings_panel.settings()["iterations"])
    tell(room, Finished(room.session.run_id, iterations, room.window.run_folder, None))  # type: ignore[arg-type]
    enter(room, State.FINISHED)
    button = window.toolbar.buttons["start_pause"]
    assert button.isEnabled()
    assert button.text() == "Continue"
    window.finished_strip.count_box.setValue(700)
    button.click()
    assert room.engine.commands[-1] == ContinueFor(700)


def test_a_run_stopped_early_is_offered_its_own_end(painted_room: Room) -> None:
    room, window = painted_room, painted_room.window
    room.open()
    iterations = int(window.settings_panel.settings()["iterations"])
    tell(room, Finished(room.session.run_id, 1200, room.window.run_folder, None))  # type: ignore[arg-type]
    assert window.finished_strip.count_box.value() == iterations - 1200


def test_quick_clicks_on_pause_alternate_and_nobody_is_scolded(painted_room: Room) -> None:
    room = painted_room
    room.open()
    button = room.window.toolbar.buttons["start_pause"]
    begun = len(room.engine.commands)
    for _ in range(6):  # faster than any answer: the loop does not turn
        button.click()
    assert room.engine.commands[begun:] == [Pause(), Start()] * 3
    room.qtbot.waitUntil(lambda: room.engine.state is State.TRAINING, timeout=LIMIT_MS)
    enter(room, State.FINISHED)
    room.window.status._clear_notice()
    tell(room, CommandRefused(room.session.run_id, Stop(), "There is nothing to stop."))
    assert room.window.status.notice.text() == ""
    enter(room, State.PAUSED)
    tell(room, CommandRefused(room.session.run_id, Stop(), "There is nothing to stop."))
    assert "nothing to stop" in room.window.status.notice.text()


def test_a_scene_that_is_refused_says_so_until_the_user_has_read_it(painted_room: Room) -> None:
    room, window = painted_room, painted_room.window
    reason = (
        "The run folder there/run-1 cannot be made: Read-only file system. Choose another place."
    )
    tell(room, CommandRefused(room.session.run_id, OpenScene(Path("there")), reason))
    assert window.error_cards.isVisible()
    assert [card.problem.message for card in window.error_cards.cards] == [reason]
    assert reason not in window.status.notice.text()


def test_a_reached_splat_cap_is_told_in_its_row_and_in_the_status(painted_room: Room) -> None:
    room, window = painted_room, painted_room.window
    room.open()
    run = room.session.run_id
    cap = int(window.settings_panel.settings()["max_splats"])
    row = window.settings_panel.row("max_splats")
    # the refine grew just up to the cap: it held nothing back
    tell(room, Refined(run, 300, 20_000, 10_000, 0, cap))
    window.status.refresh()
    assert "cap reached" not in window.status.facts.full_text
    # the next one grew up to the cap and pruned 39 of them afterwards
    tell(room, Refined(run, 400, 20, 19, 39, cap - 39, refused=70))
    room.qtbot.waitUntil(lambda: "growth has stopped" in row.note_text, timeout=LIMIT_MS)
    window.status.refresh()
    assert "cap reached" in window.status.facts.full_text
    tell(room, SettingApplied(run, 401, "max_splats", cap, cap + 5000))
    room.qtbot.waitUntil(lambda: row.note_text == "", timeout=LIMIT_MS)
    window.status.refresh()
    assert "cap reached" not in window.status.facts.full_text


def test_a_drag_goes_on_when_the_focus_is_moved_about(room: Room) -> None:
    room.open()
    surface = room.view.surface
    before = newest(room).camera.world_to_camera
    drag(surface, (200, 150), [(30, 0)], release=False)
    turned = newest(room).camera.world_to_camera
    for source in surface.sources:
        QApplication.sendEvent(source, QFocusEvent(QEvent.Type.FocusOut))
    window, origin = input_window(surface)
    move_held(window, origin + QPoint(270, 150))
    QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=origin + QPoint(270, 150))
    assert (turned != before).any()
    assert (newest(room).camera.world_to_camera != turned).any()


def test_the_key_sheet_has_columns_of_about_equal_height_and_lists_nothing_twice() -> None:
    columns = [[row for group in groups for row in key_rows(group)] for groups in COLUMNS]
    heights = [len(rows) for rows in columns]
    assert max(heights) - min(heights) <= 2
    meanings = [meaning for rows in columns for _, meaning in rows]
    assert len(set(meanings)) == len(meanings)
    # what the plots take, they take only while they have the focus or the pointer
    others = [group for groups in COLUMNS for group in groups if group != "In the plots"]
    keys = [key for group in others for names, _ in key_rows(group) for key in names]
    assert len(set(keys)) == len(keys)
    assert not [key for key in keys if key.endswith(".")]  # a full stop is not seen as a key


def test_the_key_sheet_names_what_mouse_and_keys_do_in_the_plots() -> None:
    keys = {key for names, _ in key_rows("In the plots") for key in names}
    assert keys >= {"Wheel", "Drag", "Double-click", "←", "→", "+", "-", "0", "Esc"}


def test_names_of_marks_that_lie_close_stand_beside_each_other() -> None:
    def width(name: str) -> float:
        return 6.0 * len(name)

    marks = [(300.0, "SH 1"), (740.0, "SH 2"), (780.0, "densify ends"), (990.0, "SH 3")]
    places = name_places(marks, width, 14.0, 1000.0)
    assert [name for _, name in places] == ["SH 1", "SH 2", "densify ends", "SH 3"]
    for (left, name), (x, _) in zip(places, marks, strict=True):
        assert left <= x <= left + width(name)
    ends = [left + width(name) for left, name in places]
    assert all(end < left for end, (left, _) in zip(ends[:-1], places[1:], strict=True))
    assert ends[-1] <= 1000
    crowded = name_places([(100.0, "one"), (101.0, "two")], width, 14.0, 1000.0)
    assert [name for _, name in crowded] == ["one"]


@pytest.mark.parametrize("size", [(640, 400), (780, 500), (1000, 640)])
def test_in_a_small_window_every_control_is_whole_and_inside(
    painted_room: Room, size: tuple[int, int]
) -> None:
    room, window = painted_room, painted_room.window
    room.open()
    tell(room, Finished(room.session.run_id, 1200, room.window.run_folder, None))  # type: ignore[arg-type]
    enter(room, State.FINISHED)
    window.resize(*size)
    wait_for_layout(room.qtbot, lambda: check_that_all_is_whole(window, size))


def check_that_all_is_whole(window: MainWindow, size: tuple[int, int]) -> None:
    assert (window.width(), window.height()) == size
    for button in [*window.toolbar.buttons.values(), window.toolbar.view_button]:
        if button.isVisible():
            assert button.width() >= button.sizeHint().width(), button.text()
            right = button.mapTo(window, button.rect().topRight()).x()
            assert right <= window.width(), button.text()
    hidden = [key for key, button in window.toolbar.buttons.items() if not button.isVisible()]
    offered = [action.objectName() for action in window.toolbar.more_button.menu().actions()]
    assert offered == hidden
    assert window.toolbar.more_button.isVisible() == bool(hidden)
    strip = window.finished_strip
    assert strip.isVisible()
    for part in [*strip.findChildren(QLabel), strip.continue_button, strip.count_box]:
        if part.isVisible() and part is not strip.label:
            right = part.mapTo(strip, part.rect().bottomRight())
            assert right.x() <= strip.width()
            assert right.y() <= strip.height()
            if part is not strip.count_box:  # Qt's hint for it has room for buttons it has not
                assert part.width() >= part.minimumSizeHint().width()
    assert strip.count_box.fontMetrics().horizontalAdvance("1,000,000") + 14 <= 80
    assert window.divisions["sides"].splitter.geometry().right() <= window.width()
    settings = window.settings_panel
    assert settings.mapTo(window, settings.rect().bottomRight()).x() <= window.width()
