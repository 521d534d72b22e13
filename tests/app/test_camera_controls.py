"""The camera goes where the mouse says, and keeps its footing."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.viewport.camera_controls import (
    CameraControls,
    Viewpoint,
    fitted_lens,
    lens_rectangle,
    picked_point,
)
from engine.cameras import Camera
from tests.looking import look_at

UP = np.array([0.0, -1.0, 0.0])
DRAG = st.floats(-400, 400)


def controls(eye: tuple[float, float, float] = (0.0, -1.0, -4.0)) -> CameraControls:
    pose = look_at(np.array(eye), np.zeros(3), UP)
    lens = Camera(pose, 300.0, 310.0, 155.0, 125.0, 320, 240)
    return CameraControls(Viewpoint(pose, np.zeros(3), lens), UP, extent=4.0)


def pivot_pixel(view: CameraControls) -> np.ndarray:
    pixels, _ = view.camera(320, 240).project(view.pivot[None])
    return np.asarray(pixels[0])


@given(moves=st.lists(st.tuples(DRAG, DRAG), min_size=1, max_size=8))
def test_an_orbit_keeps_the_pivot_where_it_is_in_the_picture(
    moves: list[tuple[float, float]],
) -> None:
    view = controls()
    view.pivot = np.array([0.3, 0.2, 0.1])
    before = pivot_pixel(view)
    distance = np.linalg.norm(view.camera(320, 240).center - view.pivot)
    for dx, dy in moves:
        view.orbit(dx, dy, 240)
    # float64 geometry with a re-orthonormalised pose: errors stay near 1e-12 of a pixel
    np.testing.assert_allclose(pivot_pixel(view), before, atol=1e-8)
    after = np.linalg.norm(view.camera(320, 240).center - view.pivot)
    assert after == pytest.approx(distance, rel=1e-10)


@given(moves=st.lists(st.tuples(DRAG, DRAG), min_size=1, max_size=20))
def test_an_orbit_never_tips_over_and_never_rolls(moves: list[tuple[float, float]]) -> None:
    view = controls()
    for dx, dy in moves:
        view.orbit(dx, dy, 240)
        pose = view.camera(320, 240)
        assert pose.up @ UP > 0
        assert abs(pose.camera_to_world[:3, 0] @ UP) < 1e-6  # the horizon stays level


def test_dragging_to_the_right_moves_the_near_side_to_the_right() -> None:
    view = controls()
    near_side = np.array([[0.0, -0.25, -1.0]])
    before, _ = view.camera(320, 240).project(near_side)
    view.orbit(20, 0, 240)
    after, _ = view.camera(320, 240).project(near_side)
    assert after[0, 0] > before[0, 0] + 2


def test_dragging_down_moves_the_near_side_down() -> None:
    view = controls()
    near_side = np.array([[0.0, -0.25, -1.0]])
    before, _ = view.camera(320, 240).project(near_side)
    view.orbit(0, 20, 240)
    after, _ = view.camera(320, 240).project(near_side)
    assert after[0, 1] > before[0, 1] + 2


def test_a_pan_takes_what_lies_at_the_pivots_depth_along_with_the_mouse() -> None:
    view = controls()
    point = view.pivot[None].copy()
    before, _ = view.camera(320, 240).project(point)
    view.pan(13, -7, 240)
    after, _ = view.camera(320, 240).project(point)
    np.testing.assert_allclose(after - before, [[13.0, -7.0]], atol=1e-9)


def test_zooming_in_and_out_comes_back() -> None:
    view = controls()
    before = view.camera(320, 240).center
    view.zoom(3)
    assert np.linalg.norm(view.camera(320, 240).center) < np.linalg.norm(before)
    view.zoom(-3)
    np.testing.assert_allclose(view.camera(320, 240).center, before, atol=1e-9)


def test_zooming_for_ever_goes_on_through_the_pivot() -> None:
    view = controls()
    for _ in range(200):
        view.zoom(1)
    before = view.camera(320, 240).center
    view.zoom(1)
    moved = view.camera(320, 240).center - before
    assert moved @ view.camera(320, 240).forward > 1e-4  # not stuck before the old pivot
    assert np.isfinite(view.world_to_camera).all()


def test_flying_ahead_goes_where_the_camera_looks_and_faster_with_shift() -> None:
    slow, fast = controls(), controls()
    start = slow.camera(320, 240)
    slow.fly(np.array([0.0, 0.0, 1.0]), 0.5)
    fast.fly(np.array([0.0, 0.0, 1.0]), 0.5, fast=True)
    step = slow.camera(320, 240).center - start.center
    np.testing.assert_allclose(step / np.linalg.norm(step), start.forward, atol=1e-9)
    assert np.linalg.norm(fast.camera(320, 240).center - start.center) > 2 * np.linalg.norm(step)


def test_flying_nowhere_moves_nothing() -> None:
    view = controls()
    view.fly(np.zeros(3), 1.0)
    np.testing.assert_array_equal(view.world_to_camera, view.home_viewpoint.world_to_camera)


def test_focus_brings_the_point_to_the_middle_from_where_the_camera_stands() -> None:
    view = controls()
    before = view.camera(320, 240).center
    view.focus(np.array([0.7, 0.4, 0.2]))
    camera = view.camera(320, 240)
    np.testing.assert_allclose(camera.center, before, atol=1e-9)
    pixel = pivot_pixel(view)
    np.testing.assert_allclose(pixel, [camera.cx, camera.cy], atol=1e-6)


def test_home_undoes_everything() -> None:
    view = controls()
    other = look_at(np.array([3.0, -2.0, 1.0]), np.zeros(3), UP)
    view.jump(Camera(other, 900.0, 900.0, 50.0, 50.0, 100, 100))
    view.orbit(100, 50, 240)
    view.zoom(4)
    view.home()
    np.testing.assert_array_equal(view.world_to_camera, view.home_viewpoint.world_to_camera)
    assert view.lens is view.home_viewpoint.lens


def test_a_photos_camera_is_taken_over_exactly_when_the_view_has_its_size() -> None:
    view = controls()
    photo = Camera(
        look_at(np.array([3.0, -2.0, 1.0]), np.zeros(3), UP), 281.0, 283.0, 150.0, 99.0, 301, 203
    )
    view.jump(photo)
    camera = view.camera(301, 203)
    for name in ("fx", "fy", "cx", "cy", "width", "height"):
        assert getattr(camera, name) == pytest.approx(getattr(photo, name))
    np.testing.assert_array_equal(camera.world_to_camera, photo.world_to_camera)


@given(width=st.integers(1, 2000), height=st.integers(1, 2000))
def test_a_fitted_lens_shows_the_photo_in_its_rectangle(width: int, height: int) -> None:
    lens = controls().lens
    fitted = fitted_lens(lens, width, height)
    x, y, w, h = lens_rectangle(lens, width, height)
    assert x >= -1e-9
    assert y >= -1e-9
    assert x + w <= width + 1e-6
    assert y + h <= height + 1e-6
    points = np.array([[0.1, -0.2, 0.0], [-0.4, 0.1, 0.5]])
    photo_pixels, _ = lens.project(points)
    view_pixels, _ = fitted.project(points)
    expected = photo_pixels * [w / lens.width, h / lens.height] + [x, y]
    np.testing.assert_allclose(view_pixels, expected, atol=1e-6)


def test_looking_straight_down_can_still_be_turned() -> None:
    view = controls((0.0, -4.0, 0.0))
    view.orbit(40, -60, 240)
    assert np.isfinite(view.world_to_camera).all()
    assert not np.allclose(view.world_to_camera, view.home_viewpoint.world_to_camera)


def test_a_click_finds_the_front_of_the_points_under_it() -> None:
    camera = controls().camera(320, 240)
    generator = np.random.default_rng(1)
    front = np.array([0.0, 0.0, -1.0]) + generator.normal(0, 0.01, (50, 3))
    back = np.array([0.0, 0.0, 5.0]) + generator.normal(0, 0.01, (10, 3))
    target, depth = camera.project(np.array([[0.0, 0.0, -1.0]]))
    point = picked_point(np.concatenate([front, back]), camera, *target[0])
    assert point is not None
    pixel, found = camera.project(point[None])
    np.testing.assert_allclose(pixel, target, atol=1e-6)
    assert found[0] == pytest.approx(depth[0], abs=0.05)  # the cloud is 0.01 thick


def test_a_click_into_the_void_and_points_behind_find_nothing() -> None:
    camera = controls().camera(320, 240)
    behind = camera.center[None] - 3 * camera.forward[None]
    assert picked_point(behind, camera, camera.cx, camera.cy) is None
    assert picked_point(np.empty((0, 3)), camera, 1.0, 1.0) is None


def test_upside_down_photos_turn_with_the_mouse_too() -> None:
    view = controls()
    flip = np.diag([-1.0, -1.0, 1.0, 1.0])
    turned = flip @ view.world_to_camera
    view.jump(dataclasses.replace(view.lens, world_to_camera=turned))
    near_side = np.array([[0.0, -0.25, -1.0]])
    before, _ = view.camera(320, 240).project(near_side)
    view.orbit(20, 15, 240)
    after, _ = view.camera(320, 240).project(near_side)
    assert after[0, 0] > before[0, 0] + 2
    assert after[0, 1] > before[0, 1] + 2
