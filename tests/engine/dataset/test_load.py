import os
from pathlib import Path

import numpy as np
import pytest

from engine.dataset.load import load_scene
from engine.errors import RunFolderError, SceneError
from engine.run.run_folder import require_usable
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    make_views,
    write_blender,
    write_colmap,
    write_transforms,
)


@pytest.mark.parametrize("kind", ["bin", "txt"])
def test_a_colmap_scene_comes_back_as_it_was_written(tmp_path: Path, kind: str) -> None:
    views = make_views()
    write_colmap(tmp_path, views, kind)
    scene = load_scene(tmp_path, Settings())
    assert [photo.name for photo in scene.photos] == views.names
    centers = [-pose[:3, :3].T @ pose[:3, 3] for pose in views.poses]
    found = scene.frame.to_file(np.array([photo.camera.center for photo in scene.photos]))
    # 1e-9: float64 through a quaternion; text holds every digit
    assert np.allclose(found, centers, atol=1e-9)
    assert np.allclose(scene.frame.to_file(scene.points), views.points, atol=1e-12)
    assert np.array_equal(scene.point_colors, views.colors)


def test_transforms_json_gives_the_same_scene_as_colmap(tmp_path: Path) -> None:
    views = make_views()
    write_colmap(tmp_path / "a", views)
    write_transforms(tmp_path / "b", views)
    colmap = load_scene(tmp_path / "a", Settings())
    transforms = load_scene(tmp_path / "b", Settings())
    for one, other in zip(colmap.photos, transforms.photos, strict=True):
        # 1e-6: pixels; both are float64, the files hold every digit
        assert np.allclose(one.camera.world_to_camera, other.camera.world_to_camera, atol=1e-6)
        assert one.camera.fx == other.camera.fx


def test_a_name_that_is_no_utf8_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"bad\xff\xfename")
    write_colmap(folder, make_views())
    with pytest.raises(SceneError, match=r"bad\\udcff\\udcfename has bytes that are no UTF-8"):
        load_scene(folder, Settings())
    with pytest.raises(RunFolderError, match=r"no UTF-8.*Choose another folder"):
        require_usable(tmp_path / os.fsdecode(b"run\xff"))


def test_blender_uses_its_own_split(tmp_path: Path) -> None:
    scene = load_scene(write_blender(tmp_path, make_views()), Settings())
    assert len(scene.training) == 7
    assert [photo.name for photo in scene.held_out] == [f"test/r_{i}.png" for i in range(3)]
    assert scene.has_alpha
    assert scene.random_half_size == 1.3


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_byte_anywhere_gives_a_scene_or_a_named_error(tmp_path: Path, seed: int) -> None:
    write_colmap(tmp_path / "bin", make_views(4, points=6))
    write_colmap(tmp_path / "txt", make_views(4, points=6), "txt")
    write_transforms(tmp_path / "json", make_views(4))
    files = [
        path for path in sorted(tmp_path.rglob("*")) if path.suffix in (".bin", ".txt", ".json")
    ]
    random = np.random.default_rng(seed)
    for _ in range(15):
        path = files[random.integers(len(files))]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] = random.integers(256)
        path.write_bytes(damaged)
        root = tmp_path / path.relative_to(tmp_path).parts[0]
        message = ""
        try:
            scene = load_scene(root, Settings())
        except SceneError as error:
            message = str(error)
        path.write_bytes(whole)
        if message:
            assert str(tmp_path) in message
            continue
        assert np.isfinite([photo.camera.world_to_camera for photo in scene.photos]).all()
        assert np.isfinite(scene.points).all()
