import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.dataset.load import load_scene
from engine.dataset.scene import Scene
from engine.errors import SceneError
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    make_views,
    opengl_matrix,
    transforms,
    write_blender,
    write_photos,
    write_transforms,
)
from tests.engine.ply_files import write_ply


def codes(scene: Scene) -> set[str]:
    return {item.code for item in scene.findings}


def opened(tmp_path: Path, change: Callable[[dict[str, Any]], None], count: int = 10) -> Scene:
    views = make_views(count)
    content: dict[str, Any] = transforms(views)
    change(content)
    write_transforms(tmp_path, views, content)
    return load_scene(tmp_path, Settings())


def test_one_camera_on_the_z_axis_sees_x_right_and_y_up(tmp_path: Path) -> None:
    # OpenGL: an identity rotation looks along -z with y up (FIELD_REPORTS C7).
    matrix = np.eye(4)
    matrix[2, 3] = 4.0

    def change(content: dict[str, Any]) -> None:
        content["frames"][0]["transform_matrix"] = matrix.tolist()

    scene = opened(tmp_path, change)
    camera = scene.photos[0].camera
    pixels, depth = camera.project(scene.frame.to_engine(np.array([[1.0, 0, 0], [0, 1.0, 0]])))
    assert np.allclose(depth, 4.0)
    assert pixels[0, 0] > camera.cx
    assert pixels[0, 1] == pytest.approx(camera.cy)
    assert pixels[1, 1] < camera.cy  # up is towards smaller rows


