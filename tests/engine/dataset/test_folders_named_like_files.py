"""A folder may be named as a file is: it is said to be one, and not to be missing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.dataset.load import load_scene
from engine.dataset.scene import Scene
from engine.errors import RunFolderError, SceneError
from engine.export.saved_model import load_model
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    make_views,
    transforms,
    write_colmap,
    write_transforms,
)


def put_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


def messages(scene: Scene, code: str) -> list[str]:
    return [item.message for item in scene.findings if item.code == code]


def test_a_folder_in_the_place_of_a_photo_is_called_one(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(12))
    put_folder(tmp_path / "images" / "photo_003.png")
    (tmp_path / "images" / "photo_004.png").unlink()
    first, second = messages(load_scene(tmp_path, Settings()), "photo_missing")
    assert "photo_003.png is a folder, not a photo" in first
    assert "photo_004.png does not exist" in second


@pytest.mark.parametrize(("put", "word"), [(put_folder, "is a folder"), (None, "does not exist")])
def test_a_folder_in_the_place_of_a_seed_cloud_is_called_one(
    tmp_path: Path, put: Callable[[Path], None] | None, word: str
) -> None:
    views = make_views(12)
    write_transforms(tmp_path, views, transforms(views, ply_file_path="cloud.ply"))
    if put is not None:
        put(tmp_path / "cloud.ply")
    (message,) = messages(load_scene(tmp_path, Settings()), "seed_cloud_missing")
    assert f"cloud.ply, named in transforms.json, {word}" in message


@pytest.mark.parametrize(
    "name",
    [
        *("transforms.json", "transforms_train.json", "cameras.bin", "poses_bounds.npy"),
        *("garden.jpg", "x.ply", "run.toml"),
    ],
)
def test_a_folder_in_the_place_of_a_scenes_file_is_called_one(tmp_path: Path, name: str) -> None:
    put_folder(tmp_path / name)
    with pytest.raises(SceneError, match="is not a scene: found ") as refusal:
        load_scene(tmp_path, Settings())
    assert f"found {name} (a folder);" in str(refusal.value)


@pytest.mark.parametrize("name", ["cameras.bin", "images.bin"])
def test_a_folder_in_the_place_of_a_models_file_is_called_one(tmp_path: Path, name: str) -> None:
    model = write_colmap(tmp_path, make_views(12), "bin")
    put_folder(model / name)
    with pytest.raises(SceneError, match="incomplete COLMAP model") as refusal:
        load_scene(tmp_path, Settings())
    assert f"{name} (a folder)" in str(refusal.value)
    assert "points3D.bin;" in str(refusal.value)


@pytest.mark.parametrize("name", ["x.ply", "step-000100.safetensors"])
def test_a_folder_in_the_place_of_a_model_is_called_one(tmp_path: Path, name: str) -> None:
    put_folder(tmp_path / name)
    with pytest.raises(RunFolderError, match=f"{name} is a folder, not a file, and no run folder"):
        load_model(tmp_path / name)


def test_folders_are_no_photos_to_find_a_scene_above_for(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(12))
    put_folder(tmp_path / "notes" / "garden.jpg")
    with pytest.raises(SceneError, match=r"notes is not a scene: found garden\.jpg \(a folder\)"):
        load_scene(tmp_path / "notes", Settings())
