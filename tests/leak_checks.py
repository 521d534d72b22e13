"""Fixtures that fail a test which leaves windows or running timers behind.

Import them in a conftest of tests that open windows; they act on every test of that folder:

    from tests.leak_checks import no_timer_is_left, no_window_is_left
"""

from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget


def _finish_deletions() -> None:
    """Let what was deleted later be deleted now."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QCoreApplication.processEvents()


def _windows() -> list[QWidget]:
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        return []
    return [window for window in application.topLevelWidgets() if shiboken6.isValid(window)]


def _running_timers(roots: list[QObject]) -> list[QTimer]:
    found = [timer for root in roots for timer in root.findChildren(QTimer)]
    return [timer for timer in found if shiboken6.isValid(timer) and timer.isActive()]


@pytest.fixture(autouse=True)
def no_window_is_left(qapp: QApplication) -> Iterator[None]:
    """A test ends with the top-level windows it began with, hidden ones included."""
    before = {id(window) for window in _windows()}
    yield
    _finish_deletions()
    left = [window for window in _windows() if id(window) not in before and window.isVisible()]
    described = [f"{type(window).__name__} {window.windowTitle()!r}" for window in left]
    assert not left, f"windows left open by the test: {described}; close them or give them to qtbot"


@pytest.fixture(autouse=True)
def no_timer_is_left(qapp: QApplication) -> Iterator[None]:
    """No timer of a window that is gone, and none of the application's that the test started."""
    before = {id(timer) for timer in _running_timers([qapp])}
    yield
    _finish_deletions()
    left = [timer for timer in _running_timers([qapp]) if id(timer) not in before]
    described = [f"every {timer.interval()} ms: {timer.objectName()!r}" for timer in left]
    assert not left, f"timers left running by the test: {described}"
