"""Errors while a run is open: told in words, with the last good state kept."""

import errno
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import messages as m
from engine.engine_thread import Engine
from engine.errors import RunFolderError, TrainingError
from engine.export.splat_files import read_splats
from engine.messages import State
from engine.run.folder_lock import LOCK_NAME, FolderLock
from engine.run.journal import Journal
from engine.run.metrics_log import MetricsLog
from engine.training.trainer import Trainer
from tests.engine.driving import ENDLESS, SECONDS, Driver, full_disk, quick


def break_step(monkeypatch: pytest.MonkeyPatch, at: int, error: Exception) -> None:
    """The step number `at` raises `error` in its middle."""
    real = Trainer._phases

    def phases(self: Trainer) -> Iterator[object]:
        inner = real(self)
        yield next(inner)
        if self.step + 1 == at:
            raise error
        return (yield from inner)

    monkeypatch.setattr(Trainer, "_phases", phases)


def test_an_error_in_a_step_keeps_a_run_that_can_be_saved_and_exported(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, 6, ZeroDivisionError("the plug"))
    driver.open(scene, tmp_path / "run", ENDLESS)
    failed = driver.wait(m.Failed)
    driver.reach(State.FAILED)
    assert "ZeroDivisionError: the plug. The model of step 5 is kept" in failed.message
    assert "Traceback" in failed.details
    assert failed.step == 5
    assert driver.ask(m.Save(), m.Saved).step == 5
    assert driver.ask(m.Export(tmp_path / "x.ply"), m.Exported).splats == 40
    monkeypatch.undo()
    driver.post(m.Start())
    driver.until(lambda: driver.steps > 8)


