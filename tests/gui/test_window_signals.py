"""Ctrl+C and a polite kill end the program in order, whenever they come."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.run.run_folder import RunFolder
from tests.child_process import BUSY_SECONDS, interrupted_on_import
from tests.gui.private_display import PrivateDisplay

pytestmark = pytest.mark.gl
PROJECT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = BUSY_SECONDS
FLAGS = ("--resolution", "4", "--evaluation-interval", "0", "--checkpoint-interval", "0")


@pytest.fixture
def begin(display: PrivateDisplay, tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Start the program as a shell does it in the background: with Ctrl+C ignored."""
    own = {"XDG_DATA_HOME": "data", "SPLATSCOPE_CONFIG_DIR": "config", "SPLATSCOPE_LOG_DIR": "logs"}
    folders = {name: str(tmp_path / folder) for name, folder in own.items()}

    def start(*command: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=PROJECT,
            env=display.environment() | folders,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    return start


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def end_of(program: "subprocess.Popen[str]") -> tuple[int, str]:
    _, errors = program.communicate(timeout=LIMIT_S)
    return program.returncode, errors


@pytest.mark.parametrize("module", ["engine.cli", "torch.nn"])
def test_ctrl_c_while_the_program_starts_ends_it_at_once_without_a_traceback(
    begin: Callable[..., "subprocess.Popen[str]"], module: str
) -> None:
    program = begin(*interrupted_on_import(module, "demo"))
    assert end_of(program) == (130, "splatscope: interrupted.\n")


@pytest.mark.parametrize(
    ("module", "scene", "number", "code"),
    [("app", ("demo",), signal.SIGTERM, 143), ("app.demo", (), signal.SIGINT, 130)],
)
def test_a_signal_while_training_saves_and_is_told_by_the_exit_code(
    begin: Callable[..., "subprocess.Popen[str]"],
    tmp_path: Path,
    module: str,
    scene: tuple[str, ...],
    number: int,
    code: int,
) -> None:
    program = begin(sys.executable, "-m", module, *scene, *FLAGS)
    runs = tmp_path / "data"

    def has_steps() -> bool:
        try:
            return any(file.stat().st_size for file in runs.rglob("metrics.jsonl"))
        except FileNotFoundError:  # folders come and go while the program tries where it may write
            return False

    wait_until(has_steps, "steps")
    os.kill(program.pid, number)
    found, said = end_of(program)
    assert found == code
    run = RunFolder(next(runs.rglob("run.toml")).parent)
    assert said.splitlines()[-1] == f"splatscope: saving and closing; the run is in {run.path}."
    assert run.last_checkpoint() is not None


def test_a_signal_while_loading_ends_without_a_run(
    begin: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    program = begin(sys.executable, "-m", "app", "demo", *FLAGS)
    log = tmp_path / "logs" / "splatscope.log"
    wait_until(lambda: log.exists() and "The view is" in log.read_text(), "the window")
    os.kill(program.pid, signal.SIGTERM)
    assert end_of(program) == (143, "splatscope: closing.\n")
