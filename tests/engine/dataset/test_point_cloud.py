from pathlib import Path

import numpy as np
import pytest

from engine.dataset.point_cloud import read_point_cloud
from engine.errors import SceneError
from tests.engine.ply_files import write_ply

POINTS = np.random.default_rng(0).normal(size=(100, 3))
SHADES = np.random.default_rng(1).integers(0, 256, (100, 3), dtype=np.uint8)


def rows_of(xyz: str = "f4", colors: str = "", kind: str = "u1") -> np.ndarray:
    names = colors.split()
    rows = np.zeros(100, dtype=[*((n, xyz) for n in "xyz"), *((n, kind) for n in names)])
    for axis, name in enumerate("xyz"):
        rows[name] = POINTS[:, axis]
    for channel, name in enumerate(names):
        scale = {"u1": 1, "u2": 257, "f4": 1 / 255}[kind]
        rows[name] = SHADES[:, channel].astype(float) * scale
    return rows


@pytest.mark.parametrize("xyz", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["u1", "u2", "f4"])
@pytest.mark.parametrize(
    "names", ["red green blue", "r g b", "diffuse_red diffuse_green diffuse_blue"]
)
def test_clouds_of_other_programs_are_read(tmp_path: Path, xyz: str, kind: str, names: str) -> None:
    write_ply(tmp_path / "a.ply", {"vertex": rows_of(xyz, names, kind)})
    points, colors, findings = read_point_cloud(tmp_path / "a.ply")
    assert np.allclose(points, POINTS, atol=0 if xyz == "f8" else 1e-6)
    assert np.array_equal(colors, SHADES)
    assert findings == ()


def test_an_ascii_cloud_is_read(tmp_path: Path) -> None:
    header = "ply\nformat ascii 1.0\nelement vertex 2\nproperty double x\nproperty double y\n"
    header += "property double z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n"
    (tmp_path / "a.ply").write_text(header + "end_header\n1 2 3 4 5 6\n-1 -2 -3 7 8 9\n")
    points, colors, _ = read_point_cloud(tmp_path / "a.ply")
    assert points.tolist() == [[1, 2, 3], [-1, -2, -3]]
    assert colors.tolist() == [[4, 5, 6], [7, 8, 9]]


def test_a_cloud_without_colours_starts_grey_and_says_so(tmp_path: Path) -> None:
    write_ply(tmp_path / "a.ply", {"vertex": rows_of()})
    _, colors, findings = read_point_cloud(tmp_path / "a.ply")
    assert (colors == 128).all()
    assert [item.code for item in findings] == ["seed_colors_missing"]


def test_points_that_are_not_finite_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = rows_of(colors="red green blue")
    rows["x"][[3, 50, 99]] = np.nan
    rows["z"][7] = np.inf
    write_ply(tmp_path / "a.ply", {"vertex": rows})
    points, colors, findings = read_point_cloud(tmp_path / "a.ply")
    assert len(points) == len(colors) == 96
    assert np.array_equal(colors[3], SHADES[4])
    assert findings[0].message == (
        "a.ply: 4 of 100 points have coordinates that are not finite or 1e+12 and more, and were "
        "dropped."
    )


def test_a_cloud_of_nothing_but_nan_is_refused(tmp_path: Path) -> None:
    rows = rows_of()
    rows["y"] = np.nan
    write_ply(tmp_path / "a.ply", {"vertex": rows})
    with pytest.raises(SceneError, match="none of its 100 points has finite coordinates"):
        read_point_cloud(tmp_path / "a.ply")


def test_splats_are_told_from_a_cloud(tmp_path: Path) -> None:
    names = ("x", "y", "z", "f_dc_0", "opacity", "scale_0", "rot_0")
    write_ply(tmp_path / "a.ply", {"vertex": np.zeros(2, dtype=[(n, "f4") for n in names])})
    with pytest.raises(SceneError, match="holds splats, not a point cloud"):
        read_point_cloud(tmp_path / "a.ply")


def test_a_file_without_coordinates_is_refused(tmp_path: Path) -> None:
    write_ply(tmp_path / "a.ply", {"vertex": np.zeros(2, dtype=[("a", "f4"), ("b", "f4")])})
    with pytest.raises(SceneError, match="its vertices have a, b; expected x, y, z"):
        read_point_cloud(tmp_path / "a.ply")


def test_vertices_with_lists_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ply"
    path.write_text(
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
        "property float z\nproperty list uchar int track\nend_header\n0 0 0 1 2\n"
    )
    with pytest.raises(SceneError, match="vertices have lists"):
        read_point_cloud(path)
