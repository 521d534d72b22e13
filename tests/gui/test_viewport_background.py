"""Behind the splats, and behind photos with transparency, lies what the run has there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.viewport.photo_pictures import decode_photo, on_background
from engine.cameras import Camera
from engine.dataset.images import PhotoPixels, load_photo
from engine.dataset.scene import Photo
from engine.messages import PhotoSummary, RunStarted, SettingApplied
from engine.settings import Settings
from engine.training.photos import BLACK, WHITE, target_picture
from tests.gui.window_room import Room, make_room, newest, surface_pixels, tell
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


def started(room: Room, background: str) -> RunStarted:
    settings = Settings().updated({"background": background})
    return RunStarted(room.session.run_id, Path("runs/ring-1"), settings, 0, "CPU")


def applied(room: Room, old: str, new: str, *, held: bool = False) -> SettingApplied:
    return SettingApplied(room.session.run_id, 1, "background", old, new, held)


def half_seen(photo: PhotoSummary) -> np.ndarray:
    """Red, but nothing in the left half."""
    pixels = np.zeros((photo.camera.height, photo.camera.width, 4), dtype=np.uint8)
    pixels[:, photo.camera.width // 2 :] = (255, 0, 0, 255)
    return pixels


def test_the_view_has_the_background_of_the_run_and_follows_its_changes(
    painted_room: Room,
) -> None:
    room = painted_room
    room.open()
    assert newest(room).background == BLACK
    tell(room, started(room, "white"))
    assert newest(room).background == WHITE
    known = newest(room).view_id
    tell(room, SettingApplied(room.session.run_id, 1, "opacity_lr", 0.025, 0.1))
    assert newest(room).view_id == known  # nothing to draw anew
    tell(room, applied(room, "white", "black", held=True))
    assert newest(room).background == WHITE
    tell(room, applied(room, "white", "random"))
    assert newest(room).background == BLACK  # as in evaluation
    tell(room, applied(room, "random", "white"))
    assert newest(room).background == WHITE
    room.open()  # a run of its own, on black
    assert newest(room).background == BLACK


def test_a_photo_with_transparency_lies_on_the_background_of_the_run(
    qtbot: QtBot, qapp: QApplication, kind: str
) -> None:
    room = make_room(qtbot, qapp, kind, decode=half_seen)

    def shows(color: tuple[int, int, int]) -> Callable[[], bool]:
        """Whether the screen has red right of the middle, and the colour left and beside."""

        def seen() -> bool:
            pixels = surface_pixels(room.view.surface)
            middle, at = pixels[pixels.shape[0] // 2], pixels.shape[1] // 2
            beside = [tuple(middle[8]), tuple(middle[-8])]  # the photo is square, the view wide
            return (
                tuple(middle[at + 40]) == (255, 0, 0)
                and tuple(middle[at - 40]) == color
                and beside == [color, color]
            )

        return seen

    try:
        room.open()
        room.view.set_cameras_shown(False)
        room.view.set_flipped(True)
        qtbot.waitUntil(shows((0, 0, 0)), timeout=LIMIT_MS)
        tell(room, applied(room, "black", "white"))
        qtbot.waitUntil(shows((255, 255, 255)), timeout=LIMIT_MS)
        room.view.set_flipped(False)
        tell(room, started(room, "black"))
        room.view.set_flipped(True)
        qtbot.waitUntil(shows((0, 0, 0)), timeout=LIMIT_MS)
    finally:
        room.close()
        room.window.deleteLater()


class OnePhoto:
    """A source of photos that has one."""

    def __init__(self, pixels: PhotoPixels) -> None:
        self._pixels = pixels

    def rgb(self, index: int) -> np.ndarray:
        return self._pixels.rgb

    def alpha(self, index: int) -> np.ndarray | None:
        return self._pixels.alpha


def test_the_photo_in_the_view_is_the_one_that_training_compares_with(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    numbers = np.random.default_rng(0)
    Image.fromarray(numbers.integers(0, 256, (20, 30, 4), dtype=np.uint8), "RGBA").save(path)
    camera = Camera(np.eye(4), 50.0, 50.0, 15.0, 10.0, 30, 20)
    photo = Photo("a.png", path, camera, None, False, False)
    shown = decode_photo(PhotoSummary("a.png", path, camera, False, photo))
    for color in (BLACK, WHITE):
        source = OnePhoto(load_photo(photo))
        target = target_picture(source, 0, photo, torch.tensor(color)).numpy()
        laid = on_background(shown, color)
        assert (laid[..., 3] == 255).all()
        # to the nearest byte, and a little for float32 in another order
        np.testing.assert_allclose(laid[..., :3] / 255.0, target, atol=0.5 / 255 + 1e-6)
