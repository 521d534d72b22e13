import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.cameras import Camera
from engine.dataset.images import load_photo, load_thumbnail, training_size
from engine.dataset.photo_files import read_header
from engine.dataset.scene import Distortion, Photo
from engine.errors import SceneError

RAMP = np.linspace(0, 255, 60 * 40 * 3).astype(np.uint8).reshape(40, 60, 3)


def photo_of(
    path: Path, width: int = 60, height: int = 40, rotate: bool = False, **changes: object
) -> Photo:
    camera = Camera(np.eye(4), 50.0, 50.0, width / 2, height / 2, width, height)
    photo = Photo(path.name, path, camera, None, rotate, False)
    return dataclasses.replace(photo, **changes)  # type: ignore[arg-type]


def saved(tmp_path: Path, image: Image.Image, name: str = "a.png", **options: object) -> Path:
    path = tmp_path / name
    image.save(path, **options)
    return path


def test_a_photo_at_its_own_size_is_not_touched(tmp_path: Path) -> None:
    pixels = load_photo(photo_of(saved(tmp_path, Image.fromarray(RAMP))))
    assert np.array_equal(pixels.rgb, RAMP)
    assert pixels.alpha is None


def test_grey_becomes_rgb(tmp_path: Path) -> None:
    pixels = load_photo(photo_of(saved(tmp_path, Image.fromarray(RAMP[..., 0]))))
    assert np.array_equal(pixels.rgb, np.repeat(RAMP[..., :1], 3, axis=2))


def test_grey_with_alpha_keeps_its_alpha(tmp_path: Path) -> None:
    image = Image.merge("LA", [Image.fromarray(RAMP[..., 0]), Image.fromarray(RAMP[..., 1])])
    path = saved(tmp_path, image)
    pixels = load_photo(photo_of(path))
    assert np.array_equal(pixels.rgb[..., 2], RAMP[..., 0])
    assert pixels.alpha is not None
    assert np.array_equal(pixels.alpha, RAMP[..., 1])
    assert read_header(path).has_alpha


def test_a_palette_becomes_rgb(tmp_path: Path) -> None:
    image = Image.fromarray(RAMP).quantize(16)
    pixels = load_photo(photo_of(saved(tmp_path, image)))
    assert np.array_equal(pixels.rgb, np.array(image.convert("RGB")))
    assert pixels.alpha is None


def test_a_palette_with_a_transparent_entry_has_alpha(tmp_path: Path) -> None:
    image = Image.fromarray(RAMP).quantize(16)
    path = saved(tmp_path, image, transparency=0)
    alpha = load_photo(photo_of(path)).alpha
    assert alpha is not None
    assert np.array_equal(alpha == 0, np.array(image) == 0)
    assert read_header(path).has_alpha


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    image = Image.new("CMYK", (60, 40), (255, 0, 0, 0))
    pixels = load_photo(photo_of(saved(tmp_path, image, "a.jpg")))
    assert pixels.rgb[20, 30, 0] < 40
    assert pixels.rgb[20, 30, 1:].min() > 120


def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path: Path) -> None:
    values = np.linspace(0, 65535, 60 * 40).reshape(40, 60).astype(np.uint16)
    pixels = load_photo(photo_of(saved(tmp_path, Image.fromarray(values))))
    expected = np.rint(values / 257.0)
    assert np.array_equal(pixels.rgb[..., 0], expected.astype(np.uint8))


def test_a_float_picture_runs_from_zero_to_one(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 60 * 40, dtype=np.float32).reshape(40, 60)
    pixels = load_photo(photo_of(saved(tmp_path, Image.fromarray(values), "a.tif")))
    assert np.array_equal(pixels.rgb[..., 0], np.rint(values * 255).astype(np.uint8))


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_the_exif_orientation_is_used_only_when_asked_for(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path, Image.fromarray(RAMP), exif=exif)
    assert np.array_equal(load_photo(photo_of(path)).rgb, RAMP)
    turns = {3: 2, 6: 3, 8: 1}[orientation]
    turned = np.rot90(RAMP, turns)
    size = (turned.shape[1], turned.shape[0])
    assert np.array_equal(load_photo(photo_of(path, *size, rotate=True)).rgb, turned)


