"""The loaders on real scenes, small in pixels; skipped where the data is absent."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from engine.dataset.colmap import read_model
from engine.dataset.images import load_photo
from engine.dataset.lenses import to_pixels
from engine.dataset.load import load_scene
from engine.dataset.loading import Loading
from engine.dataset.scene import Scene
from engine.dataset.undistort import pinhole_view
from engine.errors import SceneError
from engine.settings import Settings

SMALL = Settings().changed("resolution", 8)

# folder: photos, training, points, size at 1/8
SCENES = {
    "banana": (14, 12, 5912, (160, 106)),
    "banana/sparse_txt/0": (14, 12, 5912, (160, 106)),
    "banana/undistorted": (14, 12, 5912, (160, 106)),
    "banana/undistorted/transforms.json": (14, 12, 5912, (160, 106)),
    "brighton": (18, 15, 4777, (159, 90)),
    "beer": (71, 62, 4414, (88, 156)),
    "fox": (50, 43, 14817, (134, 238)),
    "lego_400": (200, 100, 0, (50, 50)),
    "fountain": (11, 9, 8888, (192, 128)),
    "temple": (16, 14, 1421, (80, 60)),
}


@pytest.fixture(scope="module")
def scenes(data_folder: Path) -> dict[str, Scene]:
    return {name: load_scene(data_folder / name, SMALL) for name in SCENES}


@pytest.mark.parametrize("name", SCENES)
def test_a_real_scene_has_what_it_should(scenes: dict[str, Scene], name: str) -> None:
    scene = scenes[name]
    photos, training, points, size = SCENES[name]
    assert len(scene.photos) == photos
    assert len(scene.training) == training
    assert scene.points.shape == (points, 3)
    camera = scene.photos[0].camera
    # undistorting may change the size by a pixel or two
    assert abs(camera.width - size[0]) <= 2
    assert abs(camera.height - size[1]) <= 2
    assert not [item for item in scene.findings if item.severity == "error"]
    pixels = load_photo(scene.photos[0])
    assert pixels.rgb.shape == (camera.height, camera.width, 3)
    assert pixels.rgb.std() > 10  # a picture, not a flat colour


@pytest.mark.parametrize("name", ["banana", "brighton", "beer", "fountain", "temple"])
def test_points_fall_where_they_were_seen_in_the_undistorted_cameras(
    scenes: dict[str, Scene], name: str
) -> None:
    """Through the whole chain: file, frame, pinhole camera at full size, back through the lens."""
    scene = scenes[name]
    posed = {item.name: item for item in read_model(scene.path / "sparse/0", (), Loading()).photos}
    errors = []
    for photo in scene.photos:
        seen = posed[photo.name].observations
        assert seen is not None
        lens = photo.distortion
        if lens is None:
            full = photo.camera.resized(*_size_of(posed[photo.name]))
            errors.append(full.project(scene.points[seen.points])[0] - seen.pixels)
            continue
        view = pinhole_view(lens)
        full = photo.camera.resized(view.width, view.height)
        undistorted, _ = full.project(scene.points[seen.points])
        errors.append(to_pixels(lens, view.rays(undistorted)) - seen.pixels)
    mean = np.linalg.norm(np.concatenate(errors), axis=1).mean()
    assert mean < 1.0  # pixels; the model's own mean errors are 0.3 to 0.85


def _size_of(posed: object) -> tuple[int, int]:
    lens = posed.lens  # type: ignore[attr-defined]
    return lens.width, lens.height


def test_both_forms_of_the_undistorted_banana_are_one_scene(scenes: dict[str, Scene]) -> None:
    colmap = scenes["banana/undistorted"]
    transforms = scenes["banana/undistorted/transforms.json"]
    for one, other in zip(colmap.photos, transforms.photos, strict=True):
        assert one.name == other.name.removeprefix("images/")
        a, _ = one.camera.project(colmap.points)
        b, _ = other.camera.project(transforms.points)
        # 0.01 pixels: the cloud's file has eight digits after the point
        assert np.abs(a - b).max() < 0.01


def test_our_undistortion_agrees_with_colmaps(scenes: dict[str, Scene]) -> None:
    ours = load_photo(scenes["banana"].photos[0]).rgb.astype(float)
    theirs = load_photo(scenes["banana/undistorted"].photos[0]).rgb.astype(float)
    height, width = (min(a, b) for a, b in zip(ours.shape[:2], theirs.shape[:2], strict=True))
    # grey values; the two crops differ by a fraction of a pixel and by JPEG
    assert np.abs(ours[:height, :width] - theirs[:height, :width]).mean() < 4


def test_text_and_binary_say_the_same(scenes: dict[str, Scene]) -> None:
    binary, text = scenes["banana"], scenes["banana/sparse_txt/0"]
    assert np.allclose(binary.points, text.points, atol=1e-12)
    for one, other in zip(binary.photos, text.photos, strict=True):
        assert np.allclose(one.camera.world_to_camera, other.camera.world_to_camera, atol=1e-12)


def test_what_is_wrong_with_real_scenes_is_told(scenes: dict[str, Scene]) -> None:
    unmatched = [i.file for i in scenes["banana"].findings if i.code == "photo_without_pose"]
    assert unmatched == ["DSC_0429.jpg", "DSC_0434.jpg"]
    fox = Counter(item.code for item in scenes["fox"].findings)
    assert fox["photo_missing"] == 17
    assert "two_formats" in {item.code for item in scenes["banana/undistorted"].findings}
    assert "points_missing" in {item.code for item in scenes["lego_400"].findings}


def test_fern_has_no_poses_that_are_read_and_says_so(data_folder: Path) -> None:
    with pytest.raises(SceneError, match=r"incomplete COLMAP model.*no poses.*LLFF"):
        load_scene(data_folder / "fern", SMALL)


def test_beer_has_a_lens_for_each_photo(scenes: dict[str, Scene]) -> None:
    assert len({photo.distortion for photo in scenes["beer"].photos}) == 71


def test_lego_has_alpha_and_its_own_split(scenes: dict[str, Scene]) -> None:
    lego = scenes["lego_400"]
    assert lego.has_alpha
    assert {photo.name.split("/")[0] for photo in lego.held_out} == {"test"}
    alpha = load_photo(lego.photos[0]).alpha
    assert alpha is not None
    assert 0 < (alpha > 127).mean() < 0.9
