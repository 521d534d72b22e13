"""The app's parts are tested without a screen where no display has been started."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.hookimpl(tryfirst=True)  # a worker of xdist has a loop of its own, and runs it first
def pytest_runtestloop(session: pytest.Session) -> None:
    """Take Qt's off-screen platform, unless the window tests have begun a display."""
    if not session.config.option.collectonly and "DISPLAY" not in os.environ:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The off-screen platform warns of each window that it can give no size hints."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.qt_log_ignore("propagateSizeHints"))
