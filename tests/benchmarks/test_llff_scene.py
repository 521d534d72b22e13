"""A scene of LLFF opens with the cameras and points that it has in COLMAP's form."""

from pathlib import Path

import numpy as np

from benchmarks.llff_scene import IMAGES, write_transforms
from engine.dataset.load import load_scene
from engine.settings import Settings
from tests.engine.dataset.scene_files import make_views, write_colmap, write_photos

FULL_SIZE = 8  # times that of the photos


def test_the_cameras_and_points_are_those_of_the_model_that_llff_made_its_poses_of(
    tmp_path: Path,
) -> None:
    views = make_views()
    colmap, llff, made = (tmp_path / name for name in ("colmap", "llff", "made"))
    write_colmap(colmap, views)
    write_colmap(llff, views, model="sparse_orig/0", photos=False)
    write_photos(llff / IMAGES, views)
    lens = views.lenses[1]
    rows = []
    for pose in views.poses:
        right, down, forward, place = np.linalg.inv(pose)[:3].T
        size = FULL_SIZE * np.array([lens.height, lens.width, lens.parameters[0]])
        matrix = np.stack([down, right, -forward, place, size], axis=1)
        rows.append([*matrix.ravel(), 1.0, 9.0])
    np.save(llff / "poses_bounds.npy", np.array(rows))
    made.mkdir()

    expected = load_scene(colmap, Settings())
    found = load_scene(write_transforms(llff, made), Settings())
    assert len(found.photos) == len(expected.photos) == len(views.poses)
    for photo, other in zip(found.photos, expected.photos, strict=True):
        camera, same = photo.camera, other.camera
        assert photo.path == llff / IMAGES / other.name
        assert (camera.fx, camera.fy, camera.cx, camera.cy) == (same.fx, same.fy, same.cx, same.cy)
        np.testing.assert_allclose(camera.world_to_camera, same.world_to_camera, atol=1e-9)
    # float32 in the seed cloud.
    np.testing.assert_allclose(found.points, expected.points, atol=1e-6)
    np.testing.assert_array_equal(found.point_colors, expected.point_colors)
