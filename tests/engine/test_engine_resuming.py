"""Old runs go on where they were, with what was changed, and only in one place at a time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from engine import messages as m
from engine import run_opening
from engine.errors import RunFolderError
from engine.messages import State
from engine.run.folder_lock import FolderLock
from engine.run.run_folder import RunFolder
from tests.child_process import PROJECT
from tests.engine.driving import ENDLESS, Driver, full_disk, quick, running_engine, write_tiny_scene


def test_resuming_goes_on_where_the_last_checkpoint_is(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=20, checkpoint_interval=10))
    driver.wait(m.Finished)
    (folder / "checkpoints" / "step-000020.safetensors").unlink()  # as if killed before the end
    (folder / "checkpoints" / "step-000020.safetensors.part").write_bytes(b"half")
    log = (folder / "metrics.jsonl").read_text()
    (folder / "metrics.jsonl").write_text("damaged\n" + log)
    driver.post(m.ResumeRun(folder, (("opacity_lr", 0.05),), start=False))
    started = driver.wait(m.RunStarted, 2)
    assert started.step == 10
    assert started.settings.learning_rates.opacity_lr == 0.05
    driver.reach(State.PAUSED)
    rows = (folder / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 10
    undone = folder / "metrics-undone-000011-to-000020.jsonl"
    assert undone.read_text() == "".join(log.splitlines(keepends=True)[10:])
    (warning,) = [w.message for w in driver.all(m.Warned) if "had come to step 20" in w.message]
    assert "nothing was saved behind step 10" in warning
    assert str(undone) in warning
    assert not list(folder.rglob("*.part"))
    assert any("step 10" in event.message for event in driver.all(m.Noticed))
    assert any("1 damaged line" in event.message for event in driver.all(m.Noticed))
    driver.post(m.Start())
    assert driver.wait(m.Finished, 2).step == 20
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 20


def test_a_resumed_run_tells_what_happened_before(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=30, evaluation_interval=10), start=False)
    driver.post(m.StepN(12))
    driver.reach(State.PAUSED)
    driver.ask(m.SetSetting("opacity_lr", 0.1), m.SettingApplied)
    driver.ask(m.Save(), m.Saved)
    driver.ask(m.ResetOpacity(), m.OpacitiesReset)
    driver.post(m.Start())
    driver.wait(m.Finished)
    lived = driver.all(m.Stepped)
    (folder / "checkpoints" / "step-000030.safetensors").unlink()
    with (folder / "journal.jsonl").open("a") as journal:
        journal.write("damaged\n")
    driver.open(scene, tmp_path / "other", start=False)
    driver.post(m.ResumeRun(folder, start=False))
    past = driver.wait(m.HistoryRead)
    driver.reach(State.PAUSED)
    assert past.steps.tolist() == list(range(1, 13))
    for name in ("seconds", "loss", "l1", "ssim", "psnr", "splats"):
        told = np.concatenate([getattr(event, name) for event in lived])[:12]
        np.testing.assert_array_equal(getattr(past, name), told)
    evaluated = driver.all(m.Evaluated)[0]
    assert (past.evaluated_steps.tolist(), past.evaluated_psnr.tolist()) == ([10], [evaluated.psnr])
    assert past.saved_steps == (12,)
    changed, reset = past.happenings
    assert isinstance(changed, m.SettingApplied)
    assert (changed.step, changed.name, changed.old, changed.new) == (12, "opacity_lr", 0.025, 0.1)
    assert isinstance(reset, m.OpacitiesReset)
    assert reset.step == 12
    assert any("1 damaged line of" in event.message for event in driver.all(m.Noticed))


def test_a_setting_changed_after_the_last_checkpoint_is_still_changed_after_resuming(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", ENDLESS, start=False)
    driver.post(m.StepN(3))
    driver.reach(State.PAUSED)
    driver.ask(m.Save(), m.Saved)
    driver.ask(m.SetSetting("opacity_lr", 0.1), m.SettingApplied)
    driver.open(scene, tmp_path / "other", start=False)  # closes the run
    driver.post(m.ResumeRun(tmp_path / "run", start=False))
    resumed = driver.wait(m.RunStarted, 3)
    assert (resumed.step, resumed.settings["opacity_lr"]) == (3, 0.1)


def test_opening_a_finished_run_leaves_its_checkpoint_and_splats_alone(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=6))
    first = driver.wait(m.Finished)
    written = [path.stat().st_mtime_ns for path in (first.checkpoint, first.export)]
    driver.post(m.ResumeRun(folder))
    again = driver.wait(m.Finished, 2)
    assert (again.checkpoint, again.export) == (first.checkpoint, first.export)
    assert [path.stat().st_mtime_ns for path in (again.checkpoint, again.export)] == written
    assert len(driver.all(m.Exported)) == 1
    assert driver.all(m.RunStarted)[-1].splats == driver.all(m.Exported)[0].splats


def finished_run(driver: Driver, scene: Path, tmp_path: Path) -> Path:
    """The folder of a run of six steps."""
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=6))
    driver.wait(m.Finished)
    return folder


def test_what_a_resume_changes_is_told_like_any_change(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = finished_run(driver, scene, tmp_path)
    driver.post(m.ResumeRun(folder, (("iterations", 8), ("background", "white"))))
    driver.wait(m.Finished, 2)
    events = driver.events
    history = next(i for i, event in enumerate(events) if isinstance(event, m.HistoryRead))
    applied = [event for event in events[history:] if isinstance(event, m.SettingApplied)]
    assert {(event.step, event.name, event.old, event.new, event.held) for event in applied} == {
        (6, "iterations", 6, 8, False),
        (6, "background", "black", "white", False),
    }


def test_a_finished_run_that_is_opened_is_not_said_to_go_on(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = finished_run(driver, scene, tmp_path)
    driver.post(m.ResumeRun(folder))
    driver.wait(m.Finished, 2)
    told = "\n".join(event.message for event in driver.all(m.Noticed))
    assert "goes on" not in told
    assert "The run is finished: step 6, " in told
    driver.post(m.ContinueFor(4))
    assert driver.wait(m.Finished, 3).step == 10
    driver.post(m.ResumeRun(folder, (("iterations", 12),)))
    driver.wait(m.Finished, 4)
    assert any(
        "The run goes on from its last checkpoint: step 10," in event.message
        for event in driver.all(m.Noticed)
    )


def test_splats_that_are_older_than_their_checkpoint_are_written_again(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=6))
    driver.wait(m.Finished)
    driver.ask(m.ResetOpacity(), m.OpacitiesReset)
    before = driver.all(m.Finished)[-1].export.read_bytes()
    driver.ask(m.Save(), m.Saved)
    driver.post(m.ResumeRun(folder))
    assert driver.wait(m.Finished, 2).export.read_bytes() != before


def test_resuming_with_other_versions_says_that_the_bits_will_differ(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=3))
    driver.wait(m.Finished)
    facts = (folder / "run.toml").read_text()
    torch_line = next(line for line in facts.splitlines() if line.startswith("torch ="))
    driver.post(m.ResumeRun(folder, (("iterations", 4),)))
    driver.wait(m.Finished, 2)
    assert not any("not the same bits" in event.message for event in driver.all(m.Noticed))
    (folder / "run.toml").write_text(facts.replace(torch_line, 'torch = "1.0"'))
    driver.post(m.ResumeRun(folder, (("iterations", 5),)))
    driver.wait(m.Finished, 3)
    told = [event.message for event in driver.all(m.Noticed)]
    assert any("torch 1.0 -> " in text and "not the same bits" in text for text in told)


def test_a_run_killed_before_its_first_checkpoint_begins_again(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=4), start=False)
    driver.reach(State.READY)
    driver.post(m.ResumeRun(folder))
    assert driver.wait(m.Finished).step == 4
    assert any("no checkpoint" in event.message for event in driver.all(m.Noticed))


def test_resuming_with_other_poses_is_refused(driver: Driver, scene: Path, tmp_path: Path) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=3))
    driver.wait(m.Finished)
    other = write_tiny_scene(tmp_path / "other", photos=10)
    failed = driver.ask(m.ResumeRun(tmp_path / "run", scene=other), m.Failed)
    assert "other poses" in failed.message


# --- changes that wait for a restart -------------------------------------------------------------


def test_changes_that_wait_for_a_restart_still_wait_after_closing_and_resuming(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=3))
    driver.wait(m.Finished)  # saved, so closing has nothing else to write
    driver.ask(m.SetSetting("seed", 7), m.SettingApplied)
    driver.open(scene, tmp_path / "other", start=False)
    driver.post(m.ResumeRun(tmp_path / "run", start=False))
    driver.wait(m.RunStarted, 3)
    applied = driver.wait(m.SettingApplied, 2)
    assert (applied.name, applied.old, applied.new, applied.held) == ("seed", 0, 7, True)
    driver.post(m.Restart(start=False))
    assert driver.wait(m.RunStarted, 4).settings["seed"] == 7


def test_a_change_taken_back_does_not_wait_any_more(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=3))
    driver.wait(m.Finished)
    driver.ask(m.SetSetting("seed", 7), m.SettingApplied)
    driver.ask(m.Save(), m.Saved)
    assert RunFolder(tmp_path / "run").read_facts()[1].held == {"seed": 7}
    driver.ask(m.SetSetting("seed", 0), m.SettingApplied)
    driver.post(m.ResumeRun(tmp_path / "run", start=False))  # the run that is open
    driver.wait(m.RunStarted, 2)
    assert RunFolder(tmp_path / "run").read_facts()[1].held == {}
    assert len(driver.all(m.SettingApplied)) == 2


def test_a_run_is_not_closed_while_changes_that_wait_cannot_be_kept(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=3))
    driver.wait(m.Finished)
    driver.ask(m.SetSetting("seed", 7), m.SettingApplied)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full_disk)
        refused = driver.ask(m.OpenScene(scene, run_folder=tmp_path / "new"), m.CommandRefused)
    assert "changes that wait for a restart are not kept" in refused.reason
    assert driver.state is State.FINISHED


# --- one program at a time -----------------------------------------------------------------------

HOLDER = """
import sys, threading
from pathlib import Path
from engine.messages import State
from tests.engine.driving import quick, running_engine
with running_engine() as driver:
    driver.open(Path(sys.argv[1]), Path(sys.argv[2]), quick(iterations=2))
    driver.reach(State.FINISHED)
    print("open", flush=True)
    threading.Event().wait()
