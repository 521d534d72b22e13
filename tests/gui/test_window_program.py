"""The window program from its arguments to its exit code."""

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.application import run_window
from app.main_window import MainWindow
from app.palette import DARK
from app.preferences import Preferences, load_preferences, save_preferences
from app.viewport.display_probe import DisplayProbe
from app.window_number import WindowNumber
from engine.messages import OpenScene, Shutdown, State
from engine.presets import load_preset
from engine.usual_preset import usual_preset
from tests.child_process import run_program, run_python
from tests.gui.private_display import PrivateDisplay
from tests.gui.scripted_engine import ScriptedEngine
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


@pytest.mark.parametrize("wish", ["auto", "gl", "painted"])
def test_the_program_opens_a_scene_with_its_flags_and_ends_with_0(
    qtbot: QtBot, qapp: QApplication, wish: str, tmp_path: Path
) -> None:
    engine = ScriptedEngine()
    found: list[str] = []

    def close_when_training() -> None:
        mains = [w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)]
        windows = [w for w in mains if w.session._engine is engine]
        if windows and engine.state is State.TRAINING and windows[0].viewport.frame is not None:
            poll.stop()
            found.append(windows[0].viewport.kind)
            found.append(windows[0].status.facts.toolTip())
            windows[0].close()

    def give_up() -> None:
        QApplication.exit(99)

    limit = QTimer()
    limit.setSingleShot(True)
    limit.timeout.connect(give_up)
    limit.start(LIMIT_MS * 3)
    poll = QTimer()
    poll.setInterval(20)
    poll.timeout.connect(close_when_training)
    poll.start()
    flags = ["--opacity-lr", "0.03", "--seed", "5"]
    assert run_window([str(tmp_path), "--viewport", wish, *flags], engine) == 0
    command = engine.commands[0]
    assert isinstance(command, OpenScene)
    assert command.path == tmp_path
    usual = load_preset(usual_preset().name)
    assert command.settings.differences(usual) == {"opacity_lr": 0.03, "seed": 5}
    assert engine.commands[-1] == Shutdown(save=True)
    assert found[0] == ("gl" if wish == "gl" else "painted")  # the renderer here is software
    assert ("llvmpipe" in found[1]) == (wish != "painted")
    assert not [t for t in threading.enumerate() if t.name == "scripted-engine"]


def test_wrong_arguments_are_named_and_end_with_2(display: PrivateDisplay) -> None:
    for arguments, words in (
        (["--opacity-lr", "ten"], "opacity_lr is 'ten'"),
        (["--opacitylr", "1"], "did you mean --opacity-lr"),
        (["--preset", "clasic"], "Did you mean classic?"),
    ):
        found = run_python("-m", "app", *arguments, variables=display.environment())
        assert found.returncode == 2
        assert words in found.stderr


def test_without_a_display_the_program_says_so(display: PrivateDisplay) -> None:
    environment = display.environment()
    environment["DISPLAY"] = ":4242"
    found = run_python("-m", "app", "demo", variables=environment)
    assert found.returncode == 1
    assert "No window can be opened" in found.stderr
    assert ":4242" in found.stderr
    assert "splatscope train" in found.stderr


def test_a_sign_stands_on_the_screen_until_the_window_is_there(
    qtbot: QtBot, display: PrivateDisplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in display.environment().items():
        monkeypatch.setenv(name, value)
    find = ("xdotool", "search", "--onlyvisible", "--name", "Splatscope is starting")
    probe = DisplayProbe((DARK.panel, DARK.text, DARK.muted))
    try:
        assert probe.result().trouble == ""
        # --sync waits until there is one
        assert run_program("xdotool", "search", "--sync", *find[2:]).stdout
    finally:
        probe.end()
    # the screen takes a window away when it finds the time, not when its program ends
    qtbot.waitUntil(lambda: run_program(*find).stdout == "", timeout=LIMIT_MS)


def test_broken_preferences_are_told_by_a_card_that_stays(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLATSCOPE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "preferences.json").write_text("{ not json", encoding="utf-8")
    told: list[str] = []

    def look() -> None:
        windows = [w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)]
        shown = [w for w in windows if w.isVisible() and w.session._engine is engine]
        if shown:
            poll.stop()
            told.extend(card.problem.message for card in shown[0].error_cards.cards)
            shown[0].close()

    engine = ScriptedEngine()
    poll = QTimer()
    poll.setInterval(20)
    poll.timeout.connect(look)
    poll.start()
    assert run_window([], engine) == 0
    assert len(told) == 1
    assert "preferences.json.bad" in told[0]
    assert (tmp_path / "preferences.json.bad").is_file()


def test_a_second_window_lies_beside_the_first_and_its_place_is_not_remembered(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLATSCOPE_CONFIG_DIR", str(tmp_path))
    save_preferences(Preferences(geometry=(50, 60, 1000, 700)))
    places: list[tuple[int, ...]] = []

    def look() -> None:
        windows = [w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)]
        shown = [w for w in windows if w.isActiveWindow() and w.session._engine is engine]
        if shown:
            poll.stop()
            places.append(shown[0].geometry().getRect())
            shown[0].close()

    poll = QTimer()
    poll.setInterval(20)
    poll.timeout.connect(look)
    first = WindowNumber(tmp_path)  # as an open window has it
    for _ in range(2):
        engine = ScriptedEngine()
        poll.start()
        assert run_window([], engine) == 0
        assert load_preferences()[0].geometry == (50, 60, 1000, 700)
        first.release()
    assert places == [(86, 96, 1000, 700), (50, 60, 1000, 700)]
