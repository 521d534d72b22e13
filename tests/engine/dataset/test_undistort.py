"""Undistortion, checked without any other program: rays, straight lines, areas."""

from functools import cache

import numpy as np
import pytest

from engine.dataset.lenses import MODELS_BY_NAME, intrinsics_of, is_pinhole, to_pixels
from engine.dataset.scene import Distortion
from engine.dataset.undistort import pinhole_view, sampling_grid, undistort
from engine.errors import SceneError

CENTER = (62.0, 47.0)
LENSES = {
    "SIMPLE_RADIAL": (100.0, *CENTER, 0.1),
    "RADIAL": (100.0, *CENTER, -0.12, 0.03),
    "OPENCV": (100.0, 103.0, *CENTER, -0.1, 0.02, 0.003, -0.002),
    "OPENCV_FISHEYE": (75.0, 77.0, *CENTER, 0.02, -0.01, 0.003, 0.001),
    "FULL_OPENCV": (100.0, 103.0, *CENTER, 0.2, 0.01, 0.001, 0.002, 0.01, 0.3, 0.02, 0.01),
    "FOV": (88.0, 90.0, *CENTER, 0.9),
    "SIMPLE_RADIAL_FISHEYE": (75.0, *CENTER, 0.03),
    "RADIAL_FISHEYE": (75.0, *CENTER, 0.03, -0.01),
    "THIN_PRISM_FISHEYE": (75.0, 77.0, *CENTER, 0.02, -0.01, 0.002, 0.001, 0.003, 0.001, 0.002, 0),
    "RAD_TAN_THIN_PRISM_FISHEYE": (
        *(75.0, 77.0, *CENTER, 0.02, -0.01, 0.003, 0.001, 0.0, 0.0),
        *(0.002, 0.001, 0.002, 0.001, -0.002, 0.001),
    ),
    "SIMPLE_DIVISION": (100.0, *CENTER, -0.1),
    "DIVISION": (100.0, 103.0, *CENTER, 0.1),
    "SIMPLE_FISHEYE": (75.0, *CENTER),
    "FISHEYE": (75.0, 77.0, *CENTER),
    "EUCM": (75.0, 77.0, *CENTER, 0.6, 1.1),
}
WIDTH, HEIGHT = 125, 95


def lens_of(model: str) -> Distortion:
    return Distortion(model, LENSES[model], WIDTH, HEIGHT)


def test_every_distorted_model_is_tried_here() -> None:
    assert set(LENSES) == set(MODELS_BY_NAME) - {"SIMPLE_PINHOLE", "PINHOLE"}


def unbend(lens: Distortion, pixels: np.ndarray) -> np.ndarray:
    """Rays by fixed-point iteration, written apart from the code under test."""
    inner = intrinsics_of(lens)
    focal, center = np.array([inner.fx, inner.fy]), np.array([inner.cx, inner.cy])
    rays = (pixels - center) / focal
    for _ in range(80):
        rays = rays - 0.7 * (to_pixels(lens, rays) - pixels) / focal
    assert np.abs(to_pixels(lens, rays) - pixels).max() < 1e-4
    return rays


@cache
def rays_of_every_pixel(model: str) -> np.ndarray:
    columns, rows = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    pixels = np.stack([columns.ravel(), rows.ravel()], axis=1)
    return unbend(lens_of(model), pixels).reshape(HEIGHT, WIDTH, 2)


@pytest.mark.parametrize("model", LENSES)
def test_a_ray_that_is_bent_comes_back_straight(model: str) -> None:
    lens = lens_of(model)
    rays = np.random.default_rng(0).uniform(-0.35, 0.35, (200, 2))
    assert np.allclose(unbend(lens, to_pixels(lens, rays)), rays, atol=1e-6)


@pytest.mark.parametrize("model", LENSES)
def test_no_pixel_of_the_pinhole_picture_lies_outside_the_photo(model: str) -> None:
    lens = lens_of(model)
    view = pinhole_view(lens)
    grid = sampling_grid(lens)
    assert grid.shape == (1, view.height, view.width, 2)
    # 1: the edges of the photo; pixel centres stay half a pixel inside, less a hundredth
    assert grid.abs().max() <= 1.0
    assert 0.5 < view.kept_share <= 1.0


@pytest.mark.parametrize("model", LENSES)
def test_the_grid_says_what_the_formula_says(model: str) -> None:
    lens = lens_of(model)
    view = pinhole_view(lens)
    random = np.random.default_rng(1)
    columns, rows = random.integers(view.width, size=500), random.integers(view.height, size=500)
    exact = to_pixels(lens, view.rays(np.stack([columns + 0.5, rows + 0.5], axis=1)))
    found = (sampling_grid(lens)[0].numpy()[rows, columns] + 1) / 2 * [WIDTH, HEIGHT]
    # 0.02 pixels: the grid is exact at every fourth pixel and bilinear between
    assert np.abs(found - exact).max() < 0.02


