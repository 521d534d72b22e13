"""Loading, cancelling and replacing scenes: nothing hangs, leaks or is mixed up."""

import gc
import threading
import time
import weakref
from pathlib import Path

import pytest

from engine import messages as m
from engine import scene_loader
from engine.dataset.photo_store import PhotoStore
from engine.errors import LoadingCancelled
from engine.messages import State
from engine.training.trainer import Trainer
from tests.engine.dataset.scene_files import make_views, write_colmap
from tests.engine.driving import ENDLESS, SECONDS, SMALL, Driver, quick
from tests.promises import quickest


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

    def seconds_to_cancel() -> float:
        opening = m.OpenScene(scene, ENDLESS, run_folder=tmp_path / "run")
        opened = driver.ask(opening, m.SceneOpened)  # before the photos are decoded
        assert len(opened.photos) == 8
        start = time.monotonic()
        driver.post(m.CancelLoading())
        driver.reach(State.EMPTY)
        return time.monotonic() - start

    assert quickest(seconds_to_cancel, 0.5) < 0.5
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


def test_the_loader_delivers_nothing_after_a_cancel(scene: Path) -> None:
    reports: list[object] = []
    request = scene_loader.LoadRequest(1, scene, quick(), None, start=True)
    loader = scene_loader.SceneLoader(request, reports.append)
    loader.cancel()
    loader.start()
    assert loader.join(SECONDS)
    assert reports == []


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


def test_more_sparse_points_than_the_splat_cap_are_told(driver: Driver, tmp_path: Path) -> None:
    write_colmap(tmp_path / "scene", make_views(8, points=1_100, lens=SMALL))
    driver.open(tmp_path / "scene", tmp_path / "run", quick(max_splats=1_000), start=False)
    driver.reach(State.READY)
    said = [event.message for event in driver.all(m.Noticed)]
    assert any("1,000 of 1,100 sparse points" in message for message in said)
