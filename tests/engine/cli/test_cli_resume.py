"""`train --resume`: what goes on, and what may not change."""

import re
import shutil
from pathlib import Path

import pytest

from engine import cli
from engine.dataset.photo_store import PhotoStore
from engine.ply import read_ply
from engine.run.run_folder import RunFolder
from tests.engine.cli.commands import SHORT, Capture, failing, strict
from tests.engine.driving import write_tiny_scene
from tests.journals import read_journal


def test_resume_needs_a_run(tmp_path: Path, scene: Path, capsys: Capture) -> None:
    arguments = ["train", str(scene), "--output", str(tmp_path), "--resume"]
    assert "is not a run folder" in failing(capsys, arguments, 1)


def test_resume_goes_on_and_given_flags_win_and_are_journalled(
    scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "r"
    start = ["train", str(scene), "--output", str(folder)]
    assert cli.main([*start, *SHORT, "--opacity-lr", "0.05"]) == 0
    resume = ["--resume", "--iterations", "9", "--scale-lr", "0.01"]
    assert cli.main(["train", "--output", str(folder), *resume]) == 0
    capsys.readouterr()
    rows = [strict(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 10))
    assert rows[6]["seconds"] > rows[5]["seconds"]  # cumulative over resumes
    settings, _ = RunFolder(folder).read_facts()
    assert settings.differences() == {
        "opacity_lr": 0.05,
        "scale_lr": 0.01,
        "iterations": 9,
        "threads": 1,
    }
    changes = {
        entry["name"]: (entry["step"], entry["old"], entry["new"])
        for entry in read_journal(folder / "journal.jsonl")
        if entry["what"] == "SetSetting"
    }
    assert changes == {"iterations": (6, 6, 9), "scale_lr": (6, 0.005, 0.01)}


def test_resuming_a_finished_run_changes_nothing_and_succeeds(run: Path, capsys: Capture) -> None:
    assert cli.main(["train", "--output", str(run), "--resume"]) == 0
    assert "Held-out PSNR" in capsys.readouterr().out
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 6


def test_resuming_a_finished_run_leaves_its_results_alone_and_makes_those_that_are_missing(
    own_run: Path, capsys: Capture
) -> None:
    before = _results(own_run)
    again = ["train", "--output", str(own_run), "--resume", "--json"]
    assert cli.main(again) == 0
    assert _results(own_run) == before
    assert strict(capsys.readouterr().out)["splats"] == 40  # told without writing them
    (export,) = own_run.glob("exports/*.ply")
    export.unlink()
    assert cli.main(again) == 0
    after = _results(own_run)
    assert {name: data for name, (data, _) in after.items()} == {
        name: data for name, (data, _) in before.items()
    }
    assert {name for name in after if after[name] != before[name]} == {export.name}


def _results(run: Path) -> dict[str, tuple[bytes, int]]:
    """Checkpoints, splat files and views by name: what they hold and when they were written."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.rglob("step-*")}


def test_iterations_that_are_done_already_are_told_and_the_files_kept(
    own_run: Path, capsys: Capture
) -> None:
    before, facts = _results(own_run), (own_run / "run.toml").read_text()
    again = ["train", "--output", str(own_run), "--resume", "--iterations", "4", "--json"]
    assert cli.main(again) == 0  # every promised file exists
    text = capsys.readouterr()
    assert "at step 6 already, its last: no step is done" in text.err
    assert "Give --iterations above 6" in text.err
    assert "Training on" not in text.err
    assert strict(text.out)["step"] == 6
    assert _results(own_run) == before
    assert (own_run / "run.toml").read_text() == facts  # six steps were done, not four


def test_a_moved_run_opens_with_its_scene_given(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    moved = tmp_path / "deep" / "down"
    shutil.copytree(run, moved)
    facts = (moved / "run.toml").read_text()
    reference = RunFolder(run).read_facts()[1].scene
    (moved / "run.toml").write_text(facts.replace(reference, "gone"))
    assert "gone" in failing(capsys, ["train", "--output", str(moved), "--resume"], 1)
    arguments = ["train", str(scene), "--output", str(moved), "--resume", "--iterations", "8"]
    assert cli.main(arguments) == 0
    assert len(read_ply(moved / "exports" / "step-000008.ply")["vertex"]) == 40


@pytest.fixture
def own_run(run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may go on with."""
    return Path(shutil.copytree(run, tmp_path / "own"))


def test_an_error_that_nobody_foresaw_ends_the_program_before_a_run_is_open(
    own_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("engine.run_opening.resuming_changes", broken)
    assert cli.main(["train", "--output", str(own_run), "--resume"]) == 1
    assert "ZeroDivisionError: a fault of ours" in capsys.readouterr().err


def test_another_scene_is_refused_before_its_photos_are_decoded(
    own_run: Path, scene: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the photos were decoded first")

    monkeypatch.setattr(PhotoStore, "load_all", never)
    other = write_tiny_scene(tmp_path / "other", photos=9)
    said = failing(capsys, ["train", str(other), "--output", str(own_run), "--resume"], 1)
    assert f"was trained on other poses than {other} has" in said
    assert scene.name in said
    assert "photo_009.png is not there" in said
    assert not re.search(r"\d\.\d{4}", said)


@pytest.mark.parametrize(
    ("flag", "value"), [("--seed", "7"), ("--test-every", "4"), ("--cutoffs", "gsplat")]
)
def test_what_the_steps_done_depend_on_cannot_change(
    flag: str, value: str, own_run: Path, scene: Path, capsys: Capture
) -> None:
    before = (own_run / "run.toml").read_text()
    arguments = ["train", str(scene), "--output", str(own_run), "--resume", flag, value]
    said = failing(capsys, arguments, 2)
    assert f"Leave {flag} out" in said
    assert (own_run / "run.toml").read_text() == before


def test_the_flags_of_the_run_may_be_given_again(own_run: Path, capsys: Capture) -> None:
    again = ["--seed", "0", "--sh-interval", "3", "--iterations", "6"]
    assert cli.main(["train", "--output", str(own_run), "--resume", *again]) == 0
    assert "Held-out PSNR" in capsys.readouterr().out


def test_another_resolution_is_told_and_journalled(own_run: Path, capsys: Capture) -> None:
    arguments = ["train", "--output", str(own_run), "--resume", "--resolution", "2"]
    assert cli.main([*arguments, "--iterations", "7"]) == 0
    assert "resolution was 0 up to step 6, now it is 2." in capsys.readouterr().err
    changes = {
        entry["name"]: (entry["step"], entry["old"], entry["new"])
        for entry in read_journal(own_run / "journal.jsonl")
        if entry["what"] == "SetSetting"
    }
    assert changes["resolution"] == (6, 0, 2)
