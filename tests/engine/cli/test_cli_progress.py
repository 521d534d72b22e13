"""Progress without a window: a bar on a terminal, lines elsewhere."""

import io
import re
import sys
import time

import pytest

from engine import cli_progress
from engine.cli_progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; pytest puts its own back before each test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_the_speed_after_a_resume_is_that_of_the_new_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    progress = Progress()
    progress.begin(300, 400)
    time.sleep(0.15)  # longer than the bar waits between two pictures
    progress.step(301, "")
    progress.close()
    speeds = [float(found) for found in re.findall(r"([\d.]+) steps/s", terminal.getvalue())]
    assert speeds
    assert max(speeds) < 30  # one step in 0.15 s; the 300 old ones would make it 2,000


def test_the_clock_goes_on_while_the_first_step_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(cli_progress, "TICK_SECONDS", 0.0)
    progress = Progress()
    progress.begin(0, 400)
    before = len(terminal.getvalue())
    monkeypatch.setattr(progress, "_next", 0.0)
    progress.tick()
    assert len(terminal.getvalue()) > before
    progress.close()


def test_what_is_over_at_once_is_not_spoken_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(cli_progress, "FIRST_SECONDS", 60.0)  # this machine may be held up
    progress = Progress()
    progress.preparing("Reading poses", 0, 3)
    progress.close()
    assert terminal.getvalue() == ""


def test_what_takes_a_while_before_the_first_step_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(cli_progress, "FIRST_SECONDS", 0.0)
    progress = Progress()
    progress.preparing("Decoding photos", 3, 200)
    assert "Decoding photos 3/200" in terminal.getvalue()
    progress.close()


def test_a_log_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    progress = Progress()
    progress.begin(0, 6)
    progress.say("Something happened.")
    progress.step(6, "loss 0.1")
    progress.close()
    lines = stream.getvalue().splitlines()
    assert lines[1] == "Something happened."
    assert "6/6" in lines[-1]
    assert "\r" not in stream.getvalue()
