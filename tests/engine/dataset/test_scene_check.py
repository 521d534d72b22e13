"""Do the checks fire where poses, points and lenses do not belong together?"""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.dataset.check import check_report, check_scene
from engine.dataset.findings import FINDING_CODES
from engine.dataset.load import load_scene
from engine.dataset.scene import Distortion, Finding, Scene
from engine.settings import Settings
from tests.engine.dataset.scene_files import (
    SceneFiles,
    make_views,
    moved,
    quaternion,
    write_colmap,
    write_photos,
)


def opened(root: Path, views: SceneFiles) -> Scene:
    write_colmap(root, views)
    return load_scene(root, Settings())


def severities(scene: Scene) -> dict[str, str]:
    return {item.code: item.severity for item in scene.findings}


def test_a_good_scene_has_nothing_but_good_findings(tmp_path: Path) -> None:
    report = check_report(opened(tmp_path, make_views(12)))
    assert report["severity"] == "ok"
    assert report["photos"] == {"used": 12, "skipped": 0}
    codes = {item["code"] for item in report["findings"]}
    assert codes == {"points_in_view", "reprojection", "usable_views"}


def test_the_report_counts_what_was_skipped(tmp_path: Path) -> None:
    views = make_views(12)
    write_colmap(tmp_path, views)
    (tmp_path / "images" / "photo_005.png").unlink()
    path = tmp_path / "images" / "photo_006.png"
    path.write_bytes(path.read_bytes()[:-60])
    write_photos(tmp_path / "images", make_views(1, names=["extra.png"]))
    report = check_scene(tmp_path, Settings())
    assert report["photos"] == {"used": 10, "skipped": 3}
    assert report["severity"] == "warning"  # the others can be used
    (used,) = [item["message"] for item in report["findings"] if item["code"] == "usable_views"]
    assert used.startswith("10 of 12 photos with a pose can be used: 8 to train on, 2 held out")
    by_file = {item["file"]: item["code"] for item in report["findings"]}
    assert by_file["photo_005.png"] == "photo_missing"
    assert by_file["photo_006.png"] == "photo_unreadable"
    assert by_file["extra.png"] == "photo_without_pose"
    assert set(report["findings"][0]) == {"code", "severity", "file", "message"}


def test_a_scene_that_cannot_be_opened_is_an_error_finding(tmp_path: Path) -> None:
    report = check_scene(tmp_path / "gone", Settings())
    assert report["severity"] == "error"
    assert report["photos"] == {"used": 0, "skipped": 0}
    (finding,) = report["findings"]
    assert finding["code"] == "scene_unusable"
    assert finding["file"] == str(tmp_path / "gone")


def test_inverted_poses_are_an_error(tmp_path: Path) -> None:
    views = make_views(12)
    folder = write_colmap(tmp_path, views)
    inverted = dataclasses.replace(views, poses=[np.linalg.inv(pose) for pose in views.poses])
    _write_other_poses(folder, views, inverted)
    scene = load_scene(tmp_path, Settings())
    assert severities(scene)["reprojection_large"] == "error"
    assert severities(scene)["points_out_of_view"] == "error"


def _write_other_poses(folder: Path, views: SceneFiles, other: SceneFiles) -> None:
    """Poses replaced in images.bin; the observations stay those of the right poses."""
    content = bytearray((folder / "images.bin").read_bytes())
    for index, name in enumerate(views.names):
        end = content.index(name.encode())
        pose = other.poses[index]
        numbers = np.array([*quaternion(pose), *pose[:3, 3]])
        content[end - 60 : end - 4] = numbers.astype("<f8").tobytes()
    (folder / "images.bin").write_bytes(content)


def test_quaternions_with_w_last_are_an_error(tmp_path: Path) -> None:
    views = make_views(12)
    folder = write_colmap(tmp_path, views, "txt")
    lines = (folder / "images.txt").read_text().split("\n")
    for place in range(1, len(lines) - 1, 2):
        words = lines[place].split()
        lines[place] = " ".join([words[0], *words[2:5], words[1], *words[5:]])
    (folder / "images.txt").write_text("\n".join(lines))
    scene = load_scene(tmp_path, Settings())
    assert severities(scene)["reprojection_large"] == "error"


