"""Opening, replacing, cancelling, failing and closing: nothing hangs, leaks or is lost."""

import errno
import gc
import random
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import messages as m
from engine import open_run, scene_loader
from engine.dataset.photo_store import PhotoStore
from engine.engine_thread import Engine
from engine.errors import LoadingCancelled, TrainingError
from engine.export.splat_files import read_splats
from engine.inbox import Inbox, Report
from engine.messages import Command, State
from engine.run.journal import Journal
from engine.run.metrics_log import MetricsLog
from engine.session import Session
from engine.states import is_legal
from engine.training.trainer import Trainer
from tests.engine.dataset.scene_files import make_views, write_colmap
from tests.engine.driving import SECONDS, SMALL, Driver, quick, running_engine, write_tiny_scene

ENDLESS = quick(iterations=1_000_000)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def driver() -> Iterator[Driver]:
    with running_engine() as driver:
        yield driver


def test_shutdown_while_training_saves_and_leaves_no_thread(scene: Path, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", ENDLESS)
        driver.until(lambda: driver.steps > 3)
        driver.post(m.Shutdown())
        start = time.monotonic()
        driver.wait(m.EngineStopped)
        assert driver.engine.join(SECONDS)
        # a step takes milliseconds and the file is small; 2 s is the promise to the user
        assert time.monotonic() - start < 2.0
    assert driver.all(m.StateChanged)[-1].new is State.CLOSING
    assert driver.all(m.Saved)[-1].path.is_file()
    assert set(threading.enumerate()) <= before


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


def test_a_second_scene_replaces_the_first_whose_objects_die(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    born: list[weakref.ref[object]] = []
    for kind in (Trainer, PhotoStore):
        real = kind.__init__

        def noted(self: object, *args: object, real: object = real, **kwargs: object) -> None:
            born.append(weakref.ref(self))
            real(self, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(kind, "__init__", noted)
    driver.open(scene, tmp_path / "first", ENDLESS)
    driver.until(lambda: driver.steps > 3)
    driver.open(scene, tmp_path / "second", quick(iterations=5))
    driver.wait(m.Finished)
    assert driver.all(m.Saved)[0].run_id == 1  # steps were done since, so it was saved
    gc.collect()
    assert [ref() is None for ref in born] == [True, True, False, False]


def test_a_restart_decodes_no_photo_again(driver: Driver, scene: Path, tmp_path: Path) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=3))
    driver.wait(m.Finished)
    stages = [event.stage for event in driver.all(m.LoadingProgressed)]
    assert any("Decoding" in stage for stage in stages)
    driver.post(m.Restart())
    driver.wait(m.Finished, 2)
    again = [event for event in driver.all(m.LoadingProgressed) if event.run_id == 2]
    assert not any("Decoding" in event.stage for event in again)


def test_loading_is_cancelled_within_half_a_second(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(self: PhotoStore, progress: object, cancelled: object) -> object:
        while not cancelled():  # type: ignore[operator]
            time.sleep(0.01)
        raise LoadingCancelled("cancelled")

    monkeypatch.setattr(PhotoStore, "load_all", endless)
    driver.post(m.OpenScene(scene, ENDLESS, run_folder=tmp_path / "run"))
    opened = driver.wait(m.SceneOpened)  # before the photos are decoded
    assert len(opened.photos) == 8
    start = time.monotonic()
    driver.post(m.CancelLoading())
    driver.reach(State.EMPTY)
    assert time.monotonic() - start < 0.5
    assert not (tmp_path / "run").exists()
    monkeypatch.undo()
    driver.open(scene, tmp_path / "run", quick(iterations=2))
    driver.wait(m.Finished)


def test_opening_another_scene_while_one_loads_drops_the_first(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        driver.post(m.OpenScene(scene, quick(iterations=2), run_folder=tmp_path / name))
    finished = driver.wait(m.Finished)
    assert finished.run_id == 3
    assert [event.run_id for event in driver.all(m.RunStarted)] == [3]
    assert not (tmp_path / "a").exists()


def test_a_missing_scene_fails_with_its_name_and_leaves_the_engine_usable(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    failed = driver.ask(m.OpenScene(tmp_path / "nowhere", run_folder=tmp_path / "run"), m.Failed)
    assert "nowhere" in failed.message
    assert "Traceback" in failed.details
    driver.reach(State.EMPTY)
    driver.open(scene, tmp_path / "run", quick(iterations=2))
    driver.wait(m.Finished)


def test_an_error_in_a_step_keeps_a_run_that_can_be_saved_and_exported(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, 6, ZeroDivisionError("the plug"))
    driver.open(scene, tmp_path / "run", ENDLESS)
    failed = driver.wait(m.Failed)
    driver.reach(State.FAILED)
    assert "ZeroDivisionError: the plug" in failed.message
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

    monkeypatch.setattr("engine.run_pictures._draw", draw)
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

    monkeypatch.setattr("engine.run_pictures._draw", draw)
    driver.open(scene, tmp_path / "run", ENDLESS)
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.reach(State.FAILED)
    assert "no such colour" in driver.wait(m.Failed).message
    assert driver.ask(m.Save(), m.Saved).step == driver.steps
    driver.post(m.Start())
    known = driver.steps
    driver.until(lambda: driver.steps > known + 3)
    assert len(driver.all(m.Failed)) == 1


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


def test_a_full_disk_stops_no_training_and_spoils_no_old_file(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.open(scene, tmp_path / "run", ENDLESS)
    driver.until(lambda: driver.steps > 2)
    good = driver.ask(m.Export(tmp_path / "splats.ply"), m.Exported).path
    before = good.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    failed = driver.ask(m.Save(), m.Failed)
    assert "No space left on device" in failed.message
    assert failed.path is not None
    assert not failed.path.exists()
    assert "No space left" in driver.ask(m.Export(good), m.Failed).message
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
    assert not list(folder.rglob("*.part"))
    assert any("step 10" in event.message for event in driver.all(m.Noticed))
    assert any("1 damaged line" in event.message for event in driver.all(m.Noticed))
    driver.post(m.Start())
    assert driver.wait(m.Finished, 2).step == 20
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 20


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


def test_a_stop_posted_right_behind_an_evaluation_ends_it(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    real = Inbox.take

    def both_at_once(inbox: Inbox) -> list[Command | Report]:
        items = real(inbox)
        if any(isinstance(item, m.Evaluate) for item in items) and not asked:
            asked.append(True)
            items.append(m.Stop())
        return items

    monkeypatch.setattr(Inbox, "take", both_at_once)
    driver.open(scene, tmp_path / "run", start=False)
    driver.post(m.StepN(1))
    driver.reach(State.PAUSED)
    driver.ask(m.Evaluate(), m.Finished)
    assert asked
    assert not driver.all(m.Evaluated)


def test_more_sparse_points_than_the_splat_cap_are_told(driver: Driver, tmp_path: Path) -> None:
    write_colmap(tmp_path / "scene", make_views(8, points=1_100, lens=SMALL))
    driver.open(tmp_path / "scene", tmp_path / "run", quick(max_splats=1_000), start=False)
    driver.reach(State.READY)
    said = [event.message for event in driver.all(m.Noticed)]
    assert any("1,000 of 1,100 sparse points" in message for message in said)


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


def random_command(chance: random.Random, scene: Path, tmp_path: Path, number: int) -> Command:
    folder = tmp_path / f"run-{number}"
    rates = ("opacity_lr", "scale_lr", "ssim_weight", "iterations", "seed", "nonsense")
    kinds: list[Command] = [
        *(m.Start(), m.Pause(), m.Start(), m.Pause(), m.Stop(), m.StepN(chance.randint(-1, 5))),
        *(m.RunUntil(chance.randint(0, 60)), m.ContinueFor(chance.randint(0, 30))),
        *(m.SetSetting(chance.choice(rates), chance.choice([0.01, 1, 40, -1.0])) for _ in range(5)),
        *(m.ResetOpacity(), m.PruneNow(), m.DensifyNow(), m.Evaluate(), m.Save()),
        *(m.Export(tmp_path / "out.ply"), m.CancelLoading()),
    ]
    rare: list[Command] = [
        m.OpenScene(scene, quick(), run_folder=folder),
        m.OpenScene(tmp_path / "nowhere", run_folder=folder),
        m.Restart(),
        m.ResumeRun(tmp_path / "run-0"),
    ]
    return chance.choice(rare) if chance.random() < 0.05 else chance.choice(kinds)


@pytest.mark.parametrize("seed", range(5))
def test_300_random_commands_crash_nothing_and_leave_consistent_states(
    seed: int, scene: Path, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run-0", quick())
        for number in range(1, 301):
            driver.post(random_command(chance, scene, tmp_path, number))
            if chance.random() < 0.3:
                view = m.View(number, driver.camera(), moving=chance.random() < 0.5)
                driver.engine.request_view(view)
            time.sleep(chance.uniform(0.0, 0.01))  # 1 to 50 ms, scaled down to keep tests short
            driver.take()
        last = m.SetSetting("rotation_lr", 0.002)
        driver.post(last)
        driver.until(lambda: is_answered(driver, last))
    assert driver.all(m.CommandRefused)
    check_states(driver)
    unexpected = [event for event in driver.all(m.Failed) if "unexpected" in event.message]
    assert unexpected == []


def is_answered(driver: Driver, command: m.SetSetting) -> bool:
    applied = any(event.name == command.name for event in driver.all(m.SettingApplied))
    return applied or any(event.command == command for event in driver.all(m.CommandRefused))


def check_states(driver: Driver) -> None:
    """Each change starts where the last one ended; steps never go back within a run."""
    state, steps = State.EMPTY, {0: 0}
    for event in driver.events:
        if isinstance(event, m.StateChanged):
            assert event.old is state
            state = event.new
        elif isinstance(event, m.Stepped):
            assert state is State.TRAINING
            assert int(event.steps[0]) == steps.get(event.run_id, int(event.steps[0]) - 1) + 1
            steps[event.run_id] = int(event.steps[-1])
        elif isinstance(event, m.CommandRefused) and not is_legal(event.command, state):
            assert event.reason


def test_the_loader_delivers_nothing_after_a_cancel(scene: Path) -> None:
    reports: list[object] = []
    request = scene_loader.LoadRequest(1, scene, quick(), None, start=True)
    loader = scene_loader.SceneLoader(request, reports.append)
    loader.cancel()
    loader.start()
    assert loader.join(SECONDS)
    assert reports == []


def full_disk(descriptor: int) -> None:
    """Takes the place of `os.fsync`."""
    raise OSError(errno.ENOSPC, "No space left on device")


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


def test_a_cancelled_load_leaves_threads_and_priority_alone(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[int, str]] = []
    real = PhotoStore.load_all
    decoding = threading.Event()

    def wait(self: PhotoStore, progress: object, cancelled: object) -> object:
        decoding.set()
        while not cancelled():  # type: ignore[operator]
            time.sleep(0.01)
        raise LoadingCancelled("cancelled")

    def note(count: int) -> None:
        forced.append((count, threading.current_thread().name))

    monkeypatch.setattr("engine.device.cuda_rasterizer.set_threads", note)
    monkeypatch.setattr(PhotoStore, "load_all", wait)
    driver.post(m.OpenScene(scene, quick(threads=2), run_folder=tmp_path / "run"))
    assert decoding.wait(SECONDS)
    driver.post(m.CancelLoading())
    driver.reach(State.EMPTY)
    monkeypatch.setattr(PhotoStore, "load_all", real)
    driver.open(scene, tmp_path / "run", quick(iterations=2))
    assert forced == [(1, "engine")]
