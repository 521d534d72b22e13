"""`doctor`: what works on this machine."""

import os
from pathlib import Path

import pytest

from engine import cli
from tests.engine.cli.commands import Capture, strict


def test_doctor_tells_what_works(capsys: Capture) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    report = strict(capsys.readouterr().out)
    assert report["backends"]["reference"] is None
    assert report["backend"] in ("cpu", "reference")
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "Backend: " in text
    assert str(Path.home()) + os.sep not in text.replace("~/", "")


def test_doctor_leaves_with_1_when_no_run_can_be_kept(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert cli.main(["doctor"]) == 1
    assert "cannot be written" in capsys.readouterr().err
