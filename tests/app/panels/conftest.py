"""Preferences of their own for tests of panels, and a settings panel."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.panels.settings_panel import SettingsPanel
from tests.app.panels.desk import Desk
from tests.leak_checks import no_timer_is_left, no_window_is_left
from tests.settling import show

__all__ = ["no_timer_is_left", "no_window_is_left"]


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