def test_the_field_of_view_alone_is_enough(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        for key in ("fl_x", "fl_y", "cx", "cy", "w", "h"):
            del content[key]
        content["camera_angle_x"] = 2 * math.atan(30 / 55)

    camera = opened(tmp_path, change).photos[0].camera
    assert (camera.width, camera.height) == (60, 40)
    assert camera.fx == pytest.approx(55)
    assert camera.fy == pytest.approx(55)  # square pixels although the picture is not square
    assert (camera.cx, camera.cy) == (30, 20)


def test_intrinsics_of_a_frame_win_over_those_at_the_root(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][2].update(fl_x=70.0, cx=33.0)
        content["frames"][3].update(k1=0.05)

    scene = opened(tmp_path, change)
    assert scene.photos[2].camera.fx == 70
    assert scene.photos[2].camera.cx == 33
    assert scene.photos[2].camera.fy == 55
    assert scene.photos[0].camera.fx == 55
    assert [photo.distortion is not None for photo in scene.photos[:5]] == [0, 0, 0, 1, 0]


def test_intrinsics_may_stand_in_the_frames_only(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        root = {key: content.pop(key) for key in ("fl_x", "fl_y", "cx", "cy", "w", "h")}
        for frame in content["frames"]:
            frame.update(root)
        content["frames"][1]["fl_x"] = 77.0

    scene = opened(tmp_path, change)
    assert scene.photos[0].camera.fx == 55
    assert scene.photos[1].camera.fx == 77


@pytest.mark.parametrize(
    ("values", "model", "extras"),
    [
        ({"k1": 0.1, "k2": 0.2, "p1": 0.01, "p2": 0.02}, "OPENCV", (0.1, 0.2, 0.01, 0.02)),
        ({"k1": 0.1, "k3": 0.3}, "FULL_OPENCV", (0.1, 0, 0, 0, 0.3, 0, 0, 0)),
        (
            {"camera_model": "OPENCV_FISHEYE", "k1": 0.1, "k4": 0.4},
            "OPENCV_FISHEYE",
            (0.1, 0, 0, 0.4),
        ),
        ({"is_fisheye": True, "k1": 0.1}, "OPENCV_FISHEYE", (0.1, 0, 0, 0)),
    ],
)
def test_distortion_goes_to_the_right_places(
    tmp_path: Path, values: dict[str, Any], model: str, extras: tuple[float, ...]
) -> None:
    lens = opened(tmp_path, lambda content: content.update(values)).photos[0].distortion
    assert lens is not None
    assert lens.model == model
    assert lens.parameters[4:] == extras


def test_zero_distortion_is_a_pinhole(tmp_path: Path) -> None:
    values = {"camera_model": "OPENCV", "k1": 0.0, "k2": 0.0, "p1": 0.0, "p2": 0.0}
    assert opened(tmp_path, lambda content: content.update(values)).photos[0].distortion is None


@pytest.mark.parametrize(
    "written",
    ["./images/photo_000.png", "images\\photo_000.png", "images/photo_000", "images/PHOTO_000.PNG"],
)
def test_ways_to_write_a_file_path(tmp_path: Path, written: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][0]["file_path"] = written

    scene = opened(tmp_path, change)
    assert len(scene.photos) == 10
    assert (tmp_path / "images" / "photo_000.png") in {photo.path for photo in scene.photos}


@pytest.mark.parametrize(
    "written", ["C:\\x\\photo_000.png", "/abs/photo_000.png", "photo_000.jpg", "else/photo_000"]
)
def test_a_path_of_another_machine_is_found_by_its_base_name(tmp_path: Path, written: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][0]["file_path"] = written

    scene = opened(tmp_path, change)
    assert len(scene.photos) == 10
    assert "matched_base_name" in codes(scene)
    assert scene.photos[0].name == "images/photo_000.png"


def test_names_with_many_dots_stay_apart(tmp_path: Path) -> None:
    views = make_views(3, names=["a.1.png", "a.2.png", "image.problem.png"])
    content: dict[str, Any] = transforms(views)
    for frame in content["frames"]:
        frame["file_path"] = frame["file_path"].removesuffix(".png")
    write_transforms(tmp_path, views, content)
    scene = load_scene(tmp_path, Settings())
    assert [photo.path.name for photo in scene.photos] == views.names


def test_missing_photos_are_listed_and_the_rest_is_used(tmp_path: Path) -> None:
    views = make_views(10)
    write_transforms(tmp_path, views)
    (tmp_path / "images" / "photo_004.png").unlink()
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 9
    missing = [item for item in scene.findings if item.code == "photo_missing"]
    assert [item.file for item in missing] == ["images/photo_004.png"]
    assert str(tmp_path / "images" / "photo_004.png") in missing[0].message


IDENTITY = np.eye(4).tolist()
MISSING = object()
SENSIBLE = "of a sensible size, below 1e+12"
WRONG_FRAMES = [
    ("file_path", 7, "entry_invalid", "'file_path' is 7; expected the name of a photo"),
    ("file_path", None, "entry_invalid", "'file_path' is null; expected"),
    ("file_path", "./", "entry_invalid", "'file_path' is \"./\"; expected"),
    ("file_path", MISSING, "entry_invalid", "there is no 'file_path'; expected"),
    ("file_path", "a" * 5_000, "entry_invalid", "'file_path' is \"aaaa"),
    ("file_path", "a" * 300, "photo_missing", "does not exist"),  # longer than files can be called
    ("transform_matrix", MISSING, "pose_invalid", "there is no 'transform_matrix'; expected"),
    ("transform_matrix", None, "pose_invalid", "'transform_matrix' is null; expected four rows"),
    ("transform_matrix", "eye", "pose_invalid", "'transform_matrix' is \"eye\"; expected"),
    ("transform_matrix", 1.0, "pose_invalid", "'transform_matrix' is 1.0; expected"),
    ("transform_matrix", {"a": 1}, "pose_invalid", "expected four rows"),
    ("transform_matrix", [[1, 2], [3]], "pose_invalid", "is [[1, 2], [3]]; expected four rows"),
    ("transform_matrix", IDENTITY[:2], "pose_invalid", "expected four rows of four finite"),
    ("transform_matrix", [["1"] * 4] * 4, "pose_invalid", "expected four rows of four finite"),
    ("transform_matrix", [[None] * 4] * 4, "pose_invalid", "is [[null, null"),
    (
        "transform_matrix",
        [[math.nan] * 4] * 4,
        "pose_invalid",
        "row 1, column 1 of 'transform_matrix' is NaN",
    ),
    (
        "transform_matrix",
        [[1e30] * 4] * 4,
        "pose_invalid",
        f"'transform_matrix' is 1e+30; expected four rows of four finite numbers {SENSIBLE}",
    ),
    ("transform_matrix", [[10**400, 0, 0, 0.5]] * 4, "pose_invalid", "expected four rows"),
    ("transform_matrix", np.zeros((4, 4)).tolist(), "pose_invalid", "expected a rigid pose"),
    ("transform_matrix", np.diag([1.0, 1, -1, 1]).tolist(), "pose_invalid", "mirrors"),
    ("fl_x", "55", "distortion_invalid", "'fl_x' is \"55\"; expected a finite number"),
    ("fl_y", 0, "distortion_invalid", "'fl_y' is 0; expected above 0"),
    ("camera_angle_x", 4, "distortion_invalid", "'camera_angle_x' is 4; expected above 0 and be"),
    ("cx", math.nan, "distortion_invalid", "'cx' is NaN; expected a finite number"),
    ("cx", 1e30, "distortion_invalid", f"'cx' is 1e+30; expected a finite number {SENSIBLE}"),
    ("k1", [0.1], "distortion_invalid", "'k1' is [0.1]; expected a finite number"),
    ("w", "60", "distortion_invalid", "'w' is \"60\"; expected a finite number"),
    ("h", -40, "distortion_invalid", "'h' is -40; expected above 0"),
    ("camera_model", 3, "distortion_invalid", "'camera_model' is \"3\"; expected OPENCV"),
]


@pytest.mark.parametrize("flavour", ["nerfstudio", "instant-ngp", "Blender"])
def test_frames_that_cannot_be_used_are_left_out_alone(tmp_path: Path, flavour: str) -> None:
    views = make_views(len(WRONG_FRAMES) + 12)
    if flavour == "Blender":
        path = write_blender(tmp_path, views) / "transforms_train.json"
    else:
        path = write_transforms(tmp_path, views)
    content = json.loads(path.read_text())
    if flavour == "instant-ngp":  # it says the lens by its field of view
        del content["fl_x"], content["fl_y"]
        content["camera_angle_x"] = 2 * math.atan(30 / 55)
    expected = {}
    for index, (key, value, code, message) in enumerate(WRONG_FRAMES):
        frame = content["frames"][index]
        frame[key] = value
        if value is MISSING:
            del frame[key]
        is_named = code != "entry_invalid"
        file = frame["file_path"] if is_named else f"{path.name}, frame {index}"
        expected[file.removeprefix("./")] = (code, message)
    path.write_text(json.dumps(content))
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 12
    lost = {item.file: item for item in scene.findings if item.file in expected}
    assert lost.keys() == expected.keys()
    for file, (code, message) in expected.items():
        assert (lost[file].code, lost[file].severity) == (code, "warning"), file
        assert message in lost[file].message, file
        assert str(tmp_path) in lost[file].message, file
        assert len(lost[file].message) < 700, file


def test_frames_that_are_no_objects_are_left_out_alone(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][2:5] = [None, "a.png", [1, 2]]

    scene = opened(tmp_path, change)
    assert len(scene.photos) == 7
    lost = [item for item in scene.findings if item.code == "entry_invalid"]
    assert [item.file for item in lost] == [f"transforms.json, frame {n}" for n in (2, 3, 4)]
    assert "frame 2 is null; expected an object with 'file_path'" in lost[0].message


def test_what_is_wrong_at_the_root_is_not_blamed_on_a_frame(tmp_path: Path) -> None:
    for key in ("fl_x", "k1"):
        with pytest.raises(SceneError) as caught:
            opened(tmp_path, lambda content, key=key: content.update({key: "wide"}))
        wrong = f"'{key}' is \"wide\"; expected a finite number {SENSIBLE}. No frame can be used."
        assert str(caught.value) == f"{tmp_path / 'transforms.json'}: {wrong}"


def test_the_number_of_a_pose_that_is_not_finite_is_named(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][3]["transform_matrix"][1][2] = math.nan

    (lost,) = [item for item in opened(tmp_path, change).findings if item.code == "pose_invalid"]
    assert "row 2, column 3 of 'transform_matrix' is NaN; expected four rows" in lost.message


def test_a_frame_without_a_name_is_told_once_and_its_photo_is_not_called_poseless(
    tmp_path: Path,
) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][0]["file_path"] = 5

    scene = opened(tmp_path, change)
    assert [item.code for item in scene.findings if item.severity == "warning"].count(
        "entry_invalid"
    ) == 1
    assert "photo_without_pose" not in codes(scene)


def test_photos_beyond_the_frames_without_a_name_are_still_told(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["frames"][0]["file_path"] = 5
        del content["frames"][1]

    alone = [f for f in opened(tmp_path, change).findings if f.code == "photo_without_pose"]
    assert len(alone) == 2
    assert "1 pose there cannot be read; one may be its own" in alone[0].message


def test_a_test_split_without_a_usable_frame_leaves_the_choice_to_the_names(tmp_path: Path) -> None:
    path = write_blender(tmp_path, make_views(10)) / "transforms_test.json"
    content = json.loads(path.read_text())
    for frame in content["frames"]:
        frame["transform_matrix"] = None
    path.write_text(json.dumps(content))
    scene = load_scene(tmp_path, Settings())
    assert [photo.held_out for photo in scene.photos] == [True] + [False] * 6
    assert len([item for item in scene.findings if item.code == "pose_invalid"]) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(frames=[]), "lists no frames"),
        (lambda c: c.pop("frames"), "has no list 'frames'"),
        (lambda c: c.update(frames=[3]), "frame 0 is 3; expected an object"),
        (lambda c: c.update(fl_x="wide"), "'fl_x' is \"wide\"; expected a finite number"),
        (lambda c: c.update(fl_x=-5.0), "'fl_x' is -5.0; expected"),
        (lambda c: c.update(k4=0.1), "'k4' is 0.1; expected 0 in a perspective camera"),
        (lambda c: c.update(camera_model="EQUIRECTANGULAR"), '"EQUIRECTANGULAR"; expected OPENCV'),
        (lambda c: (c.pop("fl_x"), c.pop("fl_y")), "says nothing of the lens"),
        (lambda c: c.update(w=0), "'w' is 0; expected above 0"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    with pytest.raises(SceneError, match=message):
        opened(tmp_path, change)


def test_broken_json_is_named_by_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "transforms.json"
    path.write_text('{\n "frames": [,]\n}')
    with pytest.raises(SceneError, match=r"transforms\.json, line 2, column 13"):
        load_scene(path, Settings())


def test_a_seed_cloud_is_in_the_frame_of_the_matrices(tmp_path: Path) -> None:
    views = make_views()
    rows = np.zeros(len(views.points), dtype=[("x", "f8"), ("y", "f8"), ("z", "f8")])
    for axis, name in enumerate("xyz"):
        rows[name] = views.points[:, axis]
    turned = [[0.0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    content = transforms(views, ply_file_path="sparse_pc.ply", applied_transform=turned)
    write_ply(tmp_path / "sparse_pc.ply", {"vertex": rows})
    write_transforms(tmp_path, views, content)
    scene = load_scene(tmp_path, Settings())
    assert np.allclose(scene.frame.to_file(scene.points), views.points, atol=1e-12)
    (share,) = [item.message for item in scene.findings if item.code == "points_in_view"]
    assert share.startswith("100.0%")


def test_a_named_cloud_that_is_missing_is_told(tmp_path: Path) -> None:
    scene = opened(tmp_path, lambda content: content.update(ply_file_path="points.ply"))
    assert {"seed_cloud_missing", "points_missing"} <= codes(scene)
    assert len(scene.points) == 0


def test_splats_are_not_taken_for_a_seed_cloud(tmp_path: Path) -> None:
    names = ("x", "y", "z", "opacity", "scale_0", "rot_0", "f_dc_0")
    write_ply(tmp_path / "s.ply", {"vertex": np.zeros(3, dtype=[(name, "f4") for name in names])})
    scene = opened(tmp_path, lambda content: content.update(ply_file_path="s.ply"))
    (finding,) = [item for item in scene.findings if item.code == "seed_cloud_unreadable"]
    assert "holds splats, not a point cloud" in finding.message


def test_blender_without_a_test_split_holds_out_by_name(tmp_path: Path) -> None:
    scene = load_scene(write_blender(tmp_path, make_views(10), test=0), Settings())
    assert [photo.held_out for photo in scene.photos] == [True] + [False] * 7 + [True, False]


def test_blender_ignores_the_validation_split(tmp_path: Path) -> None:
    write_blender(tmp_path, make_views(10))
    (tmp_path / "transforms_val.json").write_text("not even JSON")
    assert len(load_scene(tmp_path, Settings()).photos) == 10


def test_blender_without_training_photos_is_refused(tmp_path: Path) -> None:
    write_blender(tmp_path, make_views(10))
    (tmp_path / "transforms_train.json").unlink()
    with pytest.raises(SceneError, match=r"no transforms_train\.json"):
        load_scene(tmp_path, Settings())


def test_a_scaled_rotation_still_gives_a_rigid_pose(tmp_path: Path) -> None:
    views = make_views(4)
    content: dict[str, Any] = transforms(views)
    matrix = np.array(opengl_matrix(views.poses[0]))
    matrix[:3, :3] *= 0.5
    content["frames"][0]["transform_matrix"] = matrix.tolist()
    write_transforms(tmp_path, views, content)
    rotation = load_scene(tmp_path, Settings()).photos[0].camera.world_to_camera[:3, :3]
    assert np.allclose(rotation, views.poses[0][:3, :3], atol=1e-9)


def test_the_json_file_itself_can_be_opened_under_any_name(tmp_path: Path) -> None:
    views = make_views(4)
    write_photos(tmp_path / "images", views)
    path = tmp_path / "poses of mine.json"
    path.write_text(json.dumps(transforms(views)))
    assert len(load_scene(path, Settings()).photos) == 4
