"""Panels are tested without a screen where no display has been started."""

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.panels.settings_panel import SettingsPanel
from tests.app.panels.desk import Desk
from tests.leak_checks import no_timer_is_left, no_window_is_left
from tests.settling import show

__all__ = ["no_timer_is_left", "no_window_is_left"]

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


@pytest.fixture(autouse=True)
def own_preferences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's preferences."""
    monkeypatch.setenv("SPLATSCOPE_CONFIG_DIR", str(tmp_path / "config"))


@pytest.fixture
def desk(qtbot: QtBot) -> Desk:
    """A shown settings panel with all groups open."""
    panel = SettingsPanel()
    qtbot.addWidget(panel)
    panel.resize(280, 700)
    panel.list.set_closed_groups([])
    show(qtbot, panel)
    return Desk(panel)