def test_a_turned_photo_of_several_pictures_leaves_no_file_open(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    first, second = Image.fromarray(RAMP), Image.new("RGB", (60, 40))
    path = tmp_path / "phone.jpg"  # many of them write the MPO kind of JPEG
    first.save(path, format="MPO", save_all=True, append_images=[second], exif=exif)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        load_photo(photo_of(path, 40, 60, rotate=True))
        load_thumbnail(path, 20, rotate_by_exif=True)
    assert [str(item.message) for item in told] == []


def test_colour_under_transparent_pixels_never_bleeds(tmp_path: Path) -> None:
    rgba = np.zeros((40, 60, 4), dtype=np.uint8)
    rgba[..., 0] = 255  # red hides where alpha is 0
    rgba[:, 31:, :] = (0, 200, 0, 255)
    path = saved(tmp_path, Image.fromarray(rgba))
    small = load_photo(photo_of(path, 30, 20))
    assert small.alpha is not None
    visible = small.alpha > 0
    assert (small.rgb[visible] == (0, 200, 0)).all()
    full = load_photo(photo_of(path))
    assert full.alpha is not None
    assert np.array_equal(full.rgb, rgba[..., :3])  # straight, as the file has it


def test_alpha_means_the_same_at_full_and_at_half_size(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rgba = np.repeat(np.repeat(random.integers(0, 256, (20, 30, 4), np.uint8), 2, 0), 2, 1)
    path = saved(tmp_path, Image.fromarray(rgba))
    full, half = load_photo(photo_of(path)), load_photo(photo_of(path, 30, 20))
    assert full.alpha is not None
    assert half.alpha is not None
    over = full.rgb * (full.alpha[..., None] / 255.0)
    expected = over.reshape(20, 2, 30, 2, 3).mean(axis=(1, 3))
    found = half.rgb * (half.alpha[..., None] / 255.0)
    # Bicubic is no box filter: compare the overall level, to a grey value and a half.
    assert abs(found.mean() - expected.mean()) < 1.5


def test_reducing_averages_instead_of_skipping_pixels(tmp_path: Path) -> None:
    stripes = np.zeros((40, 60, 3), dtype=np.uint8)
    stripes[:, ::2] = 255
    pixels = load_photo(photo_of(saved(tmp_path, Image.fromarray(stripes)), 15, 10))
    # 127.5 plus or minus what the filter leaves of a stripe four times finer than a pixel
    assert np.abs(pixels.rgb[2:-2, 2:-2].astype(float) - 127.5).max() < 12


def test_undistorting_goes_before_resizing(tmp_path: Path) -> None:
    lens = Distortion("SIMPLE_RADIAL", (50.0, 30.0, 20.0, 0.1), 60, 40)
    path = saved(tmp_path, Image.fromarray(RAMP))
    pixels = load_photo(photo_of(path, 25, 17, distortion=lens))
    assert pixels.rgb.shape == (17, 25, 3)


def test_a_file_that_changed_size_since_is_named(tmp_path: Path) -> None:
    lens = Distortion("SIMPLE_RADIAL", (50.0, 30.0, 20.0, 0.1), 64, 48)
    path = saved(tmp_path, Image.fromarray(RAMP))
    with pytest.raises(SceneError, match=r"a\.png is 60x40 but its camera says 64x48"):
        load_photo(photo_of(path, distortion=lens))


# Pillow warns of the tags that it misses before it gives up on the picture.
@pytest.mark.filterwarnings("ignore:.*EXIF data:UserWarning")
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif"])
def test_a_cut_file_is_named_with_the_decoders_reason(tmp_path: Path, name: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    path = saved(tmp_path, Image.fromarray(noise), name)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 200):
        path.write_bytes(whole[:length])
        with pytest.raises(SceneError, match=rf"{name} cannot be decoded: .+\. Copy") as caught:
            load_photo(photo_of(path))
        assert caught.value.path == path


def test_a_file_that_is_no_picture_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_text("<html>not found</html>")
    with pytest.raises(SceneError, match="no picture format known here"):
        read_header(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match=r"gone\.jpg cannot be read: No such file"):
        load_photo(photo_of(tmp_path / "gone.jpg"))


@pytest.mark.parametrize(
    ("size", "resolution", "expected"),
    [
        ((4946, 3286), 1, (4946, 3286)),
        ((4946, 3286), 2, (2473, 1643)),
        ((4946, 3286), 4, (1236, 822)),
        ((4946, 3286), 8, (618, 411)),
        ((1600, 1200), 0, (1600, 1200)),
        ((4946, 3286), 0, (1600, 1063)),
        ((640, 480), 0, (640, 480)),
        ((640, 480), 320, (320, 240)),
        ((640, 481), 319, (319, 239)),
        ((3, 2), 8, (1, 1)),
    ],
)
def test_the_training_size_follows_the_rule_of_3dgs(
    size: tuple[int, int], resolution: int, expected: tuple[int, int]
) -> None:
    assert training_size(*size, resolution) == expected


def test_a_thumbnail_fits_its_box_and_keeps_its_shape(tmp_path: Path) -> None:
    path = saved(tmp_path, Image.fromarray(RAMP).resize((600, 400)), "a.jpg")
    assert load_thumbnail(path, 90).shape == (60, 90, 3)
    assert load_thumbnail(path, 4000).shape == (400, 600, 3)


def test_a_thumbnail_shows_transparency_as_grey(tmp_path: Path) -> None:
    path = saved(tmp_path, Image.new("RGBA", (60, 40), (255, 0, 0, 0)))
    assert (load_thumbnail(path, 30) == 128).all()