@pytest.mark.parametrize(
    ("model", "focal", "extras"),
    [
        ("SIMPLE_RADIAL", (300.0,), (0.3,)),
        ("RADIAL", (300.0,), (0.3, 0.0)),
        ("OPENCV", (300.0, 300.0), (0.3, 0.0, 0.0, 0.0)),
        ("OPENCV_FISHEYE", (300.0, 300.0), (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_lens_of_another_run_is_told_by_reprojection(
    tmp_path: Path, model: str, focal: tuple[float, ...], extras: tuple[float, ...]
) -> None:
    right = Distortion("PINHOLE", (300.0, 300.0, 320.0, 240.0), 640, 480)
    wrong = Distortion(model, (*focal, 320.0, 240.0, *extras), 640, 480)
    for name, lens in (("right", right), ("wrong", wrong)):
        views = make_views(3, lens=right)
        views.points *= 3  # out to the borders of the pictures, where a lens matters
        folder = write_colmap(tmp_path / name, views)
        other = dataclasses.replace(views, lenses={1: lens})
        cameras = write_colmap(tmp_path / "other", other, photos=False) / "cameras.bin"
        (folder / "cameras.bin").write_bytes(cameras.read_bytes())
    assert "reprojection" in severities(load_scene(tmp_path / "right", Settings()))
    assert "reprojection_large" in severities(load_scene(tmp_path / "wrong", Settings()))


def mirrored(points: np.ndarray) -> np.ndarray:
    return points * [1, 1, -1]


def turned(points: np.ndarray) -> np.ndarray:
    return points @ np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]).T


@pytest.mark.parametrize("change", [mirrored, turned])
def test_a_cloud_in_another_frame_is_an_error(
    tmp_path: Path, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    views = moved(make_views(12), (0.0, 0.0, 5.0))
    folder = write_colmap(tmp_path, views)
    other = dataclasses.replace(views, points=change(views.points))
    write_colmap(tmp_path / "b", other, photos=False)
    (folder / "points3D.bin").write_bytes((tmp_path / "b/sparse/0/points3D.bin").read_bytes())
    scene = load_scene(tmp_path, Settings())
    # told by the cloud alone, without COLMAP's observations
    by_cloud = {"points_out_of_view", "few_usable_views"}
    assert "error" in {item.severity for item in scene.findings if item.code in by_cloud}
    (finding,) = [item for item in scene.findings if item.code == "points_out_of_view"]
    assert re.match(r"\d+\.\d% of the sparse points lie in view of some camera", finding.message)


def test_one_camera_that_looks_away_is_named(tmp_path: Path) -> None:
    views = make_views(10)
    views.poses[4] = np.diag([-1.0, 1.0, -1.0, 1.0]) @ views.poses[4]
    scene = opened(tmp_path, views)
    (finding,) = [item for item in scene.findings if item.code == "view_without_points"]
    assert finding.file == "photo_004.png"
    assert finding.severity == "warning"
    assert "few_usable_views" not in severities(scene)


def test_few_views_are_warned_of(tmp_path: Path) -> None:
    assert severities(opened(tmp_path, make_views(8)))["few_views"] == "warning"
    # ten photos, two held out: eight are enough
    assert "few_views" not in severities(opened(tmp_path / "b", make_views(10)))


def test_points_that_are_not_finite_are_dropped_and_told(tmp_path: Path) -> None:
    views = make_views(10)
    folder = write_colmap(tmp_path, views, "txt")
    text = (folder / "points3D.txt").read_text().split("\n")
    text[3] = "3 nan 0 0 1 2 3 0.5"
    (folder / "points3D.txt").write_text("\n".join(text))
    scene = load_scene(tmp_path, Settings())
    assert len(scene.points) == len(views.points) - 1
    assert severities(scene)["points_dropped"] == "warning"
    assert severities(scene)["reprojection"] == "ok"  # the other observations still lead right


def test_every_code_is_documented_and_every_documented_code_is_used() -> None:
    folder = Path(__file__).resolve().parents[3] / "engine" / "dataset"
    sources = "\n".join(path.read_text() for path in folder.glob("*.py"))
    used = set(re.findall(r'(?:Finding\(|_note\(|code = )\s*"([a-z_]+)"', sources))
    used |= {"matched_folded", "matched_stem", "matched_base_name"}
    assert used == set(FINDING_CODES)


def test_a_report_of_findings_takes_the_worst_severity(tmp_path: Path) -> None:
    scene = opened(tmp_path, make_views(12))
    notes = (Finding("alpha", "ok", "", ""), Finding("few_views", "warning", "", ""))
    assert check_report(dataclasses.replace(scene, findings=notes))["severity"] == "warning"
    assert check_report(dataclasses.replace(scene, findings=()))["severity"] == "ok"
