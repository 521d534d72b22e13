"""The view looks through the photos' cameras, and at the photos themselves."""

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.viewport.overlays import Overlay
from app.viewport.surface import Picture
from engine.messages import PhotoSummary
from tests.gui.scripted_engine import ring_of_cameras
from tests.gui.window_room import (
    Room,
    bare,
    decode_card,
    focus_view,
    make_room,
    newest,
    press_keys,
    surface_pixels,
)
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


def test_the_first_view_is_a_held_out_photos_camera(room: Room) -> None:
    room.open()
    first = ring_of_cameras(8)[0]
    np.testing.assert_allclose(newest(room).camera.world_to_camera, first.world_to_camera)
    assert room.view.photo == 0
    assert room.window.photos_panel.list.currentIndex().row() == 0


def test_brackets_go_through_the_photos_and_the_list_follows(room: Room) -> None:
    room.open()
    focus_view(room)
    cameras = ring_of_cameras(8)
    press_keys(room, Qt.Key.Key_BracketRight)
    assert room.view.photo == 1
    np.testing.assert_allclose(newest(room).camera.world_to_camera, cameras[1].world_to_camera)
    press_keys(room, Qt.Key.Key_Left)
    press_keys(room, Qt.Key.Key_BracketLeft)
    assert room.view.photo == 7
    assert room.window.photos_panel.list.currentIndex().row() == 7
    room.window.photos_panel.photo_chosen.emit(3)
    np.testing.assert_allclose(newest(room).camera.world_to_camera, cameras[3].world_to_camera)


def test_holding_f_shows_the_photo_in_place_of_the_render(room: Room) -> None:
    bare(room.view)
    room.open()
    focus_view(room)
    window = room.window.windowHandle()
    QTest.keyPress(window, Qt.Key.Key_F)

    def photo_shown() -> bool:
        seen = surface_pixels(room.view.surface)
        height, width = seen.shape[:2]
        return int(seen[height // 2, width // 2, 2]) == 200

    room.qtbot.waitUntil(photo_shown, timeout=LIMIT_MS)
    QTest.keyRelease(window, Qt.Key.Key_F)
    room.qtbot.waitUntil(lambda: not photo_shown(), timeout=LIMIT_MS)


def test_a_photo_that_is_still_being_decoded_is_told_in_the_view_at_once(
    qtbot: QtBot, qapp: QApplication, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def decode(photo: PhotoSummary) -> np.ndarray:
        assert let_go.wait(LIMIT_MS / 1000)
        return decode_card(photo)

    room = make_room(qtbot, qapp, kind, decode=decode)
    try:
        room.open()
        words = Words(room, monkeypatch)
        room.view.set_flipped(True)
        assert words.last[0] == "loading the photo …"  # without a turn of the event loop
        let_go.set()
        qtbot.waitUntil(lambda: words.last[0] == "photo", timeout=LIMIT_MS)
    finally:
        let_go.set()
        room.close()
        room.window.deleteLater()


def test_a_photo_that_cannot_be_decoded_leaves_the_render_and_is_tried_at_the_next_flip(
    qtbot: QtBot, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def decode(photo: PhotoSummary) -> np.ndarray:
        tried.append(photo.name)
        raise OSError("it is gone")

    room = make_room(qtbot, qapp, decode=decode)
    told: list[str] = []
    room.view.noticed.connect(told.append)
    room.open()
    words = Words(room, monkeypatch)
    for _ in range(2):
        told.clear()
        room.view.set_flipped(True)
        qtbot.waitUntil(lambda: len(told) == 1, timeout=LIMIT_MS)
        room.view.present()  # as a new frame does: the photo is not decoded for it again
        assert words.last[0].startswith("step")
        room.view.set_flipped(False)
    assert "it is gone" in told[0]
    assert len(tried) == 2
    room.close()
    room.window.deleteLater()


class Words:
    """What was written over the picture last."""

    def __init__(self, room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
        self._present = room.view.surface.present
        self.last: list[str] = []
        monkeypatch.setattr(room.view.surface, "present", self._take)

    def _take(self, picture: Picture | None, overlay: Overlay | None) -> None:
        self.last = [] if overlay is None else [pill.text for pill in overlay.pills]
        self._present(picture, overlay)


def test_the_photo_lies_exactly_where_the_render_has_it(room: Room) -> None:
    bare(room.view)
    room.open()
    focus_view(room)
    size = room.view.surface.pixel_size()
    scene = room.window.scene
    assert scene is not None
    view_camera = newest(room).camera
    photo = scene.photos[0].camera
    window = room.window.windowHandle()
    QTest.keyPress(window, Qt.Key.Key_F)
    points = scene.points[:20].astype(np.float64)
    in_photo, _ = photo.project(points)
    in_view, _ = view_camera.project(points)
    scale = min(size[0] / photo.width, size[1] / photo.height)

    def registered() -> bool:
        seen = surface_pixels(room.view.surface).astype(int)
        x, y = np.floor(in_view).astype(int).T
        if not (seen[y, x, 2] == 200).all():
            return False
        # the card's red and green are the photo's column and row; scaling blurs by a photo pixel
        return bool(
            (np.abs(seen[y, x, 0] - np.floor(in_photo[:, 0]) % 256) <= 1.5).all()
            and (np.abs(seen[y, x, 1] - np.floor(in_photo[:, 1])) <= 1.5).all()
        )

    inside = np.abs(in_photo[:, 0] - 256) > 3  # where the card's column wraps round
    points, in_photo, in_view = points[inside], in_photo[inside], in_view[inside]
    assert scale > 1
    room.qtbot.waitUntil(registered, timeout=LIMIT_MS)
    QTest.keyRelease(window, Qt.Key.Key_F)


def test_photos_are_decoded_outside_the_windows_thread(
    qtbot: QtBot, qapp: QApplication, kind: str
) -> None:
    threads: list[str] = []

    def decode(photo: PhotoSummary) -> np.ndarray:
        threads.append(threading.current_thread().name)
        return decode_card(photo)

    room = make_room(qtbot, qapp, kind, decode=decode)
    room.open()
    room.view.set_flipped(True)
    qtbot.waitUntil(lambda: bool(threads), timeout=LIMIT_MS)
    assert all(name.startswith("photo-decoder") for name in threads)
    room.close()
    room.window.deleteLater()


def test_the_picture_is_saved_with_its_own_pixels(room: Room, tmp_path: Path) -> None:
    room.open()
    room.window.run_folder = tmp_path
    room.window.actions_table["screenshot"].trigger()
    files = list((tmp_path / "views").glob("*.png"))
    assert len(files) == 1
    frame = room.view.frame
    assert frame is not None
    saved = np.asarray(Image.open(files[0]).convert("RGB"))
    np.testing.assert_array_equal(saved, frame.pixels[..., :3])
    room.window.actions_table["copy"].trigger()
    copied = QApplication.clipboard().image()
    assert (copied.width(), copied.height()) == (frame.pixels.shape[1], frame.pixels.shape[0])
