"""PLY files of splats: the layout that others open, and every layout that others write."""

import errno
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.dataset.scene import SceneFrame
from engine.errors import CheckpointError, ExportError
from engine.export import splat_files
from engine.export.saved_model import SavedModel, frame_of, load_model
from engine.export.splat_files import Written, read_splats, write_splats_in_phases
from engine.ply import read_ply, read_ply_header
from engine.settings import Settings
from engine.training.gaussians import SH_C0, Gaussians
from tests.engine.ply_files import write_ply

SHIFTED = SceneFrame((100.0, -20.0, 3.0), 0.25)
FULL = [
    *("x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"),
    *(f"f_rest_{i}" for i in range(45)),
    *("opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"),
]


def some_splats(count: int = 6) -> Gaussians:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    return Gaussians(
        {
            "means": draw(count, 3),
            "sh_dc": draw(count, 1, 3),
            "sh_rest": draw(count, 15, 3),
            "log_scales": draw(count, 3),
            "rotations": draw(count, 4),
            "opacity_logits": draw(count),
        }
    )


def write_splats(path: Path, splats: Gaussians, frame: SceneFrame) -> Written:
    phases = write_splats_in_phases(path, splats, frame)
    while True:
        try:
            next(phases)
        except StopIteration as done:
            written: Written = done.value
            return written


def changed(splats: Gaussians, name: str, row: int, value: float) -> Gaussians:
    values = {key: tensor.detach().clone() for key, tensor in splats.items()}
    values[name][row] = value
    return Gaussians(values)


def write_text(path: Path, names: list[str], rows: list[list[float]], kind: str = "float") -> Path:
    head = ["ply", "format ascii 1.0", f"element vertex {len(rows)}"]
    head += [f"property {kind} {name}" for name in names] + ["end_header"]
    path.write_text("\n".join(head + [" ".join(map(str, row)) for row in rows]) + "\n")
    return path


def test_the_file_has_the_full_3dgs_layout(tmp_path: Path) -> None:
    path = tmp_path / "s.ply"
    written = write_splats(path, some_splats(), SceneFrame())
    header = read_ply_header(path)
    assert header.format == "binary_little_endian"
    assert list(header.elements[0].property_names) == FULL
    assert {item.type for item in header.elements[0].properties} == {"f4"}
    assert (written.splats, written.dropped) == (6, 0)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "s.ply"
    splats = some_splats()
    write_splats(path, splats, SceneFrame())
    loaded = read_splats(path)
    assert (loaded.sh_degree, loaded.dropped) == (3, 0)
    for name, tensor in loaded.splats.items():
        assert torch.equal(tensor, getattr(splats, name)), name


def test_positions_and_scales_are_in_the_frame_of_the_files(tmp_path: Path) -> None:
    path = tmp_path / "s.ply"
    splats = some_splats()
    write_splats(path, splats, SHIFTED)
    rows = read_ply(path)["vertex"]
    means = splats.means.detach().double().numpy() / 0.25 + [100.0, -20.0, 3.0]
    # float32 holds 100 to 4e-6
    assert np.allclose(np.stack([rows["x"], rows["y"], rows["z"]], 1), means, atol=1e-5)
    assert np.allclose(
        np.exp(rows["scale_0"]), np.exp(splats.log_scales[:, 0].detach().numpy()) / 0.25, rtol=1e-5
    )
    back = load_model(path).moved_to(SHIFTED).splats
    assert torch.allclose(back.means, splats.means, atol=1e-5)
    assert torch.allclose(back.log_scales, splats.log_scales, atol=1e-6)


def test_rest_coefficients_are_channel_major(tmp_path: Path) -> None:
    path = tmp_path / "s.ply"
    values = {name: tensor.detach().clone() for name, tensor in some_splats(1).items()}
    values["sh_rest"].zero_()
    values["sh_rest"][0, 2, 1] = 0.7  # third coefficient of green
    write_splats(path, Gaussians(values), SceneFrame())
    row = read_ply(path)["vertex"][0]
    assert row["f_rest_17"] == np.float32(0.7)  # 15 of red, then the third of green
    assert sum(row[f"f_rest_{i}"] != 0 for i in range(45)) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("opacity_logits", math.nan), ("log_scales", -math.inf), ("means", math.inf)),
        *(("sh_rest", math.nan), ("rotations", 0.0)),
    ],
)
def test_one_broken_splat_is_left_out_and_counted(tmp_path: Path, name: str, value: float) -> None:
    path = tmp_path / "s.ply"
    splats = some_splats()
    written = write_splats(path, changed(splats, name, 2, value), SceneFrame())
    assert (written.splats, written.dropped) == (5, 1)
    kept = torch.tensor([0, 1, 3, 4, 5])
    assert torch.equal(read_splats(path).splats.means, splats.means[kept])