"""


@contextmanager
def open_elsewhere(scene: Path, folder: Path) -> Iterator[int]:
    """A finished run that another process holds open, and that process's id; killed at the end."""
    arguments = [sys.executable, "-c", HOLDER, str(scene), str(folder)]
    with subprocess.Popen(arguments, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            yield other.pid
        finally:
            other.kill()


def test_a_run_open_in_another_process_is_refused_until_that_is_killed(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "mine", quick(iterations=2))
    driver.wait(m.Finished)
    folder = tmp_path / "run"
    with open_elsewhere(scene, folder) as holder:
        before = sorted(folder.rglob("*"))
        refused = driver.ask(m.ResumeRun(folder, (("iterations", 4),)), m.CommandRefused)
        assert str(folder) in refused.reason
        assert f"process {holder} on " in refused.reason
        assert "Close the run there" in refused.reason
        assert sorted(folder.rglob("*")) == before
        assert driver.state is State.FINISHED  # what was open stays open
    driver.post(m.ResumeRun(folder, (("iterations", 4),)))
    assert driver.wait(m.Finished, 2).step == 4


def test_a_run_open_in_this_process_is_refused_and_free_when_that_is_closed(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with running_engine() as other:
        other.open(scene, folder, ENDLESS)
        refused = driver.ask(m.ResumeRun(folder), m.CommandRefused)
        assert "open in this very program" in refused.reason
        assert str(os.getpid()) in refused.reason
        other.until(lambda: other.steps > 3)
        other.post(m.Shutdown())
        other.wait(m.EngineStopped)
    driver.post(m.ResumeRun(folder, start=False))
    driver.reach(State.PAUSED)


def test_a_cancelled_or_failed_load_lets_the_folder_go(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=2))
    driver.wait(m.Finished)
    driver.open(scene, tmp_path / "other", start=False)
    driver.ask(m.ResumeRun(folder, scene=tmp_path / "nowhere"), m.Failed)
    assert f"The run {folder} is as it was" in driver.all(m.Failed)[-1].message
    FolderLock(folder).release()
    driver.reach(State.EMPTY)
    known = len(driver.all(m.StateChanged))
    driver.post(m.ResumeRun(folder))
    driver.post(m.CancelLoading())
    driver.wait(m.StateChanged, known + 2)  # loading, and empty again
    assert driver.state is State.EMPTY
    FolderLock(folder).release()
    driver.post(m.ResumeRun(folder, (("iterations", 3),)))
    assert driver.wait(m.Finished, 2).step == 3
    with pytest.raises(RunFolderError, match="open in this very program"):
        FolderLock(folder)


def test_a_run_whose_logs_cannot_be_opened_lets_the_folder_go(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a log that nobody can read")

    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=2))
    driver.wait(m.Finished)
    driver.open(scene, tmp_path / "other", start=False)
    with monkeypatch.context() as patch:
        patch.setattr(run_opening, "OpenRun", refuse)
        failed = driver.ask(m.ResumeRun(folder), m.Failed)
    assert "a log that nobody can read" in failed.message
    FolderLock(folder).release()


def test_a_run_of_another_gpu_goes_on_where_there_is_none_of_that_number(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=2, backend="cpu", gpu=1))
    driver.wait(m.Finished)
    driver.open(scene, tmp_path / "other", start=False)
    driver.post(m.ResumeRun(tmp_path / "run", (("gpu", 0),), start=False))
    assert driver.wait(m.RunStarted, 3).settings["gpu"] == 0
