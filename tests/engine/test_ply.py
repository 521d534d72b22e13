from pathlib import Path

import numpy as np
import pytest

from engine.ply import PlyError, read_ply
from tests.engine.ply_files import write_ply

ROWS = np.array(
    [(1.5, -2.0, 3.25, 255, -7), (0.0, 1e-3, -4.0, 0, 9)],
    dtype=[("x", "f8"), ("y", "f4"), ("z", "f4"), ("red", "u1"), ("label", "i2")],
)
HEADER = (
    "ply\nformat {format} 1.0\ncomment made by hand\nobj_info ignored\nelement vertex 2\n"
    "property double x\nproperty float y\nproperty float32 z\nproperty uint8 red\n"
    "property short label\n"
)


def write(path: Path, header: str, data: bytes) -> Path:
    path.write_bytes(header.encode() + b"end_header\n" + data)
    return path


def test_written_rows_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "a.ply"
    write_ply(path, {"vertex": ROWS})
    assert np.array_equal(read_ply(path)["vertex"], ROWS)


@pytest.mark.parametrize(
    ("name", "order"), [("binary_little_endian", "<"), ("binary_big_endian", ">")]
)
def test_both_byte_orders_are_read(tmp_path: Path, name: str, order: str) -> None:
    dtype = [(field, ROWS.dtype[field].newbyteorder(order)) for field in ROWS.dtype.names or ()]
    path = write(tmp_path / "a.ply", HEADER.format(format=name), ROWS.astype(dtype).tobytes())
    assert np.array_equal(read_ply(path)["vertex"], ROWS)


def test_ascii_is_read_with_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    text = HEADER.format(format="ascii") + "end_header\n1.5 -2 3.25 255 -7\n\n0 1e-3 -4 0 9\n"
    path = tmp_path / "a.ply"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert np.array_equal(read_ply(path)["vertex"], ROWS)


def test_ascii_keeps_nan_and_infinity(tmp_path: Path) -> None:
    header = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"
    rows = read_ply(write(tmp_path / "a.ply", header, b"nan 1\ninf -inf\n"))["vertex"]
    assert np.isnan(rows["x"][0])
    assert rows["x"][1] == np.inf
    assert rows["y"][1] == -np.inf


def test_faces_before_the_vertices_are_passed_over(tmp_path: Path) -> None:
    faces = "element face 2\nproperty list uchar int vertex_indices\nproperty uchar flag\n"
    header = "ply\nformat binary_little_endian 1.0\n" + faces
    header += "element vertex 1\nproperty uchar red\n"
    data = b"\x01" + bytes(4) + b"\x09" + b"\x02" + bytes(8) + b"\x09" + b"\x2a"
    elements = read_ply(write(tmp_path / "a.ply", header, data))
    assert list(elements) == ["vertex"]
    assert elements["vertex"]["red"].tolist() == [42]


def test_a_list_of_negative_length_is_refused(tmp_path: Path) -> None:
    header = "ply\nformat binary_little_endian 1.0\nelement face 900000000\n"
    header += "property list int int vertex_indices\nelement vertex 1\nproperty uchar red\n"
    path = write(tmp_path / "a.ply", header, b"\xff" * 40)
    with pytest.raises(PlyError, match="row 0 of the element 'face' has a list of -1 values"):
        read_ply(path)


def test_faces_in_ascii_are_passed_over_too(tmp_path: Path) -> None:
    header = "ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int vertex_indices\n"
    header += "element vertex 1\nproperty uchar red\n"
    elements = read_ply(write(tmp_path / "a.ply", header, b"3 0 0 0\n42\n"))
    assert elements["vertex"]["red"].tolist() == [42]


def test_a_cut_file_says_how_many_rows_it_has(tmp_path: Path) -> None:
    header = HEADER.format(format="binary_little_endian")
    path = write(tmp_path / "short.ply", header, ROWS.tobytes()[:-3])
    with pytest.raises(PlyError, match=r"short.ply is cut short: .* announces 2 rows .* has 1"):
        read_ply(path)
    path = write(tmp_path / "short.ply", HEADER.format(format="ascii"), b"1 1 1 1 1\n")
    with pytest.raises(PlyError, match="announces 2 rows"):
        read_ply(path)


@pytest.mark.parametrize("row", [b"1 2 3 4", b"1 2 3 4 five", b"1 2 3 4 5 6"])
def test_a_bad_ascii_row_is_named_by_its_line(tmp_path: Path, row: bytes) -> None:
    path = write(tmp_path / "a.ply", HEADER.format(format="ascii"), b"1 2 3 4 5\n" + row + b"\n")
    with pytest.raises(PlyError, match=r"line 13: found '1 2 3 4.*expected 5 numbers \(x, y"):
        read_ply(path)


def test_blank_lines_count_where_a_bad_row_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ply", HEADER.format(format="ascii"), b"\n1 2 3 4 5\n\n \nnone\n")
    with pytest.raises(PlyError, match=r"line 16: found 'none'"):
        read_ply(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"solid stl\n", "not a PLY file"),
        (b"", "not a PLY file"),
        (b"ply\nformat ascii 1.0\nelement vertex 1\n", "line 4 of its header"),
        (b"ply\nformat middle_endian 1.0\nend_header\n", "'middle_endian'"),
        (b"ply\nproperty float x\nend_header\n", "header line 2"),
        ("ply\nformat ascii 1.0\nelement vertex ²\n".encode(), "header line 3"),
        (b"ply\nformat ascii 1.0\nelement v 1\nproperty half x\nend_header\n", "'property half x'"),
        (b"ply\nformat ascii 1.0\nelement v 1\nproperty int x\nproperty int x\n", "'x' twice"),
    ],
)
def test_a_damaged_header_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.ply"
    path.write_bytes(content)
    with pytest.raises(PlyError, match=message) as caught:
        read_ply(path)
    assert caught.value.path == path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlyError, match=r"none.ply cannot be read: No such file"):
        read_ply(tmp_path / "none.ply")


def test_an_empty_element_gives_an_empty_array(tmp_path: Path) -> None:
    path = tmp_path / "a.ply"
    write_ply(path, {"vertex": ROWS[:0]})
    assert len(read_ply(path)["vertex"]) == 0