@pytest.mark.parametrize("model", LENSES)
def test_a_picture_painted_through_the_lens_comes_back_undistorted(model: str) -> None:
    """A smooth picture of the ray's direction, distorted exactly, then undistorted."""
    lens = lens_of(model)
    painted = rays_of_every_pixel(model).astype(np.float32)
    view = pinhole_view(lens)
    undone = undistort(painted, lens)
    columns, rows = np.meshgrid(np.arange(view.width) + 0.5, np.arange(view.height) + 0.5)
    expected = view.rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    errors = np.abs(undone - expected.reshape(view.height, view.width, 2))[1:-1, 1:-1]
    # a twentieth of a pixel: bilinear sampling of a curved ramp
    assert errors.max() * view.intrinsics.fx < 0.05


@pytest.mark.parametrize("model", LENSES)
def test_straight_edges_of_the_world_are_straight_in_the_picture(model: str) -> None:
    lens = lens_of(model)
    rays = rays_of_every_pixel(model)
    # a world that is bright left of the line x = 0.1 y + 0.2, with a soft edge two pixels wide
    side = (0.2 + 0.1 * rays[..., 1] - rays[..., 0]) * intrinsics_of(lens).fx
    painted = np.clip(side / 2 + 0.5, 0, 1)[..., None].astype(np.float32)
    view = pinhole_view(lens)
    undone = undistort(painted, lens)[..., 0]
    edges = undone.sum(axis=1)[2:-2]  # where the edge crosses each row
    places = np.arange(len(edges))
    residual = edges - np.polyval(np.polyfit(places, edges, 1), places)
    # a quarter of a pixel; the distorted picture's own edge bends by several
    assert np.abs(residual).max() < 0.25
    assert view.width > 0


@pytest.mark.parametrize("zeros", ["SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV", "FOV"])
def test_zero_distortion_is_a_pinhole(zeros: str) -> None:
    model = MODELS_BY_NAME[zeros]
    focal = (400.0,) * model.focal_count
    lens = Distortion(zeros, (*focal, 250.0, 190.0, *[0.0] * model.extra_count), WIDTH, HEIGHT)
    assert is_pinhole(lens)
    view = pinhole_view(lens)
    assert (view.width, view.height, view.kept_share) == (WIDTH, HEIGHT, 1.0)


def test_the_middle_keeps_its_sharpness_and_the_principal_ray_its_place() -> None:
    lens = lens_of("OPENCV")
    view = pinhole_view(lens)
    assert view.intrinsics.fx == 100.0
    assert view.intrinsics.fy == 103.0
    center = np.array([[view.intrinsics.cx, view.intrinsics.cy]])
    assert np.allclose(to_pixels(lens, view.rays(center)), [CENTER])


def test_a_bad_estimate_that_folds_over_is_cut_back() -> None:
    view = pinhole_view(Distortion("SIMPLE_RADIAL", (1000.0, 500.0, 400.0, -2.0), 1000, 800))
    # the lens folds where 1 - 6 r^2 = 0: nothing beyond r = 0.408 may be used
    corner = view.rays(np.array([[0.0, 0.0]]))
    assert np.linalg.norm(corner) <= 0.409
    assert view.kept_share < 0.5


def test_a_wide_fisheye_makes_no_more_pixels_than_is_sensible() -> None:
    lens = Distortion("OPENCV_FISHEYE", (250.0, 250.0, 400.0, 400.0, 0.0, 0.0, 0.0, 0.0), 800, 800)
    view = pinhole_view(lens)
    assert view.width * view.height <= 1.5 * 800 * 800
    assert view.intrinsics.fx < 250
    assert view.width / (2 * view.intrinsics.fx) <= np.tan(np.radians(75.0)) + 1e-6


def test_a_crop_far_off_the_axis_is_undistorted() -> None:
    lens = Distortion("SIMPLE_RADIAL", (400.0, -50.0, 500.0, 0.05), 200, 150)
    view = pinhole_view(lens)
    assert view.kept_share > 0.8
    assert sampling_grid(lens).abs().max() <= 1.0


def test_a_lens_that_sends_no_ray_to_the_photo_is_refused() -> None:
    lens = Distortion("SIMPLE_RADIAL", (400.0, -3000.0, 190.0, -0.5), 500, 380)
    with pytest.raises(SceneError, match="estimated badly"):
        pinhole_view(lens)


@pytest.mark.parametrize(
    ("model", "parameters", "size"),
    [
        ("SIMPLE_RADIAL", (2400.0, 900.0, 180.0, -18.0), (940, 175)),  # folds before a side
        ("RADIAL", (820.0, -6000.0, 570.0, -6700.0, 5400.0), (1930, 1085)),
        # the root of less than 0
        ("EUCM", (276.0, 427.0, 238.0, 9450.0, -0.3, -0.68), (456, 1673)),
        # a focal length of next to nothing
        ("SIMPLE_RADIAL", (1e-310, 62.0, 40.0, 0.1), (125, 95)),
    ],
)
def test_a_lens_that_makes_no_sense_is_refused_in_words(
    model: str, parameters: tuple[float, ...], size: tuple[int, int]
) -> None:
    with pytest.raises(SceneError, match="estimated badly"):
        pinhole_view(Distortion(model, parameters, *size))


def test_the_grid_is_finite_where_the_lens_ends_right_beyond_the_picture() -> None:
    parameters = (167.21276466382764, 362.0559091922492, 749.0963373444021, 0.11391079474852249)
    lens = Distortion("SIMPLE_DIVISION", parameters, 796, 1838)
    assert sampling_grid(lens).abs().max() <= 1.0  # false for NaN
