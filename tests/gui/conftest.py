"""Real windows on a private screen; one display serves the whole test process."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gui.private_display import PrivateDisplay

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
