import dataclasses
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.dataset.colmap import read_model
from engine.dataset.colmap_binary import read_points
from engine.dataset.lenses import MODELS_BY_NAME
from engine.dataset.load import load_scene
from engine.dataset.loading import Loading
from engine.dataset.posed_files import PosedFiles
from engine.dataset.scene import Distortion
from engine.errors import LoadingCancelled, SceneError
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    PINHOLE,
    make_views,
    observations,
    write_colmap,
)


def read(folder: Path) -> PosedFiles:
    return read_model(folder, (), Loading())


@pytest.mark.parametrize("kind", ["bin", "txt"])
def test_observations_lead_to_the_points_they_saw(tmp_path: Path, kind: str) -> None:
    views = make_views()
    posed = read(write_colmap(tmp_path, views, kind, photos=False))
    for index, photo in enumerate(posed.photos):
        pixels, rows = observations(views, index)
        assert photo.observations is not None
        assert np.array_equal(photo.observations.pixels, pixels)
        assert np.array_equal(photo.observations.points, rows)


@pytest.mark.parametrize("kind", ["bin", "txt"])
@pytest.mark.parametrize("model", MODELS_BY_NAME)
def test_every_camera_model_is_read_with_all_its_parameters(
    tmp_path: Path, kind: str, model: str
) -> None:
    count = MODELS_BY_NAME[model].parameter_count
    lens = Distortion(model, tuple(float(60 + value) for value in range(count)), 60, 40)
    views = dataclasses.replace(make_views(3, points=0), lenses={7: lens}, cameras=[7, 7, 7])
    posed = read(write_colmap(tmp_path, views, kind, photos=False))
    assert {photo.lens for photo in posed.photos} == {lens}


@pytest.mark.parametrize("kind", ["bin", "txt"])
@pytest.mark.parametrize(
    "name",
    [
        "A-DJI_2024 wp-2 (402).jpg",
        "a [1] b.png",
        "01/01_00005.png",
        "図 1.png",
        "frame.0001.png",
    ],
)
def test_a_name_is_kept_whole(tmp_path: Path, kind: str, name: str) -> None:
    views = make_views(3, names=["a.png", name, "z.png"])
    posed = read(write_colmap(tmp_path, views, kind, photos=False))
    assert [photo.name for photo in posed.photos] == ["a.png", name, "z.png"]


def test_a_path_with_umlauts_and_kana_is_opened(tmp_path: Path) -> None:
    root = tmp_path / "データ" / "Säule ü"
    write_colmap(root, make_views(names=[f"図 {index}.png" for index in range(10)]))
    assert len(load_scene(root, Settings()).photos) == 10


def test_empty_point_lines_and_comments_lose_no_image(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(5), "txt", photos=False)
    lines = (folder / "images.txt").read_text().split("\n")
    lines[4] = ""  # the 2-D points of the second image
    lines.insert(5, "# a remark between two images")
    lines.insert(0, "")
    (folder / "images.txt").write_text("\n".join(lines))
    posed = read(folder)
    assert len(posed.photos) == 5
    counts = [len(p.observations.points) for p in posed.photos if p.observations is not None]
    assert counts[1] == 0
    assert min(counts[0], counts[2], counts[3], counts[4]) > 0


def test_a_last_image_may_lack_its_line_of_points(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(2), "txt", photos=False)
    lines = (folder / "images.txt").read_text().rstrip("\n").split("\n")
    (folder / "images.txt").write_text("\n".join(lines[:-1]))
    assert len(read(folder).photos) == 2


def test_windows_line_ends_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(3), "txt", photos=False)
    for path in folder.glob("*.txt"):
        text = path.read_text().replace("\n", "\r\n")
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    posed = read(folder)
    assert [photo.name for photo in posed.photos] == make_views(3).names


@pytest.mark.parametrize("name", ["cameras", "images", "points3D"])
def test_a_binary_file_cut_anywhere_is_named_with_the_byte(tmp_path: Path, name: str) -> None:
    folder = write_colmap(tmp_path, make_views(3, points=4), photos=False)
    path = folder / f"{name}.bin"
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 7), len(whole) - 10, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(SceneError, match=rf"{name}\.bin is cut short.*byte") as caught:
            read(folder)
        assert caught.value.path == path


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("cameras", "1 SIMPLE_RADAL 60 40 55 30 20 0.1", "line 2.*SIMPLE_RADAL; expected one of"),
        ("cameras", "1 PINHOLE 60 40 55 30 20", "line 2.*found 3 parameters.*PINHOLE has 4"),
        ("cameras", "1 PINHOLE 60", "line 2: found '1 PINHOLE 60'; expected 'CAMERA_ID"),
        ("cameras", "1 PINHOLE 60 40 nan 55 30 20", "line 2.*finite parameters"),
        ("cameras", "1 PINHOLE 0 40 55 55 30 20", "line 2.*size of 0x40"),
        ("images", "1 1 0 0 0 0 0 0 1", "line 2: found '1 1 0 0 0 0 0 0 1'; expected 'IMAGE_ID"),
        ("images", "1 0 0 0 0 0 0 0 1 a.png", "line 2, image a.png.*quaternion that is not zero"),
        ("images", "1 1 0 0 0 nan 0 0 1 a.png", "line 2, image a.png.*finite"),
        ("images", "1 1 0 0 0 0 0 0 9 a.png", "a.png was taken with camera 9, which"),
        ("points3D", "1 0 0 0 10 20 30", "line 2: found '1 0 0 0 10 20 30'; expected 'POINT3D_ID"),
        ("points3D", "1 0 0 0 10 20 300 0.5", "line 2.*colours from 0 to 255"),
        ("points3D", "9" * 20 + " 0 0 0 1 2 3 0.5", r"line 2.*an id from 0 to 2\^62"),
        ("cameras", "1 PINHOLE 1" + "0" * 400 + " 40 55 55 30 20", "line 2.*a million pixels"),
    ],
)
def test_a_bad_text_line_is_named(tmp_path: Path, name: str, line: str, message: str) -> None:
    folder = write_colmap(tmp_path, make_views(3), "txt", photos=False)
    (folder / f"{name}.txt").write_text(f"# a comment\n{line}\n")
    with pytest.raises(SceneError, match=rf"(?s){message}"):
        read(folder)


