"""The log file of a run ends with the run."""

import logging
from pathlib import Path

import pytest

from engine.run.run_log import RunLog


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("engine", logging.INFO, __file__, 1, text, (), None)


def test_what_is_logged_while_the_run_is_open_stands_in_its_file(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "run.log")
    logging.getLogger("engine").warning("a step was dropped")
    log.close()
    logging.getLogger("engine").warning("of another run")
    text = (tmp_path / "run.log").read_text()
    assert "a step was dropped" in text
    assert "of another run" not in text


def test_a_thread_that_still_holds_a_closed_log_does_not_open_its_file_again(
    tmp_path: Path,
) -> None:
    log = RunLog(tmp_path / "run.log")
    log.close()
    log.handle(record("too late"))
    assert log.stream is None
    assert (tmp_path / "run.log").read_text() == ""


def test_a_log_that_cannot_be_written_is_told_once_and_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = RunLog(Path("/dev/full"))
    for number in range(3):
        log.handle(record(f"line {number}"))
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "/dev/full could not be written: No space left on device" in said
    log.close()  # which would write them once more
    assert capsys.readouterr().err == ""
