import numpy as np
import pytest
import torch

from engine.training.photos import target_picture
from engine.training.smaller_photos import (
    SMALLEST,
    SmallerPhotos,
    reduced_camera,
    reduced_pixels,
)
from tests.engine.training.tiny_scene import MemoryPhotos, camera_at, photo_of


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize("edge", [2, 4, 8])
def test_a_pixel_of_the_smaller_photo_is_the_mean_of_its_square(edge: int) -> None:
    rgb = noise(3 * edge + edge - 1, 2 * edge + 1, 3)  # what fills no square is left out
    small, alpha = reduced_pixels(rgb, None, edge)
    assert alpha is None
    assert small.shape == (3, 2, 3)
    assert small.dtype == np.uint8
    for row in range(3):
        for column in range(2):
            rows = slice(row * edge, (row + 1) * edge)
            square = rgb[rows, column * edge : (column + 1) * edge].astype(np.float64)
            expected = np.floor(square.mean(axis=(0, 1)) + 0.5)
            assert small[row, column].tolist() == expected.tolist()


def test_colours_under_transparent_pixels_do_not_bleed() -> None:
    rgb = np.full((2, 4, 3), (0, 255, 0), np.uint8)
    rgb[0, 0] = (200, 10, 30)
    alpha = np.zeros((2, 4), np.uint8)
    alpha[0, 0] = 255
    small, share = reduced_pixels(rgb, alpha, 2)
    assert share is not None
    assert small.tolist() == [[[200, 10, 30], [0, 0, 0]]]
    assert share.tolist() == [[64, 0]]  # 255 / 4, rounded


@pytest.mark.parametrize("with_alpha", [False, True])
def test_tensors_and_arrays_give_the_same_bytes(with_alpha: bool) -> None:
    rgb, alpha = noise(21, 18, 3), noise(21, 18) if with_alpha else None
    arrays = reduced_pixels(rgb, alpha, 4)
    tensors = reduced_pixels(
        torch.from_numpy(rgb), None if alpha is None else torch.from_numpy(alpha), 4
    )
    for array, tensor in zip(arrays, tensors, strict=True):
        if array is not None:
            assert isinstance(tensor, torch.Tensor)
            assert np.array_equal(array, tensor.numpy())


def test_points_fall_on_exactly_the_edge_th_part_of_their_pixel() -> None:
    camera = camera_at(0.7).resized(83, 61)
    points = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    at_full, _ = camera.project(points)
    small = reduced_camera(camera, 4)
    at_small, _ = small.project(points)
    assert (small.width, small.height) == (20, 15)
    # float64 throughout: a division by four only moves the exponent, the sum rounds anew
    assert np.allclose(at_small * 4, at_full, rtol=1e-14, atol=1e-12)


def test_no_photo_gets_smaller_than_the_smallest() -> None:
    photo = photo_of("a.png", camera_at(0.0).resized(200, 3 * SMALLEST))
    photos = SmallerPhotos(MemoryPhotos([noise(3 * SMALLEST, 200, 3)], [None]))
    smaller, source = photos.at(photo, 3)
    assert (smaller.camera.width, smaller.camera.height) == (100, 3 * SMALLEST // 2)
    assert target_picture(source, 0, smaller, torch.zeros(3)).shape == (3 * SMALLEST // 2, 100, 3)


def test_a_photo_is_reduced_once_a_size_and_forgotten_at_full_size() -> None:
    class Counted(MemoryPhotos):
        asked = 0

        def rgb(self, index: int) -> np.ndarray:
            self.asked += 1
            return super().rgb(index)

    source = Counted([noise(64, 64, 3)], [None])
    photos = SmallerPhotos(source)
    photo = photo_of("a.png", camera_at(0.0).resized(64, 64))
    for halvings, times in ((2, 1), (2, 1), (1, 2), (1, 2), (2, 3)):
        _, pixels = photos.at(photo, halvings)
        pixels.rgb(0)
        pixels.alpha(0)
        assert source.asked == times
    full, pixels = photos.at(photo, 0)
    assert full is photo
    assert pixels is source
    _, pixels = photos.at(photo, 2)
    pixels.rgb(0)
    assert source.asked == 4