def changed_images(folder: Path, change: Callable[[list[str]], None]) -> Path:
    """The folder, after a change to the lines of images.txt; 1 is the first image's first."""
    path = folder / "images.txt"
    lines = path.read_text().split("\n")
    change(lines)
    path.write_text("\n".join(lines))
    return folder


def replaced(number: int, line: str) -> Callable[[list[str]], None]:
    return lambda lines: lines.__setitem__(number, line)


@pytest.mark.parametrize(
    ("change", "code", "file", "message"),
    [
        (replaced(3, "2 1 0 0"), "entry_invalid", "images.txt, line 4", "'2 1 0 0'; expected 'IMA"),
        (replaced(3, "2 one 0 0 0 0 0 4 1 b.png"), "entry_invalid", "images.txt, line 4", "'2 one"),
        (replaced(3, "2 1 0 0 0 0 0 4 1"), "entry_invalid", "images.txt, line 4", "NAME"),
        (replaced(3, "2 0 0 0 0 0 0 4 1 b/a.png"), "pose_invalid", "b/a.png", "not zero"),
        (replaced(3, "2 1 0 0 0 0 nan 4 1 b\\a.png"), "pose_invalid", "b/a.png", "finite numbers"),
        (replaced(3, "2 1 0 0 0 0 0 4 7 b.png"), "distortion_invalid", "b.png", "camera 7, which"),
    ],
)
def test_an_image_that_cannot_be_read_is_left_out_alone(
    tmp_path: Path, change: Callable[[list[str]], None], code: str, file: str, message: str
) -> None:
    posed = read(changed_images(write_colmap(tmp_path, make_views(5), "txt"), change))
    assert [photo.name for photo in posed.photos] == [f"photo_00{n}.png" for n in (0, 2, 3, 4)]
    (finding,) = posed.findings
    assert (finding.code, finding.severity, finding.file) == (code, "warning", file)
    assert message in finding.message
    assert finding.message.endswith("The photo is left out.")


def test_a_broken_line_of_points_costs_the_check_but_not_the_photo(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(5), "txt", photos=False)
    posed = read(changed_images(folder, replaced(4, "1.0 2.0")))
    assert len(posed.photos) == 5
    assert posed.photos[1].observations is not None
    assert len(posed.photos[1].observations.points) == 0
    (finding,) = posed.findings
    assert (finding.code, finding.file) == ("observations_invalid", "photo_001.png")
    assert "line 5: found '1.0 2.0'; expected the 2-D points of photo_001.png" in finding.message


def test_a_line_that_is_missing_costs_one_image_at_most(tmp_path: Path) -> None:
    whole = write_colmap(tmp_path, make_views(5), "txt", photos=False)
    for number in range(1, 11):
        folder = tmp_path / f"without {number}"
        shutil.copytree(whole, folder)
        posed = read(changed_images(folder, lambda lines, number=number: lines.pop(number)))
        assert len(posed.photos) == (4 if number % 2 else 5), number


@pytest.mark.parametrize("kind", ["bin", "txt"])
def test_a_lens_or_pose_that_makes_no_sense_costs_its_own_photos(tmp_path: Path, kind: str) -> None:
    wrong = dataclasses.replace(PINHOLE, parameters=(-55.0, 55.0, 30.0, 20.0))
    views = dataclasses.replace(make_views(6), lenses={1: PINHOLE, 5: wrong})
    views.cameras[2] = 5
    views.poses[4][0, 3] = np.nan
    write_colmap(tmp_path, views, kind)
    scene = load_scene(tmp_path, Settings())
    assert [photo.name for photo in scene.photos] == [f"photo_00{n}.png" for n in (0, 1, 3, 5)]
    lost = {item.file: item for item in scene.findings if item.file in views.names}
    assert {file: item.code for file, item in lost.items()} == {
        "photo_002.png": "distortion_invalid",
        "photo_004.png": "pose_invalid",
    }
    assert "photo_002.png has no lens" in lost["photo_002.png"].message
    assert "positive focal lengths" in lost["photo_002.png"].message
    assert "photo_without_pose" not in {item.code for item in scene.findings}


