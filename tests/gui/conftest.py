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

from tests.gui.private_display import PrivateDisplay
from tests.gui.window_room import Room, make_room

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


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A test ends with the Python threads it began with."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(5)
    still = [thread.name for thread in left if thread.is_alive()]
    assert not still, f"threads left running by the test: {still}"


@pytest.fixture(autouse=True)
def own_preferences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's files."""
    monkeypatch.setenv("SPLATSCOPE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SPLATSCOPE_LOG_DIR", str(tmp_path / "logs"))


@pytest.fixture(autouse=True)
def no_window_is_left(qapp: QApplication) -> Iterator[None]:
    """A test ends without windows, and without running timers of its own."""
    before = set(QApplication.topLevelWidgets())
    yield
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if left := set(QApplication.topLevelWidgets()) - before:
        gc.collect()  # slow, and needed only where a cycle holds a window
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        left = set(QApplication.topLevelWidgets()) - before
    names = [f"{type(widget).__name__} {widget.windowTitle()!r}" for widget in left]
    for widget in left:
        widget.deleteLater()
    assert not names, f"windows left by the test: {names}"


@pytest.fixture(params=["painted", "gl"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each of the two viewports."""
    return str(request.param)


@pytest.fixture
def room(qtbot: QtBot, qapp: QApplication, kind: str) -> Iterator[Room]:
    """A window of each kind on a scripted engine; closed afterwards."""
    room = make_room(qtbot, qapp, kind)
    yield room
    put_away(room)


@pytest.fixture
def painted_room(qtbot: QtBot, qapp: QApplication) -> Iterator[Room]:
    """A window with the painted view, for what does not depend on the kind."""
    room = make_room(qtbot, qapp)
    yield room
    put_away(room)


def put_away(room: Room) -> None:
    """Close what a test has left open."""
    if not room.session.has_stopped:
        room.engine.stops_by_itself = True
        room.close()
    room.window.deleteLater()
