"""Real windows on a private screen; one display serves the whole test process."""

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.gui.journey import Journey, make_journey
from tests.gui.private_display import PrivateDisplay
from tests.gui.window_room import Room, make_room
from tests.settling import LIMIT_MS

HERE = Path(__file__).resolve().parent
DISPLAY = pytest.StashKey[PrivateDisplay]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Start the screen before any test of the process makes a QApplication."""
    if session.config.option.collectonly:
        return
    if any(HERE in item.path.parents for item in session.items):
        display = PrivateDisplay()
        session.config.stash[DISPLAY] = display
        os.environ.pop("WAYLAND_DISPLAY", None)
        os.environ |= display.environment()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the screen after the QApplication, which pytest-qt lets go at the end."""
    display = config.stash.get(DISPLAY, None)
    if display is not None:
        display.close()


@pytest.fixture(scope="session")
def display(pytestconfig: pytest.Config) -> PrivateDisplay:
    """The screen; `display.environment()` is for subprocesses."""
    return pytestconfig.stash[DISPLAY]


@pytest.fixture(scope="session", autouse=True)
def own_preferences(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches the user's files."""
    folder = tmp_path_factory.mktemp("splatscope")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPLATSCOPE_CONFIG_DIR", str(folder / "config"))
        patch.setenv("SPLATSCOPE_LOG_DIR", str(folder / "logs"))
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        yield


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[None]:
    """A test ends with the threads and the windows it began with, but for a shared window's."""
    uses_shared = bool({"room", "painted_room", "journey"} & set(request.fixturenames))
    threads, windows = set(threading.enumerate()), set(QApplication.topLevelWidgets())
    yield
    if uses_shared:
        return
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if left := set(QApplication.topLevelWidgets()) - windows:
        gc.collect()  # slow, and needed only where a cycle holds a window
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        left = set(QApplication.topLevelWidgets()) - windows
    names = [f"{type(widget).__name__} {widget.windowTitle()!r}" for widget in left]
    for thread in set(threading.enumerate()) - threads:
        thread.join(LIMIT_MS / 1000)
    alive = [thread.name for thread in set(threading.enumerate()) - threads]
    assert (names, alive) == ([], []), "windows and threads left by the test"


@pytest.fixture(scope="module", autouse=True)
def the_look_comes_back(qapp: QApplication) -> Iterator[None]:
    """A window's style sheet, palette and font are of the application, and end with the file."""
    sheet, palette, font = qapp.styleSheet(), qapp.palette(), qapp.font()
    yield
    qapp.setStyleSheet(sheet)
    qapp.setPalette(palette)
    qapp.setFont(font)


class Rooms:
    """The windows that the tests of a file share: making one takes a second, opening a scene none.

    A test begins with whatever scene the last one left and opens its own.
    """

    def __init__(self, application: QApplication) -> None:
        self._application = application
        self._rooms: dict[str, Room] = {}

    def enter(self, kind: str, qtbot: QtBot) -> Room:
        """The room of a kind, tidy."""
        if kind not in self._rooms:
            self._rooms[kind] = make_room(qtbot, self._application, kind)
        room = self._rooms[kind]
        room.qtbot = qtbot
        room.tidy()
        return room

    def leave(self, kind: str) -> None:
        """Take down a room that a test has closed."""
        if self._rooms[kind].session.has_stopped:
            self._take_down(self._rooms.pop(kind))

    def close(self) -> None:
        """Close every room."""
        for room in self._rooms.values():
            room.engine.stops_by_itself = True
            room.window.close()
            room.engine.join(LIMIT_MS / 1000)
            room.session.take()
            self._take_down(room)
        self._rooms.clear()

    def _take_down(self, room: Room) -> None:
        assert room.session.close(LIMIT_MS / 1000)
        room.window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(scope="module")
def rooms(qapp: QApplication) -> Iterator[Rooms]:
    """The shared windows of a test file."""
    rooms = Rooms(qapp)
    yield rooms
    rooms.close()


@pytest.fixture(params=["painted", "gl"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each of the two viewports."""
    return str(request.param)


@pytest.fixture
def room(rooms: Rooms, qtbot: QtBot, kind: str) -> Iterator[Room]:
    """A window of each kind on a scripted engine."""
    yield rooms.enter(kind, qtbot)
    rooms.leave(kind)


@pytest.fixture
def painted_room(rooms: Rooms, qtbot: QtBot) -> Iterator[Room]:
    """A window with the painted view, for what does not depend on the kind."""
    yield rooms.enter("painted", qtbot)
    rooms.leave("painted")


@pytest.fixture(scope="module", params=["painted", "gl"])
def shared_journey(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[Journey]:
    """One window with the real engine for all tests of a file and of one kind of view."""
    journey = make_journey(qapp, request.param)
    yield journey
    journey.close()


@pytest.fixture
def journey(shared_journey: Journey) -> Journey:
    """The window with the real engine, in front and tidy."""
    shared_journey.begin()
    return shared_journey
