"""Searching the settings, showing only changes, and presets."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.preset_menu import PresetMenu
from engine.messages import SetSetting
from engine.presets import preset_description
from engine.settings import Settings, all_settings
from tests.app.panels.desk import Desk
from tests.settling import LIMIT_MS


def test_search_shows_matching_rows_only_and_opens_their_groups(desk: Desk) -> None:
    desk.panel.list.set_closed_groups(["loss"])
    desk.panel.list.search.setText("ssim")
    shown = {info.name for info in all_settings() if desk.row(info.name).isVisible()}
    assert "ssim_weight" in shown
    assert "scale_lr" not in shown
    desk.panel.list.search.setText("")
    assert desk.row("scale_lr").isVisible()
    assert not desk.row("ssim_weight").isVisible()  # its group is closed again


def test_a_search_without_result_says_so(desk: Desk) -> None:
    desk.panel.list.search.setText("zebra")
    assert not any(desk.row(info.name).isVisible() for info in all_settings())
    assert "zebra" in desk.panel.list.nothing.text()
    assert desk.panel.list.nothing.isVisible()


def test_the_changed_filter_shows_what_differs_from_the_preset(desk: Desk) -> None:
    desk.type("opacity_lr", "0.05")
    desk.panel.list.only_changed.setChecked(True)
    shown = [info.name for info in all_settings() if desk.row(info.name).isVisible()]
    assert shown == ["opacity_lr"]


def test_a_preset_is_saved_as_differences_and_loads_into_a_run(desk: Desk, tmp_path: Path) -> None:
    menu = desk.panel.findChild(PresetMenu)
    assert menu is not None
    desk.type("opacity_lr", "0.05")
    file = tmp_path / "bright.toml"
    menu.save(file)
    assert file.read_text(encoding="utf-8").strip() == "opacity_lr = 0.05"
    assert desk.panel.summary == "bright"
    menu.load("classic")
    assert desk.panel.summary == "classic"
    assert desk.panel.settings() == Settings()
    desk.begin_run()
    menu.load(file)
    assert [(c.name, c.value) for c in desk.posted if isinstance(c, SetSetting)] == [
        ("opacity_lr", 0.05)
    ]
    desk.apply(3)
    desk.panel.undo()
    assert desk.panel.settings()["opacity_lr"] == 0.025


def test_the_menu_ticks_the_preset_in_force_and_says_what_each_is_for(desk: Desk) -> None:
    menu = desk.panel.presets

    def ticked() -> list[str]:
        return [name for name, action in menu.preset_actions.items() if action.isChecked()]

    assert ticked() == ["classic"]
    menu.preset_actions["cpu-fast"].trigger()
    assert ticked() == ["cpu-fast"]
    menu.preset_actions["cpu-fast"].trigger()  # a second time takes no tick away
    assert ticked() == ["cpu-fast"]
    assert "opened next" in desk.panel.preset_reason
    for name, action in menu.preset_actions.items():
        assert action.toolTip() == preset_description(name)
        assert action.toolTip().endswith(".")


def test_a_broken_preset_is_told_and_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    menu = desk.panel.findChild(PresetMenu)
    assert menu is not None
    file = tmp_path / "broken.toml"
    file.write_text("opacity_rl = 0.05", encoding="utf-8")
    menu.load(file)
    assert "opacity_rl" in desk.panel.message.text()
    assert desk.panel.message.isVisible()
    assert desk.panel.settings() == Settings()


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.panel.presets.load("demo"),
        lambda desk: desk.panel.row("opacity_lr").edited.emit("opacity_lr", 0.05, 9),
        lambda desk: desk.panel.presets.reset_action.trigger(),
        lambda desk: desk.panel.row("scale_lr").reset_asked.emit("scale_lr"),
    ],
    ids=["preset", "value", "all back", "one back"],
)
def test_undo_in_the_search_takes_the_newest_change_back_and_before_it_the_typing(
    desk: Desk, qtbot: QtBot, change: Callable[[Desk], None]
) -> None:
    shortcut = QShortcut(QKeySequence("Ctrl+Z"), desk.panel)
    shortcut.activated.connect(desk.panel.undo)
    desk.type("scale_lr", "0.001")
    before = desk.panel.settings()
    search = desk.panel.list.search
    desk.panel.activateWindow()
    search.setFocus()
    qtbot.waitUntil(search.hasFocus, timeout=LIMIT_MS)
    QTest.keyClicks(search, "rate")
    change(desk)
    assert desk.panel.settings() != before
    QTest.keyClick(search, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert (desk.panel.settings(), search.text()) == (before, "rate")
    QTest.keyClicks(search, "s")
    QTest.keyClick(search, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert (desk.panel.settings(), search.text()) == (before, "")  # Qt takes all typing as one
