"""Names in pose files against files on the disk: what matches, what is told."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.dataset.load import load_scene
from engine.dataset.scene import Distortion, Finding, Scene
from engine.errors import SceneError
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    PINHOLE,
    SceneFiles,
    make_views,
    picture,
    transforms,
    write_colmap,
    write_photos,
    write_transforms,
)


def opened(root: Path, **settings: object) -> Scene:
    return load_scene(root, Settings().updated(settings))


def found(scene: Scene, code: str) -> list[Finding]:
    return [item for item in scene.findings if item.code == code]


def test_a_missing_photo_is_named_with_its_path_and_the_rest_is_used(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(12))
    (tmp_path / "images" / "photo_005.png").unlink()
    scene = opened(tmp_path)
    assert len(scene.photos) == 11
    (missing,) = found(scene, "photo_missing")
    assert missing.file == "photo_005.png"
    assert str(tmp_path / "images" / "photo_005.png") in missing.message
    assert missing.severity == "warning"


def test_a_stray_name_in_a_hidden_folder_is_left_out(tmp_path: Path) -> None:
    names = [*make_views(9).names, ".ipynb_checkpoints/0001-checkpoint.jpg"]
    views = make_views(10, names=names)
    write_colmap(tmp_path, views, photos=False)
    write_photos(tmp_path / "images", make_views(9))
    scene = opened(tmp_path)
    assert len(scene.photos) == 9
    assert [item.file for item in found(scene, "photo_missing")] == names[-1:]


def test_hidden_folders_and_masks_are_never_listed(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    for folder in (".ipynb_checkpoints", "masks"):
        write_photos(tmp_path / "images" / folder, make_views(2))
    picture(make_views(), 0).save(tmp_path / "images" / "photo_000_mask.png")
    assert found(opened(tmp_path), "photo_without_pose") == []


def test_photos_without_a_pose_are_named(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    picture(make_views(), 0).save(tmp_path / "images" / "extra.png")
    notes = found(opened(tmp_path), "photo_without_pose")
    assert [item.file for item in notes] == ["extra.png"]


def test_sub_folders_of_the_names_are_kept_apart(tmp_path: Path) -> None:
    views = make_views(9, names=[f"{'ab'[i % 2]}/{i // 2}.png" for i in range(9)])
    write_colmap(tmp_path, views)
    scene = opened(tmp_path)
    assert [photo.name for photo in scene.photos] == sorted(views.names)
    assert len({photo.path for photo in scene.photos}) == 9


def test_back_slashes_in_names_are_understood(tmp_path: Path) -> None:
    views = make_views(9, names=[f"cam/{i}.png" for i in range(9)])
    write_photos(tmp_path / "images", views)
    slashed = dataclasses.replace(views, names=[name.replace("/", "\\") for name in views.names])
    write_colmap(tmp_path, slashed, photos=False)
    assert [photo.name for photo in opened(tmp_path).photos] == views.names


def test_nothing_matching_gives_three_names_of_each_side(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9), photos=False)
    write_photos(tmp_path / "images", make_views(5, names=[f"IMG_{i}.png" for i in range(5)]))
    with pytest.raises(SceneError) as caught:
        opened(tmp_path)
    text = str(caught.value)
    assert "9 poses" in text
    assert "5 photos" in text
    assert "photo_000.png, photo_001.png, photo_002.png; the photos are IMG_0.png, IMG_1" in text


@pytest.mark.parametrize(
    ("named", "on_disk", "code"),
    [
        ("shot.jpeg", "shot.png", "matched_stem"),
        ("SHOT.PNG", "shot.png", "matched_folded"),
        ("a/b/shot.png", "shot.png", "matched_base_name"),
        ("Sa\u0308ule.png", "S\u00e4ule.png", "matched_folded"),
    ],
)
def test_near_misses_are_found_and_told(
    tmp_path: Path, named: str, on_disk: str, code: str
) -> None:
    others = [f"photo_{i}.png" for i in range(8)]
    write_colmap(tmp_path, make_views(9, names=[*others, named]), photos=False)
    write_photos(tmp_path / "images", make_views(9, names=[*others, on_disk]))
    scene = opened(tmp_path)
    assert len(scene.photos) == 9
    assert [item.file for item in found(scene, code)] == [named if "a/b" not in named else on_disk]


def test_upper_and_lower_case_extensions_are_alike_and_each_file_counts_once(
    tmp_path: Path,
) -> None:
    names = [f"{i}.{['JPG', 'jpg', 'jpeg', 'JPEG'][i % 4]}" for i in range(9)]
    write_colmap(tmp_path, make_views(9, names=names))
    picture(make_views(), 0).save(tmp_path / "images" / "EXTRA.JPG")
    scene = opened(tmp_path)
    assert [photo.name for photo in scene.photos] == sorted(names)
    assert [item.file for item in found(scene, "photo_without_pose")] == ["EXTRA.JPG"]


def test_an_ambiguous_stem_is_no_match(tmp_path: Path) -> None:
    others = [f"photo_{i}.png" for i in range(8)]
    write_colmap(tmp_path, make_views(9, names=[*others, "shot.jpeg"]), photos=False)
    write_photos(tmp_path / "images", make_views(10, names=[*others, "shot.png", "shot.bmp"]))
    assert [item.file for item in found(opened(tmp_path), "photo_missing")] == ["shot.jpeg"]


def test_names_that_differ_before_the_last_dot_only_stay_apart(tmp_path: Path) -> None:
    views = make_views(9, names=[f"frame.{i:04d}.png" for i in range(9)])
    write_colmap(tmp_path, views)
    assert [photo.path.name for photo in opened(tmp_path).photos] == views.names


def test_an_unreadable_format_says_so_by_name(tmp_path: Path) -> None:
    others = [f"photo_{i}.png" for i in range(8)]
    write_colmap(tmp_path, make_views(9, names=[*others, "shot.jpeg"]), photos=False)
    write_photos(tmp_path / "images", make_views(8, names=others))
    (tmp_path / "images" / "shot.exr").write_bytes(b"\x76\x2f\x31\x01")
    (note,) = found(opened(tmp_path), "photo_unreadable")
    assert "shot.exr cannot be decoded: it is in no picture format known here" in note.message


def turned_photo(tmp_path: Path, size: tuple[int, int]) -> SceneFiles:
    """A scene of 40x60 or 60x40 cameras whose files are 60x40 with EXIF orientation 6."""
    lens = Distortion("PINHOLE", (55.0, 55.0, size[0] / 2, size[1] / 2), *size)
    views = make_views(9, lens=lens, names=[f"{i}.jpg" for i in range(9)])
    write_colmap(tmp_path, views, photos=False)
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "images").mkdir()
    for name in views.names:
        Image.new("RGB", (60, 40)).save(tmp_path / "images" / name, exif=exif)
    return views


def test_a_photo_is_turned_when_only_that_fits_its_camera(tmp_path: Path) -> None:
    turned_photo(tmp_path, (40, 60))
    scene = opened(tmp_path)
    assert all(photo.rotate_by_exif for photo in scene.photos)
    assert [item.file for item in found(scene, "photos_rotated")] == [""]  # no single one
    assert (scene.photos[0].camera.width, scene.photos[0].camera.height) == (40, 60)


def test_a_photo_that_fits_as_it_lies_is_not_turned(tmp_path: Path) -> None:
    turned_photo(tmp_path, (60, 40))
    scene = opened(tmp_path)
    assert not any(photo.rotate_by_exif for photo in scene.photos)
    assert found(scene, "photos_rotated") == []


def test_a_photo_that_fits_neither_way_names_the_tag(tmp_path: Path) -> None:
    turned_photo(tmp_path, (50, 50))
    with pytest.raises(SceneError, match=r"60x40 \(EXIF orientation 6\) .* says 50x50"):
        opened(tmp_path)


def test_photos_undistorted_beside_cameras_that_are_not_are_refused_by_name(tmp_path: Path) -> None:
    lens = Distortion("SIMPLE_RADIAL", (3000.0, 2016.0, 1134.0, 0.05), 4032, 2268)
    views = make_views(9)
    views.lenses[2] = lens
    views.cameras[4] = 2
    write_colmap(tmp_path, views, photos=False)
    write_photos(tmp_path / "images", make_views(9))
    Image.new("RGB", (3919, 2207)).save(tmp_path / "images" / "photo_004.png")
    scene = opened(tmp_path)
    assert len(scene.photos) == 8
    (note,) = found(scene, "photo_size_mismatch")
    assert note.severity == "warning"
    assert "photo_004.png is 3919x2207 but its camera says 4032x2268" in note.message


def test_photos_that_are_there_and_fit_no_camera_are_not_called_missing(tmp_path: Path) -> None:
    views = make_views()
    write_colmap(tmp_path, views)
    for name in views.names[1:]:
        Image.new("RGB", (31, 17)).save(tmp_path / "images" / name)
    (tmp_path / "images" / views.names[0]).unlink()
    with pytest.raises(SceneError, match=r"No photo can be used.* is 31x17 but its camera says"):
        opened(tmp_path)


@pytest.mark.parametrize("size", [(30, 20), (15, 10), (20, 13)])
def test_photos_scaled_down_scale_their_cameras(tmp_path: Path, size: tuple[int, int]) -> None:
    write_colmap(tmp_path, make_views(9), photos=False)
    (tmp_path / "images_4").mkdir()
    for name in make_views(9).names:
        Image.new("RGB", size).save(tmp_path / "images_4" / name)
    scene = opened(tmp_path)
    camera = scene.photos[0].camera
    assert (camera.width, camera.height) == size
    assert camera.fx == pytest.approx(55 * size[0] / 60)
    assert len(found(scene, "photos_scaled")) == 1


def test_each_photo_has_a_size_and_intrinsics_of_its_own(tmp_path: Path) -> None:
    lenses = {
        1: Distortion("PINHOLE", (90.0, 90.0, 48.0, 27.0), 96, 54),
        2: Distortion("PINHOLE", (80.0, 80.0, 50.0, 20.0), 96, 44),
        3: Distortion("PINHOLE", (70.0, 70.0, 18.0, 27.0), 36, 54),
    }
    views = dataclasses.replace(make_views(9), lenses=lenses, cameras=[1, 2, 3] * 3)
    write_colmap(tmp_path, views)
    sizes = [(p.camera.width, p.camera.height, p.camera.fx) for p in opened(tmp_path).photos[:3]]
    assert sizes == [(96, 54, 90.0), (96, 44, 80.0), (36, 54, 70.0)]


def test_the_resolution_divides_every_camera(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    camera = opened(tmp_path, resolution=2).photos[0].camera
    assert (camera.width, camera.height, camera.fx, camera.cx) == (30, 20, 27.5, 15.0)


def test_two_poses_of_one_file_are_told(tmp_path: Path) -> None:
    names = [*make_views(8).names, "else/photo_000.png"]
    write_colmap(tmp_path, make_views(9, names=names), photos=False)
    write_photos(tmp_path / "images", make_views(8))
    scene = opened(tmp_path)
    assert len(scene.photos) == 8
    assert [item.file for item in found(scene, "photo_twice")] == ["else/photo_000.png"]


def test_a_masks_folder_is_said_to_be_unused(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    write_photos(tmp_path / "masks", make_views(2))
    scene = opened(tmp_path)
    assert len(scene.photos) == 9
    (note,) = found(scene, "masks_unused")
    assert f"the folder {tmp_path / 'masks'}" in note.message
    assert "every photo is trained on in full" in note.message


def test_masks_that_the_poses_name_are_said_to_be_unused(tmp_path: Path) -> None:
    views = make_views(9)
    content: dict[str, Any] = transforms(views)
    for frame in content["frames"][:4]:
        frame["mask_path"] = frame["file_path"].replace("images", "seg")
    write_transforms(tmp_path, views, content)
    (note,) = found(opened(tmp_path), "masks_unused")
    assert "4 masks named in transforms.json" in note.message


def test_masks_beside_the_photos_are_counted_as_unused(tmp_path: Path) -> None:
    write_colmap(tmp_path, make_views(9))
    for name in ("photo_000.png.mask.png", "photo_001_mask.png", "photo_002_mask_0.png"):
        picture(make_views(), 0).save(tmp_path / "images" / name)
    (note,) = found(opened(tmp_path), "masks_unused")
    assert "3 files beside the photos, such as photo_000.png.mask.png" in note.message
    assert note.severity == "warning"


def test_photos_that_are_called_masks_are_no_masks(tmp_path: Path) -> None:
    names = [f"gas_mask_{number}.png" for number in range(9)]
    write_colmap(tmp_path, make_views(9, names=names))
    scene = opened(tmp_path)
    assert len(scene.photos) == 9
    assert not found(scene, "masks_unused")


def test_a_fisheye_that_loses_most_of_the_photo_is_told(tmp_path: Path) -> None:
    lens = Distortion("SIMPLE_RADIAL", (55.0, 30.0, 20.0, -2.0), 60, 40)
    views = make_views(9)
    write_colmap(tmp_path, dataclasses.replace(views, lenses={1: lens}), photos=False, points=False)
    write_photos(tmp_path / "images", views)
    notes = found(opened(tmp_path), "little_area_kept")
    assert len(notes) == 9
    assert "%" in notes[0].message


def test_photos_are_sorted_by_name_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    views = make_views(9, names=[f"photo_{i}.png" for i in (3, 1, 8, 0, 2, 7, 4, 6, 5)])
    write_colmap(tmp_path, views)
    scene = opened(tmp_path, test_every=3)
    assert [photo.name for photo in scene.photos] == sorted(views.names)
    assert [photo.name[6] for photo in scene.held_out] == ["0", "3", "6"]


@pytest.mark.parametrize(("count", "every"), [(1, 8), (9, 1)])
def test_some_photo_is_always_left_to_train_on(tmp_path: Path, count: int, every: int) -> None:
    write_colmap(tmp_path, make_views(count))
    scene = opened(tmp_path, test_every=every)
    assert len(scene.training) == count
    assert len(found(scene, "nothing_held_out")) == 1


def test_a_zero_distortion_lens_of_any_model_is_a_pinhole(tmp_path: Path) -> None:
    lens = Distortion("FULL_OPENCV", (*PINHOLE.parameters, *[0.0] * 8), 60, 40)
    write_colmap(tmp_path, make_views(9, lens=lens))
    scene = opened(tmp_path)
    assert scene.photos[0].distortion is None
    assert np.array_equal(scene.photos[0].camera.intrinsics[0], [55, 0, 30])