def test_rows_of_zeros_and_infinite_scales_are_dropped_on_reading(tmp_path: Path) -> None:
    names = ["x", "y", "z", "opacity", *(f"scale_{i}" for i in range(3))]
    names += [*(f"rot_{i}" for i in range(4)), *(f"f_dc_{i}" for i in range(3))]
    good = [1, 2, 3, 0.5, -2, -2, -2, 1, 0, 0, 0, 0.1, 0.2, 0.3]
    infinite = [*good[:4], -math.inf, *good[5:]]
    path = write_text(tmp_path / "s.ply", names, [good] * 10 + [[0] * 14] * 100 + [infinite])
    loaded = read_splats(path)
    assert (len(loaded.splats), loaded.dropped) == (10, 101)


@pytest.mark.parametrize("name", ["x", "opacity", "scale_1", "f_dc_2", "f_rest_44"])
def test_a_double_beyond_float32_is_a_broken_splat(tmp_path: Path, name: str) -> None:
    good = [0.5] * len(FULL)
    far = [1e39 if name == column else 0.5 for column in FULL]
    loaded = read_splats(write_text(tmp_path / "s.ply", FULL, [good, far, good], kind="double"))
    assert (len(loaded.splats), loaded.dropped) == (2, 1)
    assert loaded.splats.non_finite() is None


def test_splats_beyond_all_numbers_are_broken(tmp_path: Path) -> None:
    splats = changed(changed(some_splats(), "means", 1, 1e30), "log_scales", 3, 80.0)
    path = tmp_path / "far.ply"
    write_splats(path, splats, SceneFrame())
    loaded = read_splats(path)
    assert (len(loaded.splats), loaded.dropped) == (4, 2)


def test_a_file_without_splats_and_one_of_broken_ones_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "some.ply"
    write_splats(path, some_splats(3), SceneFrame())
    rows = read_ply(path)["vertex"]
    for name, content, message in (
        ("none.ply", rows[:0], "holds no splats"),
        ("broken.ply", np.zeros(3, rows.dtype), r"All 3 splats of .*broken\.ply are broken"),
    ):
        write_ply(tmp_path / name, {"vertex": content})
        with pytest.raises(ExportError, match=message):
            load_model(tmp_path / name)


@pytest.mark.parametrize(("rest", "degree"), [(0, 0), (9, 1), (24, 2), (45, 3)])
def test_every_degree_is_read_in_any_order_with_strangers_between(
    tmp_path: Path, rest: int, degree: int
) -> None:
    values = {
        **{f"rot_{i}": [1.0, 0.0, 0.5, 0.25][i] for i in range(4)},
        **{f"f_rest_{i}": 0.01 * (i + 1) for i in reversed(range(rest))},
        "confidence": 9.0,
        "z": 3.0,
        "y": 2.0,
        "opacity": -1.0,
        "x": 1.0,
        **{f"scale_{i}": -3.0 - i for i in range(3)},
        **{f"f_dc_{i}": 0.1 * i for i in range(3)},
    }
    path = write_text(tmp_path / "s.ply", list(values), [list(values.values())], kind="double")
    loaded = read_splats(path)
    assert loaded.sh_degree == degree
    assert loaded.splats.means[0].tolist() == [1.0, 2.0, 3.0]
    assert loaded.splats.rotations[0].tolist() == [1.0, 0.0, 0.5, 0.25]
    assert loaded.splats.log_scales[0].tolist() == [-3.0, -4.0, -5.0]
    per_channel = rest // 3
    expected = torch.zeros(15, 3)
    for channel in range(3):
        for k in range(per_channel):
            expected[k, channel] = 0.01 * (channel * per_channel + k + 1)
    assert torch.allclose(loaded.splats.sh_rest[0], expected, atol=1e-7)


def test_a_wrong_number_of_rest_coefficients_is_refused(tmp_path: Path) -> None:
    names = [name for name in FULL if not name.startswith("f_rest")] + ["f_rest_0", "f_rest_1"]
    path = write_text(tmp_path / "s.ply", names, [[1.0] * len(names)])
    with pytest.raises(ExportError, match=r"has 2 f_rest properties; expected .* 0, 9, 24 or 45"):
        read_splats(path)


@pytest.mark.parametrize(("kind", "white"), [("uchar", 255), ("float", 1.0)])
def test_colours_may_be_red_green_blue(tmp_path: Path, kind: str, white: float) -> None:
    names = ["x", "y", "z", "opacity", *(f"scale_{i}" for i in range(3))]
    names += [f"rot_{i}" for i in range(4)]
    head = ["ply", "format ascii 1.0", "element vertex 1"]
    head += [f"property float {name}" for name in names]
    head += [f"property {kind} {name}" for name in ("red", "green", "blue")] + ["end_header"]
    path = tmp_path / "s.ply"
    path.write_text("\n".join([*head, f"0 0 0 0 -1 -1 -1 1 0 0 0 {white} 0 0"]) + "\n")
    color = read_splats(path).splats.sh_dc[0, 0] * SH_C0 + 0.5
    assert torch.allclose(color, torch.tensor([1.0, 0.0, 0.0]), atol=1e-6)


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_and_doubles_are_read(tmp_path: Path, order: str) -> None:
    splats = some_splats()
    write_splats(tmp_path / "s.ply", splats, SceneFrame())
    rows = read_ply(tmp_path / "s.ply")["vertex"]
    wide = rows.astype([(name, order + "f8") for name in FULL])
    kind = "little" if order == "<" else "big"
    head = ["ply", f"format binary_{kind}_endian 1.0", f"element vertex {len(rows)}"]
    head += [f"property double {name}" for name in FULL] + ["end_header\n"]
    path = tmp_path / "wide.ply"
    path.write_bytes("\n".join(head).encode() + wide.tobytes())
    loaded = read_splats(path).splats
    assert torch.equal(loaded.sh_rest, splats.sh_rest)


