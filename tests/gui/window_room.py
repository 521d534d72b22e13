"""What the window tests share: a window on a scripted engine, the mouse, the screen's pixels."""

import dataclasses
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QMouseEvent, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.preferences import Preferences
from app.theme import Theme
from app.training_session import TrainingSession
from app.viewport.gl_viewport import GlSurface
from app.viewport.photo_pictures import Decoder
from app.viewport.surface import Surface
from app.viewport.viewport import Viewport, make_viewport
from engine.messages import Event, PhotoSummary, State, View
from tests.gui.scripted_engine import ScriptedEngine, picture_card
from tests.settling import LIMIT_MS, settle


def decode_card(photo: PhotoSummary) -> np.ndarray:
    """A test card in place of a photo's file; its blue channel is 200."""
    return picture_card(photo.camera.width, photo.camera.height, 200)


@dataclasses.dataclass
class Room:
    """A window, and what stands behind it."""

    window: MainWindow
    engine: ScriptedEngine
    session: TrainingSession
    qtbot: QtBot

    @property
    def view(self) -> Viewport:
        return self.window.viewport

    def tidy(self) -> None:
        """Make the window as good as new, the open scene excepted."""
        self.engine.answers_views = True
        self.window.showNormal()
        self.window.resize(1280, 800)
        self.window.raise_()  # above the room of the other kind
        self.window.activateWindow()
        self.window.setFocus()
        self.qtbot.waitUntil(self.window.isActiveWindow, timeout=LIMIT_MS)
        self.view.set_flipped(False)
        for key in ("cameras", "pivot", "labels"):
            if not self.window.actions_table[key].isChecked():
                self.window.actions_table[key].trigger()
        for change in ("cameras", "pivot", "labels"):
            getattr(self.view, f"set_{change}_shown")(True)
        for card in list(self.window.error_cards.cards):
            card.dismiss_button.click()

    def open(self, name: str = "ring", state: State = State.TRAINING) -> None:
        """Open a scene and wait for its first frame."""
        self.window.commands.start_when_open = state is State.TRAINING
        run_id = self.session.run_id + 1
        self.window.commands.open_scene(Path("scenes") / name)
        self.qtbot.waitUntil(
            lambda: self.session.run_id == run_id and self.session.state is state, timeout=LIMIT_MS
        )
        settle()
        # the view takes the focus, and with it a ring over the picture, which pixel tests mind
        self.qtbot.waitUntil(lambda: self.view._focused, timeout=LIMIT_MS)
        self.window.setFocus()
        self.qtbot.waitUntil(lambda: not self.view._focused, timeout=LIMIT_MS)
        if self.engine.answers_views:
            self.wait_for_current_frame()

    def wait_for_current_frame(self) -> None:
        """Wait until the frame of the newest view is on the way to the screen."""
        view = self.view

        def current() -> bool:
            return (
                view.view is not None
                and view.frame is not None
                and view.frame.view_id == view.view.view_id
            )

        self.qtbot.waitUntil(current, timeout=LIMIT_MS)

    def close(self) -> None:
        """Close the window and join the engine."""
        self.window.close()
        self.qtbot.waitUntil(lambda: self.session.has_stopped, timeout=LIMIT_MS)
        assert self.session.close(LIMIT_MS / 1000)


def make_room(
    qtbot: QtBot,
    application: QApplication,
    kind: str = "painted",
    engine: ScriptedEngine | None = None,
    size: tuple[int, int] = (1280, 800),
    decode: Decoder = decode_card,
) -> Room:
    """A window that is shown and has the focus."""
    engine = engine or ScriptedEngine()
    session = TrainingSession(engine)
    theme = Theme(application)
    viewport = make_viewport(kind, decode)
    preferences = Preferences(geometry=(0, 0, *size))
    window = MainWindow(session, theme, viewport, preferences)
    session.start()
    window.appear()
    qtbot.waitUntil(window.isActiveWindow, timeout=LIMIT_MS)
    return Room(window, engine, session, qtbot)


def enter(room: Room, state: State) -> None:
    """Bring the engine into a state and wait until the window knows."""
    room.engine.enter(state)
    room.qtbot.waitUntil(lambda: room.session.state is state, timeout=LIMIT_MS)


def tell(room: Room, *events: Event) -> None:
    """Send events and wait until the window has taken them."""
    seen: list[object] = []
    room.session.event_arrived.connect(seen.append)
    room.engine.emit(*events)
    room.qtbot.waitUntil(lambda: events[-1] in seen, timeout=LIMIT_MS)
    room.session.event_arrived.disconnect(seen.append)


def bare(view: Viewport) -> None:
    """Take everything off the picture."""
    view.set_cameras_shown(False)
    view.set_pivot_shown(False)
    view.set_labels_shown(False)
    view.window().setFocus()


def newest(room: Room) -> View:
    view = room.engine.last_view()
    assert view is not None
    return view


def press_keys(room: Room, key: Qt.Key, hold_until: object = None) -> None:
    window = room.window.windowHandle()
    QTest.keyPress(window, key)
    if hold_until is not None:
        room.qtbot.waitUntil(hold_until, timeout=LIMIT_MS)
    QTest.keyRelease(window, key)


def focus_view(room: Room) -> None:
    room.view.take_focus()
    room.qtbot.waitUntil(lambda: room.view._focused, timeout=LIMIT_MS)


def screen_pixels() -> np.ndarray:
    """What the X screen shows, RGB (height, width, 3), in device pixels."""
    QApplication.processEvents()
    image = QGuiApplication.primaryScreen().grabWindow(0).toImage()
    image = image.convertToFormat(QImage.Format.Format_RGBA8888)
    rows = np.frombuffer(image.constBits(), dtype=np.uint8)
    return rows.reshape(image.height(), image.width(), 4)[..., :3].copy()


def widget_place(widget: QWidget) -> tuple[int, int]:
    """Where a widget's first whole device pixel lies on the screen."""
    ratio = widget.devicePixelRatioF()
    place = widget.mapToGlobal(QPointF(0, 0))
    return round(place.x() * ratio), round(place.y() * ratio)


def surface_pixels(surface: Surface) -> np.ndarray:
    """What the screen shows where a surface lies, RGB (height, width, 3)."""
    x, y = widget_place(surface.widget)
    width, height = surface.pixel_size()
    return screen_pixels()[y : y + height, x : x + width]


def input_window(surface: Surface) -> tuple[QWindow, QPoint]:
    """The window that gets the mouse events of a surface, and the surface's place in it."""
    if isinstance(surface, GlSurface):
        source = surface.sources[0]
        assert isinstance(source, QWindow)
        return source, QPoint(0, 0)
    top = surface.widget.window()
    handle = top.windowHandle()
    assert handle is not None
    return handle, surface.widget.mapTo(top, QPoint(0, 0))


def drag(
    surface: Surface,
    start: tuple[int, int],
    steps: list[tuple[int, int]],
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    release: bool = True,
) -> None:
    """Press at `start` (logical pixels of the surface), move by each step, let go."""
    window, origin = input_window(surface)
    place = origin + QPoint(*start)
    QTest.mousePress(window, button, modifiers, place)
    for step in steps:
        place += QPoint(*step)
        move_held(window, place, button, modifiers)
    if release:
        QTest.mouseRelease(window, button, modifiers, place)


def move_held(
    window: QWindow,
    place: QPoint,
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    """Move the mouse with a button held, as QTest cannot."""
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(place),
        QPointF(window.mapToGlobal(place)),
        Qt.MouseButton.NoButton,
        button,
        modifiers,
    )
    QGuiApplication.sendEvent(window, event)