def test_an_unknown_binary_camera_model_is_named(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(3), photos=False)
    content = struct.pack("<Qiiqq4d", 1, 1, 99, 60, 40, 1.0, 1.0, 1.0, 1.0)
    (folder / "cameras.bin").write_bytes(content)
    with pytest.raises(SceneError, match=r"camera 1: found the camera model with id 99"):
        read(folder)


def test_a_count_that_the_file_cannot_hold_asks_for_no_memory(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(3), photos=False)
    path = folder / "points3D.bin"
    path.write_bytes(struct.pack("<Q", 2**60) + path.read_bytes()[8:])
    with pytest.raises(SceneError, match="too many for the"):
        read(folder)


def test_reading_points_takes_little_more_memory_than_they_do(tmp_path: Path) -> None:
    count = 5_000
    point = struct.pack("<Q3d3BdQ", 1, 0.0, 0.0, 0.0, 1, 2, 3, 0.5, 0)
    path = tmp_path / "points3D.bin"
    path.write_bytes(struct.pack("<Q", count) + count * point)
    tracemalloc.start()
    read_points(path, Loading())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The file, each entry as an object (80 bytes and its place in a list), all joined, and copies
    # of what is kept come to about 260 bytes a point; an index for every byte took 500.
    assert peak < 350 * count


def test_a_model_without_points_is_read(tmp_path: Path) -> None:
    posed = read(write_colmap(tmp_path, make_views(), points=False, photos=False))
    assert posed.points.shape == (0, 3)
    assert len(posed.photos) == 10


def test_files_of_newer_colmap_versions_beside_the_model_do_no_harm(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(), photos=False)
    (folder / "rigs.bin").write_bytes(b"\x01")
    (folder / "frames.bin").write_bytes(b"\x01")
    assert len(read(folder).photos) == 10


def test_a_model_with_no_images_is_refused(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(), photos=False)
    (folder / "images.bin").write_bytes(struct.pack("<Q", 0))
    with pytest.raises(SceneError, match=r"images\.bin lists no photos"):
        read(folder)


def test_the_model_with_most_photos_is_chosen_and_named(tmp_path: Path) -> None:
    views = make_views(12)
    write_colmap(tmp_path, make_views(2, names=views.names[:2]), model="sparse/0", photos=False)
    write_colmap(tmp_path, views, model="sparse/1")
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 12
    (finding,) = [item for item in scene.findings if item.code == "model_chosen"]
    assert "sparse/1 has the most photos and is used: 12 of 14 (others: 0: 2)" in finding.message


def test_a_small_model_that_is_named_is_used_with_a_warning(tmp_path: Path) -> None:
    views = make_views(12)
    small = make_views(9, names=views.names[:9])
    write_colmap(tmp_path, small, model="sparse/0", photos=False)
    write_colmap(tmp_path, views, model="sparse/1")
    scene = load_scene(tmp_path / "sparse" / "0", Settings())
    assert len(scene.photos) == 9
    assert [item.file for item in scene.findings if item.code == "model_smaller"] == ["0"]


def test_a_broken_model_beside_a_good_one_is_passed_over(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(), model="sparse/0", photos=False)
    (folder / "images.bin").write_bytes(b"\x05")
    write_colmap(tmp_path, make_views(), model="sparse/1")
    scene = load_scene(tmp_path, Settings())
    assert len(scene.photos) == 10
    assert "model_unreadable" in {item.code for item in scene.findings}


def test_reading_stops_when_cancelled(tmp_path: Path) -> None:
    folder = write_colmap(tmp_path, make_views(), photos=False)
    with pytest.raises(LoadingCancelled):
        read_model(folder, (), Loading(cancelled=lambda: True))


def test_points_and_observations_survive_ids_in_any_order(tmp_path: Path) -> None:
    views = make_views(3, points=6)
    folder = write_colmap(tmp_path, views, "txt", photos=False)
    lines = (folder / "points3D.txt").read_text().rstrip("\n").split("\n")
    (folder / "points3D.txt").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    posed = read(folder)
    assert np.allclose(posed.points, views.points[::-1])
    seen = posed.photos[0].observations
    assert seen is not None
    _, rows = observations(views, 0)
    assert np.array_equal(posed.points[seen.points], views.points[rows])


def test_a_lens_is_shared_by_its_photos(tmp_path: Path) -> None:
    other = dataclasses.replace(PINHOLE, parameters=(70.0, 70.0, 30.0, 20.0))
    views = dataclasses.replace(make_views(3), lenses={1: PINHOLE, 5: other}, cameras=[1, 5, 1])
    posed = read(write_colmap(tmp_path, views, photos=False))
    assert [photo.lens for photo in posed.photos] == [PINHOLE, other, PINHOLE]
