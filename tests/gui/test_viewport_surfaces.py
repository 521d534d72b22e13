"""Both surfaces show pictures pixel by pixel; judged from the X screen."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
import shiboken6
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.viewport.gl_viewport import GlSurface
from app.viewport.overlays import Overlay, Pill
from app.viewport.painted_viewport import PaintedSurface
from app.viewport.surface import Picture, Surface
from tests.gui.scripted_engine import picture_card, ring_of_cameras
from tests.gui.window_room import surface_pixels
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


class Frame(QWidget):
    """A plain window with one surface in it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.resize(420, 300)
        self.move(40, 30)
        surface = GlSurface(self) if kind == "gl" else PaintedSurface(self)
        surface.move(7, 11)
        self.surface: Surface = surface

    def lay(self, width: int, height: int) -> None:
        self.surface.widget.setGeometry(7, 11, width, height)


@pytest.fixture
def frame(qtbot: QtBot, kind: str) -> Iterator[Frame]:
    frame = Frame(kind)
    qtbot.addWidget(frame)
    frame.lay(317, 61)
    frame.show()
    qtbot.waitUntil(frame.surface.is_exposed, timeout=LIMIT_MS)
    yield frame
    frame.surface.release()


def shows(frame: Frame, expected: np.ndarray) -> bool:
    seen = surface_pixels(frame.surface)
    return seen.shape == expected.shape and bool((seen == expected).all())


def test_a_view_that_goes_without_being_released_leaves_no_warning(
    qtbot: QtBot, qtlog: object
) -> None:
    frame = Frame("gl")
    frame.lay(64, 48)
    frame.show()
    qtbot.waitUntil(frame.surface.is_exposed, timeout=LIMIT_MS)
    card = picture_card(64, 48, 7)
    frame.surface.present(Picture(card, (0, 0, 64, 48)), None)
    qtbot.waitUntil(lambda: shows(frame, card[..., :3]), timeout=LIMIT_MS)
    shiboken6.delete(frame)
    del frame
    gc.collect()
    assert [record.message for record in qtlog.records] == []  # type: ignore[attr-defined]


SIZES = [(width, 9) for width in range(1, 18)] + [(317, 61), (316, 1), (1, 200), (400, 283)]


def test_every_pixel_of_odd_sizes_is_shown_as_it_is(qtbot: QtBot, frame: Frame, kind: str) -> None:
    # Qt takes a container whose right or bottom edge is at 0 for a hidden one
    sizes = [size for size in SIZES if kind == "painted" or min(size) > 1]
    for number, (width, height) in enumerate(sizes):
        frame.lay(width, height)
        card = picture_card(width, height, number)
        frame.surface.present(Picture(card, (0, 0, width, height)), None)
        qtbot.waitUntil(lambda c=card: shows(frame, c[..., :3]), timeout=LIMIT_MS)


def test_a_picture_in_the_middle_leaves_the_stage_around_it(qtbot: QtBot, frame: Frame) -> None:
    frame.surface.set_stage_color("#102030")
    card = picture_card(101, 33, 5)
    frame.surface.present(Picture(card, (108, 14, 101, 33)), None)
    expected = np.empty((61, 317, 3), dtype=np.uint8)
    expected[:] = (0x10, 0x20, 0x30)
    expected[14:47, 108:209] = card[..., :3]
    qtbot.waitUntil(lambda: shows(frame, expected), timeout=LIMIT_MS)


def test_a_coarse_picture_fills_its_place(qtbot: QtBot, frame: Frame) -> None:
    quarter = np.zeros((15, 79, 4), dtype=np.uint8)
    quarter[:, :40] = (200, 40, 40, 255)
    quarter[:, 40:] = (40, 40, 200, 255)
    frame.surface.present(Picture(quarter, (0, 0, 317, 61)), None)

    def filled() -> bool:
        seen = surface_pixels(frame.surface).astype(int)
        left, right = seen[:, :150], seen[:, 170:]
        return bool(
            (np.abs(left - (200, 40, 40)) <= 1).all()  # smooth scaling may round by one
            and (np.abs(right - (40, 40, 200)) <= 1).all()
        )

    qtbot.waitUntil(filled, timeout=LIMIT_MS)


