import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.dataset.geometry import camera_extent, scene_pivot, scene_up
from engine.dataset.initial_points import initial_points
from engine.dataset.load import load_scene
from engine.dataset.scene import Scene
from engine.settings import Settings
from tests.engine.dataset.scene_files import make_views, moved, write_blender, write_colmap


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def scene_in(folder: Path, **options: object) -> Scene:
    write_colmap(folder, make_views(), **options)  # type: ignore[arg-type]
    return load_scene(folder, Settings())


def test_the_sparse_points_are_the_start(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    points, colors = initial_points(scene, Settings(), generator())
    assert np.array_equal(points, scene.points)
    assert np.array_equal(colors, scene.point_colors)


def test_more_points_than_the_cap_are_thinned_repeatably(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    many = np.random.default_rng(0).normal(size=(5000, 3))
    shades = np.zeros((5000, 3), dtype=np.uint8)
    scene = dataclasses.replace(scene, points=many, point_colors=shades)
    settings = Settings().changed("max_splats", 1000)
    points, colors = initial_points(scene, settings, generator())
    again, _ = initial_points(scene, settings, generator())
    other, _ = initial_points(scene, settings, generator(1))
    assert points.shape == colors.shape == (1000, 3)
    assert len(np.unique(points, axis=0)) == 1000
    assert np.array_equal(points, again)
    assert not np.array_equal(points, other)


def test_points_that_are_not_finite_are_never_a_start(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    points = scene.points.copy()
    points[3, 1] = np.nan
    made, colors = initial_points(
        dataclasses.replace(scene, points=points), Settings(), generator()
    )
    assert len(made) == len(colors) == len(points) - 1
    assert np.isfinite(made).all()


def test_random_points_of_a_blender_scene_fill_its_cube_round_the_files_origin(
    tmp_path: Path,
) -> None:
    scene = load_scene(write_blender(tmp_path, make_views()), Settings())
    points, colors = initial_points(scene, Settings().changed("random_points", 5000), generator())
    in_file = scene.frame.to_file(points)
    assert in_file.shape == colors.shape == (5000, 3)
    assert 1.29 < np.abs(in_file).max() <= 1.3
    # the mean of 5000 uniform draws is within 4 standard errors of the middle
    assert np.abs(in_file.mean(axis=0)).max() < 4 * 1.3 / np.sqrt(3 * 5000)
    assert (colors == 128).all()


def test_random_points_of_other_scenes_are_all_seen_by_a_training_camera(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, points=False)
    points, _ = initial_points(scene, Settings().changed("random_points", 2000), generator())
    seen = np.zeros(len(points), dtype=bool)
    for photo in scene.training:
        pixels, depth = photo.camera.project(points)
        inside = ((pixels > -1e-6) & (pixels < [60 + 1e-6, 40 + 1e-6])).all(axis=1)
        seen |= inside & (depth > 0)
    assert seen.all()
    assert [item.code for item in scene.findings if item.code == "points_missing"]
    again, _ = initial_points(scene, Settings().changed("random_points", 2000), generator())
    assert np.array_equal(points, again)


def test_the_extent_is_that_of_the_training_cameras(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    centers = np.array([photo.camera.center for photo in scene.training])
    distances = np.linalg.norm(centers - centers.mean(axis=0), axis=1)
    assert camera_extent(scene) == pytest.approx(1.1 * distances.max())


def test_up_and_pivot_are_sensible(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    assert np.dot(scene_up(scene), [0, 0, 1]) > 0.99  # ring cameras tilt, their mean does not
    pivot = scene.frame.to_file(np.array([scene_pivot(scene)]))[0]
    assert np.linalg.norm(pivot - np.median(make_views().points, axis=0)) < 1e-9
    bare = scene_in(tmp_path / "bare", points=False)
    assert np.linalg.norm(bare.frame.to_file(np.array([scene_pivot(bare)]))) < 1e-6


@pytest.mark.parametrize("kind", ["one", "tripod", "line"])
def test_cameras_at_one_place_take_their_extent_from_the_points(tmp_path: Path, kind: str) -> None:
    views = make_views(1 if kind == "one" else 6)
    if kind != "one":
        offset = 0.5 if kind == "line" else 0.0
        for index, pose in enumerate(views.poses):
            views.poses[index] = views.poses[0].copy()
            views.poses[index][0, 3] -= offset * index
            del pose
    write_colmap(tmp_path, views)
    scene = load_scene(tmp_path, Settings())
    from_points = [item.code for item in scene.findings if item.code == "extent_from_points"]
    if kind == "line":
        assert not from_points
        assert camera_extent(scene) == pytest.approx(1.1 * 1.0)  # cameras 1 to 5, 0.5 apart
    else:
        assert from_points
        distances = np.linalg.norm(views.points - np.median(views.points, axis=0), axis=1)
        assert camera_extent(scene) == pytest.approx(np.median(distances), rel=1e-6)
    assert np.isfinite([photo.camera.world_to_camera for photo in scene.photos]).all()


def test_coordinates_of_a_map_projection_lose_nothing(tmp_path: Path) -> None:
    shift = (500_000.0, 4_500_000.0, 200.0)
    write_colmap(tmp_path / "near", make_views())
    write_colmap(tmp_path / "far", moved(make_views(), shift), photos=True)
    near = load_scene(tmp_path / "near", Settings())
    far = load_scene(tmp_path / "far", Settings())
    # 1e-7: float64 at 4.5 million resolves 1e-9, times a few operations
    assert np.allclose(far.points, near.points, atol=1e-7)
    for one, other in zip(near.photos, far.photos, strict=True):
        assert np.allclose(one.camera.world_to_camera, other.camera.world_to_camera, atol=1e-7)
    assert np.allclose(far.frame.to_file(far.points), moved(make_views(), shift).points, atol=1e-7)
    assert "large_coordinates" in {item.code for item in far.findings}


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_tiny_and_huge_scenes_are_scaled_and_can_be_put_back(tmp_path: Path, scale: float) -> None:
    views = moved(make_views(), (0.0, 0.0, 0.0), scale)
    write_colmap(tmp_path, views)
    scene = load_scene(tmp_path, Settings())
    assert camera_extent(scene) == pytest.approx(1.0)
    assert np.allclose(scene.frame.to_file(scene.points), views.points, rtol=1e-9)
    camera = scene.photos[0].camera
    expected, _ = camera.moved(views.poses[0]).project(views.points)
    assert np.allclose(camera.project(scene.points)[0], expected, atol=1e-6)
