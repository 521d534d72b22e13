"""Ending runs and the engine: what is saved first, what is given up, and what then stays open."""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import messages as m
from engine import open_run
from engine.messages import Command, State
from engine.session import Session
from tests.engine.driving import ENDLESS, SECONDS, Driver, full_disk, quick, running_engine
from tests.promises import quickest


def test_shutdown_while_training_saves_and_leaves_no_thread(scene: Path, tmp_path: Path) -> None:
    folders = (tmp_path / f"run-{number}" for number in itertools.count())

    def seconds_to_close() -> float:
        before = set(threading.enumerate())
        with running_engine() as driver:
            driver.open(scene, next(folders), ENDLESS)
            driver.until(lambda: driver.steps > 3)
            start = time.monotonic()
            driver.post(m.Shutdown())
            driver.wait(m.EngineStopped)
            assert driver.engine.join(SECONDS)
            seconds = time.monotonic() - start
        assert driver.all(m.StateChanged)[-1].new is State.CLOSING
        assert driver.all(m.Saved)[-1].path.is_file()
        assert set(threading.enumerate()) <= before
        return seconds

    # a step takes milliseconds and the file is small; 2 s is the promise to the user
    assert quickest(seconds_to_close, 2.0) < 2.0


def test_shutdown_without_saving_writes_no_checkpoint(scene: Path, tmp_path: Path) -> None:
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", ENDLESS)
        driver.until(lambda: driver.steps > 3)
        driver.post(m.Shutdown(save=False))
        driver.wait(m.EngineStopped)
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_a_slow_save_is_given_up_when_asked_to_close_without_saving(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving = threading.Event()
    real = open_run.save_checkpoint

    def slow(*arguments: object, verify: bool) -> Iterator[str]:
        for name in real(*arguments, verify=verify):  # type: ignore[arg-type]
            saving.set()
            time.sleep(0.05)
            yield name

    monkeypatch.setattr(open_run, "save_checkpoint", slow)
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", ENDLESS)
        driver.until(lambda: driver.steps > 3)
        driver.post(m.Shutdown(save=True))
        assert saving.wait(SECONDS)
        driver.post(m.Shutdown(save=False))
        driver.wait(m.EngineStopped)
    assert not driver.all(m.Saved)
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_an_export_is_given_up_when_asked_to_close_without_saving(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.export.splat_files.CHUNK", 1)  # a phase for each splat
    path = tmp_path / "splats.ply"
    partial = tmp_path / "splats.ply.part"
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", ENDLESS)
        driver.until(lambda: driver.steps > 3)
        real, served = Session.serve_view, []

        def serve(session: Session) -> bool:
            if partial.exists() and not served:
                served.append(partial)
                driver.post(m.Shutdown(save=False))
            return real(session)

        monkeypatch.setattr(Session, "serve_view", serve)
        driver.post(m.Export(path))
        driver.wait(m.EngineStopped)
    assert served
    assert not driver.all(m.Exported)
    assert not path.exists()
    assert not partial.exists()


@pytest.mark.parametrize("kind", [m.OpenScene, m.ResumeRun, m.Restart])
def test_a_run_that_cannot_be_saved_is_not_replaced(
    driver: Driver,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Command],
) -> None:
    driver.open(scene, tmp_path / "old", quick(iterations=2))
    driver.wait(m.Finished)
    driver.open(scene, tmp_path / "run", ENDLESS, start=False)
    driver.post(m.StepN(3))
    driver.reach(State.PAUSED)
    commands = {
        m.OpenScene: m.OpenScene(scene, run_folder=tmp_path / "new"),
        m.ResumeRun: m.ResumeRun(tmp_path / "old"),
        m.Restart: m.Restart(),
    }
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full_disk)
        refused = driver.ask(commands[kind], m.CommandRefused)
    assert "could not be saved" in refused.reason
    assert refused.path == tmp_path / "run" / "checkpoints" / "step-000003.safetensors"
    assert "No space left on device" in refused.reason
    assert driver.state is State.PAUSED
    assert not driver.all(m.Saved)[1:]
    assert driver.ask(m.Save(), m.Saved).path == (
        tmp_path / "run" / "checkpoints" / "step-000003.safetensors"
    )
    driver.post(commands[kind])
    driver.wait(m.RunStarted, 3)


def test_closing_with_a_failed_save_waits_for_a_word(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", ENDLESS)
        driver.until(lambda: driver.steps > 3)
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full_disk)
            assert "No space left" in driver.ask(m.Shutdown(save=True), m.Failed).message
            driver.ask(m.Shutdown(save=True), m.Failed)
        assert driver.state is State.CLOSING
        assert not driver.all(m.EngineStopped)
        driver.post(m.Shutdown(save=True))
        driver.wait(m.EngineStopped)
    assert driver.all(m.Saved)[-1].path.is_file()


def test_closing_without_saving_ends_an_engine_whose_save_failed(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", ENDLESS)
        driver.until(lambda: driver.steps > 3)
        monkeypatch.setattr("os.fsync", full_disk)
        driver.ask(m.Shutdown(save=True), m.Failed)
        driver.post(m.Shutdown(save=False))
        driver.wait(m.EngineStopped)
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_a_run_whose_disk_is_full_is_saved_whole_in_another_folder(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, other = tmp_path / "run-7", tmp_path / "stick"
    other.mkdir()
    (other / "pictures.txt").write_text("of the holidays")
    real = os.fsync

    def full_disk_of_run(descriptor: int) -> None:
        if not (other / "run-1").exists():
            full_disk(descriptor)
        real(descriptor)

    with running_engine() as driver:
        driver.open_paused(scene, old, ENDLESS)
        monkeypatch.setattr("os.fsync", full_disk_of_run)
        driver.ask(m.Shutdown(save=True), m.Failed)
        gone = driver.ask(m.Shutdown(save=True, elsewhere=old / "run.toml"), m.Failed)
        assert "run.toml" in gone.message
        driver.post(m.Shutdown(save=True, elsewhere=other))
        driver.wait(m.EngineStopped)
        new = driver.all(m.Saved)[-1].path.parent.parent
    assert new == other / "run-1"
    assert (other / "pictures.txt").is_file()
    assert (old / "run.toml").is_file()
    monkeypatch.undo()
    with running_engine() as driver:
        driver.post(m.ResumeRun(new, start=False))
        assert driver.wait(m.RunStarted).step == 3
        assert list(driver.wait(m.HistoryRead).steps) == [1, 2, 3]


def test_what_fails_elsewhere_too_leaves_nothing_there_and_the_run_where_it_was(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "stick"
    other.mkdir()
    with running_engine() as driver:
        driver.open_paused(scene, tmp_path / "run", ENDLESS)
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full_disk)
            failed = driver.ask(m.Shutdown(save=True, elsewhere=other), m.Failed)
        assert failed.path is not None
        assert failed.path.is_relative_to(other)
        assert list(other.iterdir()) == []
        driver.post(m.Shutdown(save=True))
        driver.wait(m.EngineStopped)
    assert driver.all(m.Saved)[-1].path.parent.parent == tmp_path / "run"
