"""Runs commands in this process and reads what they said."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from engine import cli
from tests.child_process import BUSY_SECONDS

Capture = pytest.CaptureFixture[str]
SHORT = ["--iterations", "6", "--threads", "1", "--preset", "classic"]


def failing(capture: Capture, arguments: list[str], code: int) -> str:
    """Run a command that must fail so; the single sentence on standard error."""
    try:
        found = cli.main(arguments)
    except SystemExit as left:
        found = int(left.code or 0)
    text = capture.readouterr()
    assert found == code, text.err
    assert text.out == ""
    assert "Traceback" not in text.err
    return text.err.strip().splitlines()[-1]


def strict(text: str) -> Any:
    """JSON without NaN or infinities, and nothing beside it."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def wait_for_steps(folder: Path) -> None:
    metrics = folder / "metrics.jsonl"
    end = time.monotonic() + BUSY_SECONDS
    while not (metrics.exists() and metrics.stat().st_size > 0):
        assert time.monotonic() < end, f"no step was noted in {metrics}"
        time.sleep(0.02)
