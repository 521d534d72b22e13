"""Standard streams that are closed, full or read by nobody, and names that they cannot show."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine import cli
from tests.child_process import BUSY_SECONDS
from tests.engine.cli.commands import SHORT, Capture
from tests.engine.driving import write_tiny_scene

PROGRAM = [sys.executable, "-m", "app"]


def test_a_reader_that_leaves_early_is_no_error(scene: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "check", str(scene)],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=BUSY_SECONDS,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_training_goes_on_when_nobody_reads_its_progress(
    scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["train", str(scene), "--output", str(tmp_path / "r"), *SHORT]
    with os.fdopen(writing, "w") as nobody:
        monkeypatch.setattr(sys, "stderr", nobody)
        assert cli.main(arguments) == 0
    assert "Held-out PSNR" in capsys.readouterr().out
    assert (tmp_path / "r" / "exports" / "step-000006.ply").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("buffering", [1, -1])
def test_output_that_cannot_be_written_is_a_failure_that_says_so(
    buffering: int, scene: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w", buffering) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(["check", str(scene), "--json"]) == 1
    said = capsys.readouterr().err
    assert said == "splatscope: standard output cannot be written: No space left on device.\n"


def test_a_program_started_without_streams_works(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["check", str(scene)]) == 0


def test_a_name_that_the_terminal_cannot_show_ends_nothing(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tiny_scene(tmp_path / "s", photos=10)
    shutil.copy(folder / "images" / "photo_003.png", folder / "images" / "写真.png")
    with (tmp_path / "told").open("w", encoding="ascii") as plain:
        monkeypatch.setattr(sys, "stdout", plain)
        assert cli.main(["check", str(folder)]) == 0
    assert "\\u5199\\u771f.png has no pose" in (tmp_path / "told").read_text()
