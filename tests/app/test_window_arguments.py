"""What the window's command line refuses before anything is opened."""

import pytest

from app.application import run_window


def test_a_word_that_is_neither_a_command_nor_a_path_is_refused_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_window(["frobnicate"]) == 2
    said = capsys.readouterr().err
    assert "frobnicate is neither a command nor something to open" in said
    assert "splatscope --help" in said