def test_pictures_of_changing_size_follow_each_other(qtbot: QtBot, frame: Frame) -> None:
    for number, (width, height) in enumerate([(317, 61), (80, 16), (317, 61), (5, 3), (317, 61)]):
        card = picture_card(width, height, 40 + number)
        frame.surface.present(Picture(card, (0, 0, 317, 61)), None)
    last = picture_card(317, 61, 44)
    qtbot.waitUntil(lambda: shows(frame, last[..., :3]), timeout=LIMIT_MS)


def test_without_a_picture_the_stage_is_shown(qtbot: QtBot, frame: Frame) -> None:
    frame.surface.set_stage_color("#314159")
    frame.surface.present(None, None)
    expected = np.empty((61, 317, 3), dtype=np.uint8)
    expected[:] = (0x31, 0x41, 0x59)
    qtbot.waitUntil(lambda: shows(frame, expected), timeout=LIMIT_MS)


def test_a_size_of_nothing_is_borne(qtbot: QtBot, frame: Frame) -> None:
    frame.surface.widget.hide()
    assert not frame.surface.is_exposed()
    frame.surface.present(Picture(picture_card(3, 3, 1), (0, 0, 3, 3)), None)
    frame.surface.widget.show()
    qtbot.waitUntil(frame.surface.is_exposed, timeout=LIMIT_MS)
    frame.lay(3, 3)
    expected = picture_card(3, 3, 1)[..., :3]
    qtbot.waitUntil(lambda: shows(frame, expected), timeout=LIMIT_MS)


class Square:
    """The simplest overlay: a half-transparent square."""

    def paint(self, painter: QPainter, width: float, height: float, ratio: float) -> None:
        painter.fillRect(10, 5, 20, 20, QColor(255, 255, 255, 128))


def test_an_overlay_lies_over_the_picture(qtbot: QtBot, frame: Frame) -> None:
    plain = np.full((61, 317, 4), 100, dtype=np.uint8)
    frame.surface.present(Picture(plain, (0, 0, 317, 61)), Square())

    def covered() -> bool:
        seen = surface_pixels(frame.surface)
        inside, outside = seen[5:25, 10:30].astype(int), seen[30:, :]
        # 100 + (255 - 100) * 128 / 255 = 177.8; blending may round either way
        return bool((np.abs(inside - 178) <= 1).all() and (outside == 100).all())

    qtbot.waitUntil(covered, timeout=LIMIT_MS)


def test_both_surfaces_paint_the_same_overlay(qtbot: QtBot) -> None:
    camera = ring_of_cameras(1, 317, 61)[0]
    overlay = Overlay(
        camera=camera,
        pivot=np.zeros(3),
        pills=(Pill("step 4,210"), Pill("held-out 27.84 dB", "good")),
        font=QFont("DejaVu Sans", 9),
    )
    seen = []
    plain = np.full((61, 317, 4), 90, dtype=np.uint8)
    for kind in ("painted", "gl"):
        frame = Frame(kind)
        qtbot.addWidget(frame)
        frame.lay(317, 61)
        frame.show()
        qtbot.waitUntil(frame.surface.is_exposed, timeout=LIMIT_MS)
        frame.surface.present(Picture(plain, (0, 0, 317, 61)), overlay)

        def painted(frame: Frame = frame) -> bool:
            found = surface_pixels(frame.surface)
            return bool((found[..., 0] != 90).sum() > 1000)

        qtbot.waitUntil(painted, timeout=LIMIT_MS)
        seen.append(surface_pixels(frame.surface).astype(int))
        frame.surface.release()
        frame.hide()
    # one engine paints both; only the blending of half-covered pixels may round differently,
    # and glyphs are laid on an opaque ground in one case and on none in the other
    difference = np.abs(seen[0] - seen[1]).max(axis=2)
    assert np.quantile(difference, 0.97) <= 3
    assert difference.max() < 80
