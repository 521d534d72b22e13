"""The view asks for what the user wants to see and never shows an old picture as a new one."""

import time

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.viewport.overlays import Overlay
from engine.messages import Frame
from tests.gui.scripted_engine import ScriptedEngine, picture_card
from tests.gui.window_room import (
    Room,
    bare,
    drag,
    focus_view,
    input_window,
    make_room,
    newest,
    press_keys,
    surface_pixels,
)
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


def shown_number(room: Room) -> int:
    """The number of the test card in the middle of the view on the screen."""
    seen = surface_pixels(room.view.surface)
    return int(seen[seen.shape[0] // 2, seen.shape[1] // 2, 2])


def test_frames_are_shown_exactly_at_full_size(room: Room) -> None:
    bare(room.view)
    room.open()
    width, height = room.view.surface.pixel_size()
    assert (newest(room).camera.width, newest(room).camera.height) == (width, height)

    def exact() -> bool:
        frame = room.view.frame
        assert frame is not None
        seen = surface_pixels(room.view.surface)
        return bool((seen == frame.pixels[..., :3]).all())

    room.qtbot.waitUntil(exact, timeout=LIMIT_MS)


def test_a_drag_turns_the_camera_and_the_request_follows(room: Room) -> None:
    room.open()
    before = newest(room)
    drag(room.view.surface, (200, 150), [(30, 0), (30, 10)], release=False)
    moving = newest(room)
    assert moving.moving
    assert moving.view_id > before.view_id
    assert not np.allclose(moving.camera.world_to_camera, before.camera.world_to_camera)
    assert room.view.photo == -1
    window, origin = input_window(room.view.surface)
    QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=origin + QPoint(260, 160))
    room.qtbot.waitUntil(lambda: not newest(room).moving, timeout=LIMIT_MS)
    resting = newest(room)
    np.testing.assert_array_equal(resting.camera.world_to_camera, moving.camera.world_to_camera)
    assert resting.camera.width == room.view.surface.pixel_size()[0]
    room.wait_for_current_frame()


def test_the_other_buttons_pan_and_zoom(room: Room) -> None:
    room.open()
    pivot = np.zeros((1, 3))
    start = newest(room).camera.project(pivot)
    drag(room.view.surface, (200, 150), [(25, -10)], Qt.MouseButton.MiddleButton)
    panned = newest(room).camera.project(pivot)
    np.testing.assert_allclose(panned[0] - start[0], [[25, -10]], atol=0.5)  # logical = device px
    drag(room.view.surface, (200, 150), [(0, -60)], Qt.MouseButton.RightButton)
    assert newest(room).camera.project(pivot)[1][0] < panned[1][0] * 0.95
    drag(room.view.surface, (200, 150), [(-25, 10)], modifiers=Qt.KeyboardModifier.ShiftModifier)
    back = newest(room).camera.project(pivot)
    np.testing.assert_allclose(back[0], start[0], atol=6)  # zoomed, so only nearly back


def test_the_engine_hears_how_long_the_window_has_worked_between_frames(room: Room) -> None:
    room.open()
    room.wait_for_current_frame()
    heard = len(room.engine.window_work)
    drag(room.view.surface, (200, 150), [(30, 0)])
    room.qtbot.waitUntil(lambda: len(room.engine.window_work) > heard, timeout=LIMIT_MS)
    # The frame before was painted meanwhile, which takes longer than the clock's tick, and this
    # test has not waited that long.
    assert 0.0 < max(room.engine.window_work[heard:]) < LIMIT_MS / 1000


def test_work_between_frames_far_apart_is_not_for_pictures(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.open()
    room.wait_for_current_frame()
    heard = len(room.engine.window_work)
    monkeypatch.setattr("app.viewport.viewport.FRAMES_APART_SECONDS", 0.0)
    drag(room.view.surface, (200, 150), [(30, 0)])
    room.wait_for_current_frame()
    assert len(room.engine.window_work) == heard


def test_an_older_frame_never_replaces_a_newer_one(room: Room) -> None:
    room.open()
    view = newest(room)
    room.engine.answers_views = False
    drag(room.view.surface, (200, 150), [(40, 0)])
    room.qtbot.waitUntil(lambda: not newest(room).moving, timeout=LIMIT_MS)
    room.engine.step = 7
    new = room.engine.frame_of(newest(room), number=70)
    room.engine.show(new)
    room.qtbot.waitUntil(lambda: room.view.frame is new, timeout=LIMIT_MS)
    arrived: list[Frame] = []
    room.session.frame_arrived.connect(arrived.append)
    room.engine.step = 9
    late = room.engine.frame_of(view, number=71)  # of the view before
    room.engine.show(late)
    room.qtbot.waitUntil(lambda: late in arrived, timeout=LIMIT_MS)
    room.engine.step = 6
    old = room.engine.frame_of(newest(room), number=72)  # of an earlier step
    room.engine.show(old)
    room.qtbot.waitUntil(lambda: old in arrived, timeout=LIMIT_MS)
    assert room.view.frame is new
    room.qtbot.waitUntil(lambda: shown_number(room) == 70, timeout=LIMIT_MS)


def test_streamed_frames_come_in_order_and_the_last_one_stays(room: Room) -> None:
    bare(room.view)
    room.open()
    room.engine.answers_views = False
    room.engine.step = 1
    room.engine.show(room.engine.frame_of(newest(room), number=1))
    room.qtbot.waitUntil(lambda: shown_number(room) == 1, timeout=LIMIT_MS)
    seen: list[int] = []
    for number in range(2, 121):
        room.engine.step = number
        room.engine.show(room.engine.frame_of(newest(room), number=number))
        if number % 10 == 0:
            seen.append(shown_number(room))
    room.qtbot.waitUntil(lambda: shown_number(room) == 120, timeout=LIMIT_MS)
    assert seen == sorted(seen)


def test_a_stale_picture_is_never_under_a_new_overlay(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    presented: list[Overlay] = []
    surface = room.view.surface
    present = surface.present

    def watched(picture: object, overlay: Overlay) -> None:
        presented.append(overlay)
        present(picture, overlay)

    room.open()
    first = room.view.frame
    room.engine.answers_views = False
    monkeypatch.setattr(surface, "present", watched)
    drag(surface, (200, 150), [(20, 5), (20, 5), (20, 5)])
    room.qtbot.waitUntil(lambda: not newest(room).moving, timeout=LIMIT_MS)
    assert first is room.view.frame
    assert len(presented) >= 3
    for overlay in presented:
        assert overlay.camera is not None
        np.testing.assert_array_equal(overlay.camera.world_to_camera, first.camera.world_to_camera)
    fresh = room.engine.frame_of(newest(room))
    room.engine.show(fresh)

    def caught_up() -> bool:
        camera = presented[-1].camera
        return camera is not None and bool(
            (camera.world_to_camera == fresh.camera.world_to_camera).all()
        )

    room.qtbot.waitUntil(caught_up, timeout=LIMIT_MS)


def test_a_late_picture_is_called_so(room: Room) -> None:
    room.open()
    room.engine.answers_views = False
    drag(room.view.surface, (200, 150), [(40, 0)])

    def words() -> list[str]:
        frame = room.view.frame
        assert frame is not None
        return [pill.text for pill in room.view.shown.frame_pills(frame, room.view._is_late(frame))]

    room.qtbot.waitUntil(lambda: "earlier view" in words(), timeout=LIMIT_MS)
    room.engine.show(room.engine.frame_of(newest(room), scale=0.25))
    room.qtbot.waitUntil(lambda: "earlier view" not in words(), timeout=LIMIT_MS)
    assert "25% of full size" in words()


def test_a_picture_that_keeps_the_hand_waiting_says_for_how_long(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlays: list[Overlay] = []
    room.open()
    room.engine.answers_views = False
    drag(room.view.surface, (200, 150), [(40, 0)], release=False)  # no timer can end the moving
    moved = newest(room)
    assert moved.moving
    monkeypatch.setattr(room.view.surface, "present", lambda _, overlay: overlays.append(overlay))
    time.sleep(0.2)  # the engine is busy
    room.view.show_frame(room.engine.frame_of(moved))
    room.view.present()
    late = [pill.text for pill in overlays[-1].pills if pill.text.endswith(" ms behind")]
    assert len(late) == 1
    assert 200 <= int(late[0].split()[0]) < LIMIT_MS
    room.view._come_to_rest()
    assert not any("behind" in pill.text for pill in overlays[-1].pills)
    window, origin = input_window(room.view.surface)
    QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=origin + QPoint(240, 150))


def test_hiding_or_minimising_withdraws_the_request(room: Room) -> None:
    room.open()
    room.window.showMinimized()
    room.qtbot.waitUntil(lambda: room.engine.last_view() is None, timeout=LIMIT_MS)
    asked = len(room.engine.views)
    room.window.showNormal()
    room.qtbot.waitUntil(lambda: room.engine.last_view() is not None, timeout=LIMIT_MS)
    room.qtbot.waitUntil(room.view.surface.is_exposed, timeout=LIMIT_MS)
    room.wait_for_current_frame()
    assert len(room.engine.views) > asked
    room.view.hide()
    assert room.engine.last_view() is None
    room.view.show()
    room.qtbot.waitUntil(lambda: room.engine.last_view() is not None, timeout=LIMIT_MS)


def test_a_resize_asks_for_the_new_size(room: Room) -> None:
    bare(room.view)
    room.open()
    for width, height in ((1101, 703), (903, 641), (1280, 800)):
        room.window.resize(width, height)

        def fits() -> bool:
            view = room.engine.last_view()
            frame = room.view.frame
            size = room.view.surface.pixel_size()
            return (
                view is not None
                and frame is not None
                and (view.camera.width, view.camera.height) == size
                and frame.pixels.shape[:2] == size[::-1]
            )

        room.qtbot.waitUntil(fits, timeout=LIMIT_MS)
        frame = room.view.frame
        assert frame is not None
        pixels = frame.pixels[..., :3]
        room.qtbot.waitUntil(
            lambda p=pixels: bool(
                surface_pixels(room.view.surface).shape == p.shape
                and (surface_pixels(room.view.surface) == p).all()
            ),
            timeout=LIMIT_MS,
        )


def test_resizes_and_full_screens_while_frames_stream(room: Room) -> None:
    room.open()
    for turn in range(20):
        if turn % 5 == 4:
            room.window.showFullScreen() if turn % 10 == 4 else room.window.showNormal()
        else:
            room.window.resize(900 + 7 * (turn % 9), 640 + 5 * (turn % 7))
        room.engine.step += 1
        view = room.engine.last_view()
        if view is not None:
            room.engine.show(room.engine.frame_of(view))
        QApplication.processEvents()
    room.window.showNormal()
    room.wait_for_current_frame()


def test_the_wheel_zooms_and_home_comes_back(room: Room) -> None:
    room.open()
    before = newest(room).camera
    window, origin = input_window(room.view.surface)
    place = origin + QPoint(200, 150)
    QTest.wheelEvent(window, place, QPoint(0, 240))
    assert np.linalg.norm(newest(room).camera.center) < np.linalg.norm(before.center) * 0.9
    focus_view(room)
    press_keys(room, Qt.Key.Key_H)
    np.testing.assert_allclose(newest(room).camera.world_to_camera, before.world_to_camera)


def test_a_double_click_makes_the_point_under_it_the_pivot(room: Room) -> None:
    room.open()
    camera = newest(room).camera
    scene = room.window.scene
    assert scene is not None
    assert room.view.navigation.controls is not None
    pixels, depths = camera.project(scene.points.astype(np.float64))
    target = pixels[int(np.argmin(depths))]
    ratio = room.view.surface.widget.devicePixelRatioF()
    window, origin = input_window(room.view.surface)
    place = origin + QPoint(*(int(value / ratio) for value in target))
    QTest.mouseDClick(window, Qt.MouseButton.LeftButton, pos=place)
    pivot = room.view.navigation.controls.pivot
    turned = newest(room).camera
    middle, _ = turned.project(pivot[None])
    np.testing.assert_allclose(middle, [[turned.cx, turned.cy]], atol=1e-6)
    was_at, _ = camera.project(pivot[None])
    np.testing.assert_allclose(was_at[0], target, atol=1.5)  # whole logical pixels were clicked


def test_keys_fly_while_the_view_has_the_focus(room: Room) -> None:
    room.open()
    focus_view(room)
    before = newest(room).camera

    def flown() -> bool:
        return float(np.linalg.norm(newest(room).camera.center - before.center)) > 0.05

    press_keys(room, Qt.Key.Key_W, flown)
    step = newest(room).camera.center - before.center
    assert step @ before.forward > 0.99 * np.linalg.norm(step)
    room.qtbot.waitUntil(lambda: not newest(room).moving, timeout=LIMIT_MS)


def test_single_keys_do_nothing_while_typing(room: Room) -> None:
    room.open()
    field = room.window.settings_panel.list.search
    field.setFocus()
    room.qtbot.waitUntil(field.hasFocus, timeout=LIMIT_MS)
    asked, commands = len(room.engine.views), len(room.engine.commands)
    handle = room.window.windowHandle()
    for key in (Qt.Key.Key_W, Qt.Key.Key_H, Qt.Key.Key_Space, Qt.Key.Key_BracketRight):
        QTest.keyClick(handle, key)
    assert field.text() == "wh ]"
    assert len(room.engine.views) == asked
    assert len(room.engine.commands) == commands


def test_before_the_first_frame_the_sparse_points_are_shown(
    qtbot: QtBot, qapp: QApplication, kind: str
) -> None:
    room = make_room(qtbot, qapp, kind, ScriptedEngine(answers_views=False))
    bare(room.view)
    room.open()
    scene = room.window.scene
    assert scene is not None

    def points_shown() -> bool:
        seen = surface_pixels(room.view.surface)
        pixels, depths = newest(room).camera.project(scene.points.astype(np.float64))
        nearest = int(np.argmin(depths))  # nothing can cover it
        x, y = np.floor(pixels[nearest]).astype(int)
        return bool((seen[y, x] == scene.point_colors[nearest]).all())

    qtbot.waitUntil(points_shown, timeout=LIMIT_MS)
    room.close()
    room.window.deleteLater()


def test_frames_of_a_run_that_is_gone_are_dropped(room: Room) -> None:
    room.open()
    old = room.engine.frame_of(newest(room), number=99)
    room.open("another")
    assert old.run_id < room.session.run_id
    arrived = []
    room.session.event_arrived.connect(arrived.append)
    room.engine.show(old)
    room.engine.enter(room.engine.state)
    room.qtbot.waitUntil(lambda: bool(arrived), timeout=LIMIT_MS)
    assert room.view.frame is not None
    assert room.view.frame.run_id == room.session.run_id


def test_a_coarse_frame_is_laid_on_the_whole_view(room: Room) -> None:
    bare(room.view)
    room.open()
    room.engine.answers_views = False
    frame = room.engine.frame_of(newest(room), scale=0.25, number=33)
    object.__setattr__(frame, "pixels", np.full_like(frame.pixels, 33))
    room.engine.step = 1
    object.__setattr__(frame, "step", 1)
    room.engine.show(frame)
    room.qtbot.waitUntil(
        lambda: bool((surface_pixels(room.view.surface) == 33).all()), timeout=LIMIT_MS
    )


def test_a_card_has_its_number(kind: str) -> None:
    assert int(picture_card(3, 2, 300)[1, 2, 2]) == 300 % 256
