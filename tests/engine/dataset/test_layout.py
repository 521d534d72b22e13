"""What a user may name, and what is said where there is no scene."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.dataset.load import load_scene
from engine.errors import LoadingCancelled, SceneError
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    make_views,
    write_blender,
    write_colmap,
    write_photos,
    write_transforms,
)
from tests.engine.ply_files import write_ply


@pytest.mark.parametrize(
    "model", ["sparse/0", "sparse", "sparse/3", "colmap/sparse/0", "sparse_txt/0", "colmap"]
)
def test_a_colmap_scene_is_found_in_its_usual_places(tmp_path: Path, model: str) -> None:
    write_colmap(tmp_path / "garden", make_views(9), model=model)
    scene = load_scene(tmp_path / "garden", Settings())
    assert (scene.name, len(scene.photos)) == ("garden", 9)


@pytest.mark.parametrize(
    "named", ["sparse/0", "sparse", "images", "sparse/0/images.bin", "sparse/0/cameras.bin"]
)
def test_a_part_of_a_colmap_scene_may_be_named(tmp_path: Path, named: str) -> None:
    write_colmap(tmp_path / "garden", make_views(9))
    scene = load_scene(tmp_path / "garden" / named, Settings())
    assert (scene.name, len(scene.photos)) == ("garden", 9)


def test_a_relative_path_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_colmap(tmp_path / "garden", make_views(9))
    monkeypatch.chdir(tmp_path / "garden" / "sparse" / "0")
    assert len(load_scene(Path(), Settings()).photos) == 9


@pytest.mark.parametrize("named", ["", "transforms_train.json", "transforms_test.json"])
def test_a_blender_scene_is_found_by_folder_or_file(tmp_path: Path, named: str) -> None:
    write_blender(tmp_path / "lego", make_views(10))
    scene = load_scene(tmp_path / "lego" / named, Settings())
    assert (scene.name, len(scene.training), len(scene.held_out)) == ("lego", 7, 3)


def test_of_two_formats_colmap_is_used_and_said(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    write_transforms(tmp_path, make_views(5))
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 9
    (note,) = [item for item in scene.findings if item.code == "two_formats"]
    assert note.file == "transforms.json"
    assert len(load_scene(tmp_path / "transforms.json", Settings()).photos) == 5


def refused(path: Path) -> str:
    with pytest.raises(SceneError) as caught:
        load_scene(path, Settings())
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    assert "does not exist; expected a COLMAP model" in refused(tmp_path / "gone")


def test_an_empty_folder_is_called_empty(tmp_path: Path) -> None:
    assert "is an empty folder" in refused(tmp_path)


@pytest.mark.parametrize("inside", ["", "images"])
def test_photos_alone_are_told_what_poses_are(tmp_path: Path, inside: str) -> None:
    write_photos(tmp_path / inside, make_views(4))
    text = refused(tmp_path)
    assert "holds 4 photos" in text
    assert "no poses" in text
    assert "Run COLMAP" in text


def test_a_folder_of_something_else_lists_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert "found notes.txt" in refused(tmp_path)


def test_a_single_file_is_no_scene(tmp_path: Path) -> None:
    path = tmp_path / "movie.mp4"
    path.write_bytes(b"\0")
    assert "single file, not a scene" in refused(path)


def test_splats_and_clouds_are_told_apart(tmp_path: Path) -> None:
    splats = np.zeros(1, dtype=[(name, "f4") for name in ("x", "opacity", "scale_0", "rot_0")])
    write_ply(tmp_path / "splats.ply", {"vertex": splats})
    write_ply(tmp_path / "cloud.ply", {"vertex": np.zeros(1, dtype=[("x", "f4"), ("y", "f4")])})
    assert "a file of splats" in refused(tmp_path / "splats.ply")
    assert "a point cloud" in refused(tmp_path / "cloud.ply")
    (tmp_path / "cloud.ply").unlink()
    assert "splats.ply, a file of splats" in refused(tmp_path)


def test_an_incomplete_model_names_what_it_has(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(4))
    (folder / "images.bin").unlink()
    with pytest.raises(SceneError, match=r"incomplete COLMAP model: found cameras\.bin, points3D"):
        load_scene(tmp_path, Settings())


def test_bounds_without_a_model_are_named(tmp_path: Path) -> None:
    write_photos(tmp_path / "images", make_views(4))
    np.save(tmp_path / "poses_bounds.npy", np.zeros(3))
    assert "only as poses_bounds.npy (LLFF)" in refused(tmp_path)


def test_a_model_without_any_photo_folder_is_told(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(4), photos=False)
    with pytest.raises(SceneError, match="0 of them match"):
        load_scene(tmp_path, Settings())


def test_a_json_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text(json.dumps({"name": "thing"}))
    assert "has no list 'frames'" in refused(path)


def test_progress_names_files_and_a_cancel_stops_the_load(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    told: list[tuple[str, str, int, int]] = []
    load_scene(tmp_path, Settings(), lambda *report: told.append(report))
    assert ("Reading poses", "images.bin", 1, 3) in told
    assert ("Looking at photos", "photo_004.png", 4, 9) in told
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    with pytest.raises(LoadingCancelled):
        load_scene(tmp_path, Settings(), cancelled=cancelled)


def test_a_scene_may_move_to_another_place(tmp_path: Path) -> None:
    write_colmap(tmp_path / "a", make_views(9))
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert load_scene(tmp_path / "b", Settings()).photos[0].path.is_file()


def test_the_folder_of_a_run_is_told_from_a_scene(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("")
    with pytest.raises(SceneError, match="is the folder of a run, not a scene"):
        load_scene(tmp_path, Settings())