def test_a_point_cloud_is_told_from_splats(tmp_path: Path) -> None:
    names = ["x", "y", "z", "nx", "ny", "nz", "red", "green", "blue"]
    path = write_text(tmp_path / "input.ply", names, [[0.0] * 9])
    with pytest.raises(ExportError, match="is a point cloud, not splats"):
        read_splats(path)


def test_a_compressed_file_is_called_so(tmp_path: Path) -> None:
    names = [f"packed_{what}" for what in ("position", "rotation", "scale", "color")]
    path = write_text(tmp_path / "s.compressed.ply", names, [[0.0] * 4])
    with pytest.raises(ExportError, match=r"is a compressed splat file .* Export it uncompressed"):
        read_splats(path)


def test_missing_properties_are_named(tmp_path: Path) -> None:
    names = [name for name in FULL if name not in ("rot_3", "scale_1")]
    path = write_text(tmp_path / "s.ply", names, [[1.0] * len(names)])
    with pytest.raises(ExportError, match="lacks the properties rot_3, scale_1"):
        read_splats(path)


def test_a_colour_without_all_its_parts_is_none(tmp_path: Path) -> None:
    names = [name for name in FULL if name != "f_dc_1"]
    path = write_text(tmp_path / "s.ply", names, [[1.0] * len(names)])
    with pytest.raises(ExportError, match="has no colours: expected f_dc_0 to f_dc_2"):
        read_splats(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"ply\nformat ascii 1.0\n"])
def test_anything_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.ply"
    path.write_bytes(content)
    with pytest.raises(ExportError, match=r"s\.ply"):
        read_splats(path)


def test_a_large_model_is_written_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splat_files, "CHUNK", 4)
    splats = changed(some_splats(10), "means", 5, math.nan)
    phases = write_splats_in_phases(tmp_path / "s.ply", splats, SceneFrame())
    assert [next(phases) for _ in range(3)] == [4, 8, 10]
    assert [next(phases) for _ in range(3)] == [4, 8, 9]  # one is broken
    assert not (tmp_path / "s.ply").exists()
    with pytest.raises(StopIteration) as done:
        next(phases)
    assert (done.value.value.splats, done.value.value.dropped) == (9, 1)
    kept = torch.tensor([0, 1, 2, 3, 4, 6, 7, 8, 9])
    assert torch.equal(read_splats(tmp_path / "s.ply").splats.sh_rest, splats.sh_rest[kept])


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.ply"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ExportError, match="No space left on device"):
        write_splats(path, some_splats(), SceneFrame())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_moves_between_frames_and_stays_itself_in_its_own(tmp_path: Path) -> None:
    saved = SavedModel(some_splats(), 3, Settings(), SHIFTED)
    assert saved.moved_to(SHIFTED) is saved
    there = saved.moved_to(SceneFrame())
    there_means = SHIFTED.to_file(saved.splats.means.detach().numpy())
    assert np.allclose(there.splats.means.detach().numpy(), there_means, atol=1e-5)
    back = there.moved_to(SHIFTED)
    # 100 units away float32 holds 4e-6, and log-scales are shifted twice
    assert torch.allclose(back.splats.means, saved.splats.means, atol=1e-5)
    assert torch.allclose(back.splats.log_scales, saved.splats.log_scales, atol=1e-6)


def test_files_of_other_programs_are_read(data_folder: Path) -> None:
    files = sorted((data_folder / "splat_files").rglob("*.ply"))
    read = 0
    for path in files:
        if ".compressed." in path.name or not {"opacity", "x"} <= property_names(path):
            continue
        loaded = read_splats(path)
        assert len(loaded.splats) > 0
        assert loaded.splats.non_finite() is None
        read += 1
    assert read >= 1


def property_names(path: Path) -> set[str]:
    vertex = read_ply_header(path).element("vertex")
    return set() if vertex is None else set(vertex.property_names)


@pytest.mark.parametrize(
    "fact", [{}, {"offset": [1, 2], "scale": 1}, {"offset": [1, {}, 3], "scale": 1}, None]
)
def test_a_frame_that_is_none_is_called_damaged(fact: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="is damaged: scene_frame is"):
        frame_of(fact)
