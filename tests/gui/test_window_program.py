"""The window program from its arguments to its exit code."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.application import run_window
from app.main_window import MainWindow
from engine.messages import OpenScene, Shutdown, State
from tests.gui.private_display import PrivateDisplay
from tests.gui.scripted_engine import ScriptedEngine
from tests.gui.window_room import LIMIT_MS

pytestmark = pytest.mark.gl
PROJECT = Path(__file__).resolve().parent.parent.parent


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
    arguments = [str(tmp_path), "--viewport", wish, "--opacity-lr", "0.03", "--seed", "5"]
    assert run_window(arguments, engine) == 0
    command = engine.commands[0]
    assert isinstance(command, OpenScene)
    assert command.path == tmp_path
    assert command.settings.differences() == {"opacity_lr": 0.03, "seed": 5}
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
        found = subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            cwd=PROJECT,
            env=display.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert found.returncode == 2
        assert words in found.stderr


def test_without_a_display_the_program_says_so(display: PrivateDisplay) -> None:
    environment = display.environment()
    environment["DISPLAY"] = ":4242"
    found = subprocess.run(
        [sys.executable, "-m", "app", "demo"],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 1
    assert "No window can be opened" in found.stderr
    assert ":4242" in found.stderr
    assert "splatscope train" in found.stderr
