"""Stray errors reach the log file and whoever listens."""

import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import qWarning

from app.diagnostics import Diagnostics, Problem


@pytest.fixture
def diagnostics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Diagnostics]:
    # pytest has hooks of its own, which are put back afterwards
    for module, name in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(module, name, getattr(module, name))
    level = logging.getLogger().level
    diagnostics = Diagnostics(tmp_path)
    monkeypatch.setattr("app.diagnostics.faulthandler.enable", lambda file: None)
    monkeypatch.setattr("app.diagnostics.faulthandler.disable", lambda: None)
    diagnostics.install()
    yield diagnostics
    diagnostics.remove()
    logging.getLogger().setLevel(level)


def test_an_error_in_a_thread_is_told_with_its_traceback(
    diagnostics: Diagnostics, capsys: pytest.CaptureFixture[str]
) -> None:
    met: list[Problem] = []
    diagnostics.problem_met.connect(met.append)

    def fail() -> None:
        raise ValueError("the lens is cracked")

    thread = threading.Thread(target=fail, name="decoder")
    thread.start()
    thread.join()
    assert "Traceback" in capsys.readouterr().err
    text = diagnostics.log_path.read_text(encoding="utf-8")
    assert "The thread decoder met an error" in text
    assert "the lens is cracked" in text


def test_an_error_in_the_main_thread_makes_a_problem(
    diagnostics: Diagnostics, capsys: pytest.CaptureFixture[str]
) -> None:
    met: list[Problem] = []
    diagnostics.problem_met.connect(met.append)
    error = RuntimeError("no film in the camera")
    sys.excepthook(type(error), error, None)
    capsys.readouterr()
    assert len(met) == 1
    assert "no film in the camera" in met[0].message
    assert "RuntimeError: no film in the camera" in met[0].details


def test_qts_warnings_are_logged(diagnostics: Diagnostics) -> None:
    qWarning("the shutter is stuck")
    assert "the shutter is stuck" in diagnostics.log_path.read_text(encoding="utf-8")


def test_equal_problems_have_equal_keys() -> None:
    assert Problem("a", "one trace").key == Problem("a", "another").key
    assert Problem("a", path=Path("x")).key != Problem("a", path=Path("y")).key
