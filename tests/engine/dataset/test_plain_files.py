"""What stands in the place of a scene's file and would keep its reader waiting for ever."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.dataset.images import load_thumbnail
from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Scene
from engine.errors import CheckpointError, EngineError, SceneError, SettingError
from engine.export.saved_model import load_model
from engine.ply import PlyError, read_ply, read_ply_header
from engine.presets import load_preset
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    make_views,
    transforms,
    write_colmap,
    write_photos,
    write_transforms,
)

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes"),
    pytest.mark.timeout(120),  # what these tests are about would wait for ever
]

Putting = Callable[[Path], None]


def put_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def put_socket(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mknod(path, stat.S_IFSOCK | 0o600)


def put_device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


OTHERS = pytest.mark.parametrize(
    ("put", "kind"),
    [(put_pipe, "a named pipe"), (put_socket, "a socket"), (put_device, "a device")],
    ids=["pipe", "socket", "device"],
)


def findings(scene: Scene, code: str) -> list[str]:
    return [item.message for item in scene.findings if item.code == code]


@OTHERS
def test_a_photo_that_is_no_plain_file_is_left_out_by_name(
    tmp_path: Path, put: Putting, kind: str
) -> None:
    write_colmap(tmp_path, make_views(12))
    put(tmp_path / "images" / "photo_003.png")
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 11
    (message,) = findings(scene, "photo_unreadable")
    assert "photo_003.png" in message
    assert f"it is {kind}, not a plain file" in message
    assert not findings(scene, "matched_folded")


@OTHERS
def test_a_photo_that_stops_being_a_plain_file_is_left_out_when_it_is_decoded(
    tmp_path: Path, put: Putting, kind: str
) -> None:
    write_colmap(tmp_path, make_views(12))
    scene = load_scene(tmp_path, Settings())
    put(scene.photos[3].path)
    store = PhotoStore(scene, Settings())
    assert len(store.load_all().photos) == 11
    store.close()
    with pytest.raises(SceneError, match=kind):
        load_thumbnail(scene.photos[3].path, 20)


@OTHERS
@pytest.mark.parametrize("name", ["cameras", "images"])
@pytest.mark.parametrize("suffix", ["bin", "txt"])
def test_poses_that_are_no_plain_file_are_refused_by_name(
    tmp_path: Path, put: Putting, kind: str, name: str, suffix: str
) -> None:
    model = write_colmap(tmp_path, make_views(12), suffix)
    put(model / f"{name}.{suffix}")
    with pytest.raises(SceneError, match=rf"{name}\.{suffix} cannot be read: it is {kind}"):
        load_scene(tmp_path, Settings())


@OTHERS
@pytest.mark.parametrize("suffix", ["bin", "txt"])
def test_sparse_points_that_are_no_plain_file_are_left_out_by_name(
    tmp_path: Path, put: Putting, kind: str, suffix: str
) -> None:
    model = write_colmap(tmp_path, make_views(12), suffix)
    put(model / f"points3D.{suffix}")
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 12
    assert len(scene.points) == 0
    (message,) = findings(scene, "points_unreadable")
    assert f"points3D.{suffix} cannot be read: it is {kind}" in message


@OTHERS
@pytest.mark.parametrize("name", ["transforms.json", "transforms_train.json"])
def test_a_pose_file_that_is_no_plain_file_is_refused_by_name(
    tmp_path: Path, put: Putting, kind: str, name: str
) -> None:
    write_photos(tmp_path, make_views(12))
    put(tmp_path / name)
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(SceneError, match=rf"{name} cannot be read: it is {kind}"):
            load_scene(path, Settings())


@OTHERS
def test_a_seed_cloud_that_is_no_plain_file_is_left_out_by_name(
    tmp_path: Path, put: Putting, kind: str
) -> None:
    views = make_views(12)
    write_transforms(tmp_path, views, transforms(views, ply_file_path="cloud.ply"))
    put(tmp_path / "cloud.ply")
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 12
    (message,) = findings(scene, "seed_cloud_unreadable")
    assert f"cloud.ply cannot be read: it is {kind}" in message


@OTHERS
def test_a_scene_or_model_that_is_no_plain_file_is_refused_at_once(
    tmp_path: Path, put: Putting, kind: str
) -> None:
    readers: list[tuple[str, Callable[[Path], object], type[EngineError]]] = [
        ("scene", lambda path: load_scene(path, Settings()), SceneError),
        ("cloud.ply", lambda path: load_scene(path, Settings()), SceneError),
        ("splats.ply", load_model, EngineError),
        ("header.ply", read_ply_header, PlyError),
        ("rows.ply", read_ply, PlyError),
        ("step-000001.safetensors", load_model, CheckpointError),
        ("mine.toml", load_preset, SettingError),
    ]
    for name, read, error in readers:
        put(tmp_path / name)
        with pytest.raises(error, match=f"cannot be read: it is {kind}, not a plain file"):
            read(tmp_path / name)
    folder = tmp_path / "run"
    folder.mkdir()
    put(folder / "run.toml")
    with pytest.raises(EngineError, match=rf"run\.toml cannot be read: it is {kind}"):
        load_model(folder)


def test_a_link_to_a_photo_is_a_photo(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(12))
    photo = tmp_path / "images" / "photo_003.png"
    photo.rename(tmp_path / "elsewhere.png")
    photo.symlink_to(tmp_path / "elsewhere.png")
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 12