def test_an_engine_error_is_told_in_its_own_words(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, 2, TrainingError("the loss is not finite", path=Path("photo.png")))
    driver.open(scene, tmp_path / "run", ENDLESS)
    failed = driver.wait(m.Failed)
    assert failed.message == "the loss is not finite"
    assert failed.path == Path("photo.png")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 1 EB")]
)
def test_running_out_of_memory_pauses_and_keeps_the_model(
    driver: Driver,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    break_step(monkeypatch, 4, error)
    driver.open(scene, tmp_path / "run", ENDLESS)
    failed = driver.wait(m.Failed)
    driver.reach(State.PAUSED)
    assert "Memory ran out" in failed.message
    assert "splat cap" in failed.message
    monkeypatch.undo()
    driver.post(m.Start())
    driver.until(lambda: driver.steps > 5)


def test_running_out_of_memory_in_a_view_leaves_training_alone(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*arguments: object) -> np.ndarray:
        raise MemoryError

    monkeypatch.setattr("engine.run_pictures._drawn", draw)
    driver.open(scene, tmp_path / "run", ENDLESS)
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.until(lambda: any("coarser" in event.message for event in driver.all(m.Noticed)))
    known = driver.steps
    driver.until(lambda: driver.steps > known + 5)
    assert not driver.all(m.Failed)


def test_a_view_that_cannot_be_drawn_fails_once_and_training_can_go_on(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*arguments: object) -> np.ndarray:
        raise ValueError("no such colour")

    monkeypatch.setattr("engine.run_pictures._drawn", draw)
    driver.open(scene, tmp_path / "run", ENDLESS)
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.reach(State.FAILED)
    assert "no such colour" in driver.wait(m.Failed).message
    assert driver.ask(m.Save(), m.Saved).step == driver.steps
    driver.post(m.Start())
    known = driver.steps
    driver.until(lambda: driver.steps > known + 3)
    assert len(driver.all(m.Failed)) == 1


def test_an_export_into_a_missing_folder_says_nothing_of_space(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", ENDLESS)
    failed = driver.ask(m.Export(tmp_path / "nowhere" / "splats.ply"), m.Failed)
    assert "No such file or directory" in failed.message
    assert "Choose another place" in failed.message
    assert "space" not in failed.message


def test_a_run_folder_that_somebody_removed_is_made_anew_by_the_next_save(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=1_000_000, evaluation_interval=0))
    driver.ask(m.Save(), m.Saved)
    shutil.rmtree(folder)
    saved = driver.ask(m.Save(), m.Saved)
    assert saved.path.is_file()
    assert (folder / "run.toml").is_file()
    told = [event.message for event in driver.all(m.Noticed) if "was gone" in event.message]
    assert [str(folder) in message for message in told] == [True]
    with pytest.raises(RunFolderError, match="open in this very program"):
        FolderLock(folder)  # a second program could not write there either
    metrics = (folder / "metrics.jsonl").read_text()
    steps = [json.loads(line)["step"] for line in metrics.splitlines()]
    assert steps == list(range(1, steps[-1] + 1))  # those before the folder was gone as well


def test_a_run_folder_that_another_program_has_taken_over_is_not_written(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open_paused(scene, folder, ENDLESS)
    shutil.rmtree(folder)
    folder.mkdir()
    other = FolderLock(folder)
    try:
        assert "open in this very program" in driver.ask(m.Save(), m.Failed).message
    finally:
        other.release()
    assert [path.name for path in folder.iterdir()] == [LOCK_NAME]


def test_a_full_disk_stops_no_training_and_spoils_no_old_file(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.open(scene, tmp_path / "run", ENDLESS)
    driver.until(lambda: driver.steps > 2)
    good = driver.ask(m.Export(tmp_path / "splats.ply"), m.Exported).path
    before = good.read_bytes()

    monkeypatch.setattr("os.fsync", full_disk)
    failed = driver.ask(m.Save(), m.Failed)
    assert "No space left on device" in failed.message
    assert failed.path is not None
    assert not failed.path.exists()
    message = driver.ask(m.Export(good), m.Failed).message
    assert "No space left" in message
    assert "Free some space or choose another place" in message
    assert good.read_bytes() == before
    known = driver.steps
    driver.until(lambda: driver.steps > known + 3)
    assert driver.state is State.TRAINING
    monkeypatch.undo()
    assert driver.ask(m.Save(), m.Saved).path.is_file()
    assert list(tmp_path.rglob("*.part")) == []


def test_a_log_that_cannot_be_written_is_told_once_and_stops_nothing(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(MetricsLog, "append", full)
    monkeypatch.setattr(Journal, "record", full)
    driver.open(scene, tmp_path / "run", quick(iterations=12))
    driver.wait(m.Finished)
    told = [event.message for event in driver.all(m.Noticed) if "No space left" in event.message]
    assert len(told) == 1
    assert "Training goes on" in told[0]


def test_a_listener_that_fails_does_not_end_the_engine(scene: Path, tmp_path: Path) -> None:
    engine = Engine()

    def gone() -> None:
        raise RuntimeError("the window is gone")

    engine.set_wake(gone)
    engine.start()
    engine.post(m.OpenScene(scene, quick(iterations=3), run_folder=tmp_path / "run"))
    export = tmp_path / "run" / "exports" / "step-000003.ply"
    end = time.monotonic() + SECONDS
    while not export.exists() and time.monotonic() < end:
        time.sleep(0.02)
    engine.post(m.Shutdown())
    assert engine.join(SECONDS)
    assert export.exists()


def test_nobody_needs_to_listen(scene: Path, tmp_path: Path) -> None:
    engine = Engine()
    engine.start()
    engine.post(m.OpenScene(scene, quick(iterations=30), run_folder=tmp_path / "run"))
    end = time.monotonic() + SECONDS
    export = tmp_path / "run" / "exports" / "step-000030.ply"
    while not export.exists() and time.monotonic() < end:
        time.sleep(0.02)
    engine.post(m.Shutdown())
    assert engine.join(SECONDS)
    assert len(read_splats(export).splats) > 0
