import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.dataset import photo_store
from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore, photo_bytes
from engine.dataset.scene import Distortion, Scene
from engine.dataset.undistort import sampling_grid
from engine.errors import LoadingCancelled, SceneError
from engine.settings import Settings
from tests.child_process import BUSY_SECONDS
from tests.engine.dataset.scene_files import PINHOLE, make_views, write_blender, write_colmap
from tests.promises import quickest

BENT = Distortion("SIMPLE_RADIAL", (55.0, 30.0, 20.0, 0.1), 60, 40)


def scene_in(folder: Path, count: int = 12, lens: Distortion = BENT) -> Scene:
    names = [f"{index:02d}.jpg" for index in range(count)]
    write_colmap(folder, make_views(count, lens=lens, names=names))
    return load_scene(folder, Settings())


def stored(scene: Scene, threads: int = 2) -> PhotoStore:
    return PhotoStore(scene, Settings().changed("threads", threads))


def test_photos_have_the_size_of_their_cameras(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    store = stored(scene)
    assert store.load_all() is scene
    for index, photo in enumerate(scene.photos):
        assert store.rgb(index).shape == (photo.camera.height, photo.camera.width, 3)
        assert store.alpha(index) is None
    assert sum(store.rgb(index).nbytes for index in range(12)) == photo_bytes(scene)
    store.close()
    with pytest.raises(RuntimeError, match="after close"):
        store.rgb(0)


def test_the_number_of_threads_changes_no_bit(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    stores = [stored(scene, threads) for threads in (1, 5)]
    for store in stores:
        store.load_all()
    for index in range(len(scene.photos)):
        assert np.array_equal(stores[0].rgb(index), stores[1].rgb(index))


def test_photos_are_undistorted_by_no_more_threads_than_memory_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Noted(ThreadPoolExecutor):
        def __init__(self, threads: int, **options: str) -> None:
            asked.append(threads)
            super().__init__(threads, **options)

    monkeypatch.setattr(photo_store, "ThreadPoolExecutor", Noted)
    bent, straight = scene_in(tmp_path / "a"), scene_in(tmp_path / "b", lens=PINHOLE)
    # 60 bytes for each of 60x40 pixels, of half a megabyte
    monkeypatch.setattr(photo_store, "available_bytes", lambda: 1_000_000)
    for scene, threads in ((bent, 8), (bent, 2), (straight, 8)):
        stored(scene, threads).load_all()
    monkeypatch.setattr(photo_store, "available_bytes", lambda: 100_000)
    stored(bent, 8).load_all()
    assert asked == [3, 2, 8, 1]


def test_nothing_of_undistorting_stays_in_memory(tmp_path: Path) -> None:
    stored(scene_in(tmp_path)).load_all()
    assert sampling_grid.cache_info().currsize == 0


def test_alpha_is_kept_where_a_photo_has_it(tmp_path: Path) -> None:
    scene = load_scene(write_blender(tmp_path, make_views()), Settings())
    store = stored(scene)
    store.load_all()
    alpha = store.alpha(0)
    assert alpha is not None
    assert (alpha == 200).all()


def test_pixels_cannot_be_written(tmp_path: Path) -> None:
    store = stored(scene_in(tmp_path))
    store.load_all()
    with pytest.raises(ValueError, match="read-only"):
        store.rgb(0)[0] = 1


def test_each_broken_photo_is_left_out_with_one_finding_by_name(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    for name in ("03.jpg", "08.jpg"):
        path = tmp_path / "images" / name
        path.write_bytes(path.read_bytes()[:-300])
    store = stored(scene, 4)
    usable = store.load_all()
    assert [photo.name for photo in usable.photos] == [
        photo.name for photo in scene.photos if photo.name not in ("03.jpg", "08.jpg")
    ]
    broken = [item for item in usable.findings if item.code == "photo_unreadable"]
    assert [item.file for item in broken] == ["03.jpg", "08.jpg"]
    assert "runcated" in broken[0].message
    # the indices are those of the scene that came back
    alone = stored(scene_in(tmp_path / "again"))
    alone.load_all()
    assert np.array_equal(store.rgb(3), alone.rgb(4))


def test_a_broken_photo_is_not_counted_among_the_undistorted(tmp_path: Path) -> None:
    def told(scene: Scene) -> list[str]:
        codes = ("photos_undistorted", "usable_views")
        return [item.message for item in scene.findings if item.code in codes]

    scene = scene_in(tmp_path)
    assert told(scene)[0].startswith("12 photos were undistorted")
    path = tmp_path / "images" / "03.jpg"
    path.write_bytes(path.read_bytes()[:-300])
    undistorted, usable = told(stored(scene).load_all())
    assert undistorted.startswith("11 photos were undistorted")
    assert usable.startswith("11 of 12 photos")


def test_with_no_training_photo_left_loading_fails_by_name(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, 3)
    for photo in scene.training:
        photo.path.write_bytes(photo.path.read_bytes()[:-300])
    with pytest.raises(SceneError, match=r"left to train on: 2 of 3 .*01\.jpg cannot be decoded"):
        stored(scene).load_all()


def test_held_out_photos_alone_may_lose_some_but_not_all(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, 17)
    alone = dataclasses.replace(scene, photos=scene.held_out)
    assert len(alone.photos) == 3
    alone.photos[0].path.write_bytes(b"")
    assert len(stored(alone).load_all().photos) == 2
    for photo in alone.photos:
        photo.path.write_bytes(b"")
    with pytest.raises(SceneError, match="left to measure on: 3 of 3"):
        stored(alone).load_all()


def test_progress_counts_to_the_end_in_the_callers_thread(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def progress(stage: str, file: str, done: int, total: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append((file, done, total))

    stored(scene_in(tmp_path)).load_all(progress)
    assert [done for _, done, _ in told] == list(range(13))
    assert {file for file, _, _ in told} == {f"{index:02d}.jpg" for index in range(12)}


def test_a_cancel_works_within_half_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_in(tmp_path, 8)
    release = threading.Event()

    def slow(photo: object) -> object:
        release.wait(BUSY_SECONDS)
        raise SceneError("not reached in time")

    monkeypatch.setattr(photo_store, "load_photo", slow)

    def seconds_to_cancel() -> float:
        cancelled = time.monotonic() + 0.1
        with pytest.raises(LoadingCancelled):
            stored(scene).load_all(cancelled=lambda: time.monotonic() > cancelled)
        return time.monotonic() - cancelled

    try:
        # asked every 0.1 s while decoders are stuck
        assert quickest(seconds_to_cancel, 0.5) < 0.5
    finally:
        release.set()


def test_loading_twice_decodes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(scene_in(tmp_path))
    store.load_all()
    monkeypatch.setattr(photo_store, "load_photo", None)
    assert len(store.load_all().photos) == 12


def test_too_little_memory_is_told_before_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_in(tmp_path)
    monkeypatch.setattr(photo_store, "available_bytes", lambda: 1000)
    monkeypatch.setattr(photo_store, "load_photo", None)
    with pytest.raises(SceneError, match=r"\(12\) need .* Lower the resolution"):
        stored(scene).load_all()
