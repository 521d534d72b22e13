"""`train`: what a run leaves, prints and refuses."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from engine import cli
from engine.export.splat_files import Written
from engine.run.run_folder import RunFolder
from engine.training.trainer import Trainer
from tests.engine.cli.commands import SHORT, Capture, failing, strict
from tests.journals import read_journal


def test_a_finished_run_keeps_what_it_promises(run: Path) -> None:
    assert (run / "exports" / "step-000006.ply").is_file()
    assert (run / "checkpoints" / "step-000006.safetensors").is_file()
    assert len(list((run / "views").glob("*.png"))) == 2
    rows = [strict(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        assert {"step", "seconds", "loss", "l1", "ssim", "splats"} <= row.keys()
    assert rows[-1]["psnr"] > 5
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)
    assert read_journal(run / "journal.jsonl")[0]["what"] == "RunStarted"
    settings, facts = RunFolder(run).read_facts()
    assert settings.run.iterations == 6
    assert facts.backend in ("cpu", "reference")
    assert "torch" in facts.versions
    assert "training at step 0" in (run / "run.log").read_text()


def test_the_held_out_psnr_is_printed_last_and_progress_elsewhere(
    scene: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", str(scene), "--output", str(tmp_path / "r"), *SHORT]) == 0
    text = capfd.readouterr()
    assert text.out.strip().splitlines()[-1].startswith("Held-out PSNR ")
    assert "2 photos" in text.out
    assert "6/6" in text.err


def test_train_can_answer_in_json(scene: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["train", str(scene), "--output", str(tmp_path / "r"), *SHORT, "--json"]
    assert cli.main([*arguments, "--test-every", "0"]) == 0
    result = strict(capsys.readouterr().out)
    assert result["psnr"] is None  # nothing is held out
    assert Path(result["export"]).is_file()
    assert result["step"] == 6


def test_a_used_folder_is_refused_and_left_alone(run: Path, scene: Path, capsys: Capture) -> None:
    before = sorted(path.stat().st_mtime_ns for path in run.rglob("*"))
    said = failing(capsys, ["train", str(scene), "--output", str(run), *SHORT], 1)
    assert "already holds an earlier run" in said
    assert "--resume" in said
    assert sorted(path.stat().st_mtime_ns for path in run.rglob("*")) == before


def test_a_missing_scene_is_named_and_leaves_no_folder(tmp_path: Path, capsys: Capture) -> None:
    said = failing(capsys, ["train", str(tmp_path / "nope"), "--output", str(tmp_path / "r")], 1)
    assert "nope" in said
    assert not (tmp_path / "r").exists()


def test_an_error_while_training_leaves_with_1_and_a_checkpoint(
    scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Trainer._phases

    def phases(self: Trainer) -> Any:
        if self.step == 4:
            raise ValueError("a bug of ours")
        return (yield from real(self))

    monkeypatch.setattr(Trainer, "_phases", phases)
    arguments = ["train", str(scene), "--output", str(tmp_path / "r"), *SHORT]
    said = failing(capsys, arguments, 1)
    assert "ValueError: a bug of ours" in said
    assert (tmp_path / "r" / "checkpoints" / "step-000004.safetensors").is_file()
    assert "a bug of ours" in (tmp_path / "r" / "run.log").read_text()


def test_a_promised_file_that_is_missing_means_failure(
    scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(path: Path, *_: object) -> Generator[int, None, Written]:
        yield 1
        return Written(splats=1, dropped=0)

    monkeypatch.setattr("engine.open_run.write_splats_in_phases", lost)
    said = failing(capsys, ["train", str(scene), "--output", str(tmp_path / "r"), *SHORT], 1)
    assert "step-000006.ply is missing" in said


def test_the_built_in_scene_is_trained_and_measured_by_its_name(
    tmp_path: Path, capsys: Capture
) -> None:
    small = ["--resolution", "8", "--threads", "1", "--json"]
    folder = str(tmp_path / "r")
    assert cli.main(["train", "demo", "--output", folder, "--iterations", "3", *small]) == 0
    trained = strict(capsys.readouterr().out)
    assert RunFolder(tmp_path / "r").read_facts()[1].scene == "demo"
    assert cli.main(["eval", folder, "demo", "--json"]) == 0
    assert strict(capsys.readouterr().out)["psnr"] == trained["psnr"]
    assert cli.main(["check", "demo", "--json"]) == 0


def test_an_output_that_cannot_be_made_is_told_before_anything_is_loaded(
    scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the scene was read first")

    monkeypatch.setattr("engine.scene_loader.load_scene", never)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "run", tmp_path / ("long" * 100)):
        said = failing(capsys, ["train", str(scene), "--output", str(place), *SHORT], 1)
        assert f"The run folder {place} cannot be made: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_holds_no_checkpoint_is_told_before_the_first_step(
    scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.run.disk_space.free_bytes", lambda _: 20_000)
    said = failing(capsys, ["train", str(scene), "--output", str(tmp_path / "r"), *SHORT], 1)
    # 40 splats of 59 numbers, and two moments of each: 28 KB, and 10 KB in the splat file
    assert re.search(r"20 KB free; a checkpoint and the splat file of 40 splats take \d\d KB", said)
    assert not (tmp_path / "r").exists()


def test_a_disk_that_may_become_too_small_is_warned_of(
    scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.run.disk_space.free_bytes", lambda _: 500_000)
    arguments = ["train", str(scene), "--output", str(tmp_path / "r"), *SHORT]
    assert cli.main([*arguments, "--max-splats", "1000", "--densify-start", "5"]) == 0
    said = capsys.readouterr().err
    assert "500 KB free. 1 checkpoint and the splat file of 1,000 splats would take" in said
    # without a step after which splats are added there are as many as at the start
    arguments = ["train", str(scene), "--output", str(tmp_path / "s"), *SHORT]
    assert cli.main(arguments) == 0
    assert "free" not in capsys.readouterr().err


def test_progress_in_a_pipe_is_whole_lines(
    scene: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", str(scene), "--output", str(tmp_path / "r"), *SHORT]) == 0
    said = capfd.readouterr().err
    assert "\r" not in said
    assert "Loading" not in said


def test_a_whole_number_out_of_range_is_shown_as_one(tmp_path: Path, capsys: Capture) -> None:
    arguments = ["train", "x", "--output", str(tmp_path / "r"), "--iterations", "-5"]
    assert "iterations is -5; expected 1 to 1,000,000" in failing(capsys, arguments, 2)
