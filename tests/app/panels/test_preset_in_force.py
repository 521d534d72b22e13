"""The settings panel says which preset is in force, and why."""

import pytest
from PySide6.QtWidgets import QToolButton

from engine.messages import SetSetting
from engine.presets import load_preset
from engine.setting_info import Value
from engine.settings import Settings
from tests.app.panels.desk import Desk

FAST = load_preset("cpu-fast")
WHY = "No GPU does the work."


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A panel that begins with the preset for a CPU."""
    desk.panel.set_start_values(FAST, "cpu-fast", FAST, WHY)
    return desk


def tip(desk: Desk) -> str:
    buttons = desk.panel.findChildren(QToolButton)
    return next(button.toolTip() for button in buttons if "Presets" in button.toolTip())


def test_the_preset_stands_there_with_its_reason(desk: Desk) -> None:
    assert desk.panel.summary == "cpu-fast"
    assert WHY in tip(desk)
    desk.begin_run()
    assert desk.panel.summary == "cpu-fast"
    assert WHY in tip(desk)


def test_a_preset_chosen_by_hand_needs_no_reason(desk: Desk) -> None:
    desk.panel.load_preset("classic", Settings())
    assert desk.panel.summary == "classic"
    assert WHY not in tip(desk)


def test_taking_a_preset_back_brings_the_name_of_the_one_before(desk: Desk) -> None:
    desk.begin_run()
    told: list[tuple[str, frozenset[str]]] = []
    desk.panel.preset_loaded.connect(lambda *what: told.append(what))
    desk.panel.load_preset("classic", Settings())
    desk.type("opacity_lr", "0.03")
    desk.panel.undo()
    assert desk.panel.summary == "classic"
    desk.panel.undo()
    assert desk.panel.summary == "cpu-fast"
    assert WHY in tip(desk)
    desk.panel.redo()
    assert desk.panel.summary == "classic"
    differing = frozenset(Settings().differences(FAST))
    assert told == [("classic", differing), ("cpu-fast", differing), ("classic", differing)]


def test_a_resumed_run_is_measured_against_the_preset_that_it_came_from(desk: Desk) -> None:
    desk.begin_run(Settings().changed("opacity_lr", 0.05), step=700)
    assert desk.panel.summary == "classic + 1 change"
    assert "its own settings" in tip(desk)


def test_a_resumed_run_of_a_preset_file_in_force_stays_with_it(desk: Desk) -> None:
    mine = FAST.updated({"opacity_lr": 0.05, "scale_lr": 0.01})
    desk.panel.set_start_values(FAST, "mine", mine)
    desk.begin_run(mine.changed("rotation_lr", 0.002), step=700)
    assert desk.panel.summary == "mine + 1 change"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("coarse_halvings", "1", 1),
        ("coarse_steps", "400", 400),
        ("sh_rest_interval", "7", 7),
        ("morton_interval", "700", 700),
    ],
)
def test_faster_steps_are_changed_and_undone_like_any_other(
    desk: Desk, name: str, text: str, value: Value
) -> None:
    desk.begin_run()
    desk.type(name, text)
    desk.apply(3)
    desk.panel.undo()
    [command] = desk.posted
    assert isinstance(command, SetSetting)
    assert (command.name, command.value) == (name, FAST[name])
    assert value != FAST[name]
