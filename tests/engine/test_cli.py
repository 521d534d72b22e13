"""The command line: exit codes, sentences, stable JSON, resuming, signals."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import app.__main__ as program
from engine import cli
from engine.export.splat_files import Written
from engine.ply import read_ply
from engine.run.journal import read_journal
from engine.run.run_folder import RunFolder
from engine.settings import all_settings
from engine.training.trainer import Trainer
from tests.engine.driving import write_tiny_scene

Capture = pytest.CaptureFixture[str]
SHORT = ["--iterations", "6", "--threads", "1"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"), photos=10)


@pytest.fixture(scope="module")
def run(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six steps."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    code = cli.main(["train", str(scene), "--output", str(folder), *SHORT, "--sh-interval", "3"])
    assert code == 0
    return folder


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


# --- arguments -----------------------------------------------------------------------------------


def test_a_typo_gets_the_nearest_flag(capsys: Capture) -> None:
    said = failing(capsys, ["train", "x", "--output", "y", "--itterations", "5"], 2)
    assert "--itterations; did you mean --iterations?" in said


def test_abbreviations_are_not_taken(capsys: Capture) -> None:
    assert "--iter" in failing(capsys, ["train", "x", "--output", "y", "--iter", "5"], 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "x"], "--output"),
        (["train", "--output", "y"], "name a scene"),
        (["train", "x", "--output", "y", "--opacity-lr", "7"], "opacity_lr is 7; expected 0 to"),
        (["train", "x", "--output", "y", "--seed", "many"], "seed is 'many'; expected a number"),
        (["train", "x", "--output", "y", "--backend", "gpu"], "one of auto, cpu, cuda, reference"),
        (["train", "x", "--output", "y", "--preset", "clasic"], "Did you mean classic?"),
        (["frobnicate"], "frobnicate"),
        ([], "name one of"),
    ],
)
def test_bad_arguments_leave_with_2(capsys: Capture, arguments: list[str], says: str) -> None:
    assert says in failing(capsys, arguments, 2)


def test_a_preset_with_a_typo_names_the_nearest_setting(capsys: Capture, tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text("opacity_rl = 0.05\n")
    arguments = ["train", "x", "--output", str(tmp_path / "y"), "--preset", str(preset)]
    assert "Did you mean opacity_lr?" in failing(capsys, arguments, 2)


def test_every_setting_is_a_flag_with_its_meaning(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for info in all_settings():
        assert info.flag in text
        assert info.meaning.split(".")[0][:20] in text
    assert "0 to 1; default 0.025." in text  # the range of the opacity rate


def test_the_version_is_printed(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("splatscope 0.")


def test_words_go_to_the_command_line_and_the_rest_to_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(cli, "main", lambda given: seen.append(given) or 0)
    for word in ("train", "eval", "render", "check", "doctor", "--version"):
        assert program.main([word, "x"]) == 0
    assert [given[0] for given in seen][-1] == "--version"
    assert len(seen) == 6


# --- train ---------------------------------------------------------------------------------------


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


def test_ctrl_c_saves_and_leaves_with_130(scene: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "train", str(scene), "--output", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_steps(folder)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    last = RunFolder(folder).last_checkpoint()
    assert last is not None
    steps = int(last.stem.removeprefix("step-"))
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == steps


@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGTERM], 143), ([signal.SIGINT, signal.SIGINT], 130)],
)
def test_signals_end_a_run_in_order(
    scene: Path, tmp_path: Path, signals: list[signal.Signals], code: int
) -> None:
    folder = tmp_path / "r"

    def send() -> None:
        wait_for_steps(folder)
        for number in signals:
            os.kill(os.getpid(), number)

    before = signal.getsignal(signal.SIGTERM)
    sender = threading.Thread(target=send)
    sender.start()
    assert cli.main(["train", str(scene), "--output", str(folder), "--threads", "1"]) == code
    sender.join()
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not list(folder.rglob("*.part"))


def test_ctrl_c_with_a_full_disk_fails_with_the_reason(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = tmp_path / "r"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def send() -> None:
        wait_for_steps(folder)
        monkeypatch.setattr("os.fsync", full)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    assert cli.main(["train", str(scene), "--output", str(folder), "--threads", "1"]) == 1
    sender.join()
    assert capsys.readouterr().err.count("No space left on device") == 1
    assert list((folder / "checkpoints").iterdir()) == []


def wait_for_steps(folder: Path) -> None:
    metrics = folder / "metrics.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (metrics.exists() and metrics.stat().st_size > 0):
        time.sleep(0.02)


# --- eval, render, check, doctor -----------------------------------------------------------------


def test_eval_prints_the_stable_json(run: Path, scene: Path, capsys: Capture) -> None:
    assert cli.main(["eval", str(run), str(scene), "--json"]) == 0
    result = strict(capsys.readouterr().out)
    assert list(result) == ["psnr", "ssim", "splats", "images"]
    assert [list(image) for image in result["images"]] == [["name", "psnr", "ssim"]] * 2
    assert result["splats"] == 40
    last = strict((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert result["psnr"] == last["psnr"]
    assert result["ssim"] == last["held_out_ssim"]


def test_eval_of_the_splat_file_agrees_with_the_run(
    run: Path, scene: Path, capsys: Capture
) -> None:
    assert cli.main(["eval", str(run), str(scene), "--json"]) == 0
    of_run = strict(capsys.readouterr().out)
    ply = run / "exports" / "step-000006.ply"
    assert cli.main(["eval", str(ply), str(scene), "--json"]) == 0
    of_file = strict(capsys.readouterr().out)
    # the file holds float32 in the files' frame, a few units from the origin
    assert of_file["psnr"] == pytest.approx(of_run["psnr"], abs=1e-3)
    checkpoint = run / "checkpoints" / "step-000006.safetensors"
    assert cli.main(["eval", str(checkpoint), str(scene), "--json"]) == 0
    assert strict(capsys.readouterr().out) == of_run


def test_eval_speaks_to_people_too(run: Path, scene: Path, capsys: Capture) -> None:
    assert cli.main(["eval", str(run), str(scene)]) == 0
    text = capsys.readouterr().out
    assert "photo_000.png: PSNR" in text
    assert "40 splats, 2 held-out photos" in text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "nothing.ply", "There is no"),
        (lambda folder: folder, "is not a run folder"),
        (lambda folder: _cloud(folder), "is a point cloud, not splats"),
    ],
)
def test_eval_of_what_is_no_model_fails_with_a_sentence(
    make: Any, says: str, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert says in failing(capsys, ["eval", str(make(tmp_path)), str(scene), "--json"], 1)


def _cloud(folder: Path) -> Path:
    path = folder / "input.ply"
    path.write_text(
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
        "property float z\nend_header\n0 0 0\n"
    )
    return path


def test_eval_without_held_out_photos_says_so(run: Path, scene: Path, capsys: Capture) -> None:
    arguments = ["eval", str(run), str(scene), "--test-every", "0", "--json"]
    assert "is held out" in failing(capsys, arguments, 1)


def test_render_draws_held_out_views_or_all(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert cli.main(["render", str(run), str(scene), "--output", str(tmp_path / "a")]) == 0
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["photo_000.png", "photo_008.png"]
    with Image.open(tmp_path / "a" / "photo_000.png") as picture:
        assert picture.size == (32, 24)
        assert picture.mode == "RGB"
        assert len(np.unique(np.asarray(picture))) > 3
    assert cli.main(["render", str(run), str(scene), "--output", str(tmp_path / "b"), "--all"]) == 0
    assert len(list((tmp_path / "b").iterdir())) == 10
    assert capsys.readouterr().out == ""


def test_render_into_a_file_fails_with_its_name(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "f").write_text("")
    said = failing(capsys, ["render", str(run), str(scene), "--output", str(tmp_path / "f")], 1)
    assert str(tmp_path / "f") in said


def test_check_prints_the_stable_json(scene: Path, capsys: Capture) -> None:
    assert cli.main(["check", str(scene), "--json"]) == 0
    report = strict(capsys.readouterr().out)
    assert list(report) == ["severity", "photos", "findings"]
    assert report["severity"] in ("ok", "warning")
    assert report["photos"] == {"used": 10, "skipped": 0}
    for finding in report["findings"]:
        assert list(finding) == ["code", "severity", "file", "message"]


def test_check_of_an_unusable_scene_leaves_with_1_and_still_prints_json(
    tmp_path: Path, capsys: Capture
) -> None:
    assert cli.main(["check", str(tmp_path), "--json"]) == 1
    text = capsys.readouterr()
    assert strict(text.out)["severity"] == "error"
    assert str(tmp_path) in text.err


def test_check_speaks_to_people_too(scene: Path, capsys: Capture) -> None:
    assert cli.main(["check", str(scene)]) == 0
    assert "10 photos are used, 0 are left out." in capsys.readouterr().out


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
