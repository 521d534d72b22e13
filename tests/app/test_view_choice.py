"""Which viewport is made, what the progress bar marks, how numbers are written."""

import numpy as np
import pytest

from app.progress_strip import schedule_marks
from app.viewport.display_probe import DisplayFound, choose_viewport
from app.viewport.overlays import frustum_corners, frustum_lines
from app.viewport.sparse_points import points_picture
from app.wording import counted, duration, memory, share
from engine.cameras import Camera
from engine.settings import Settings
from tests.looking import look_at

SOFTWARE = DisplayFound("xcb", "llvmpipe (LLVM 15.0.6, 256 bits)", "")
HARDWARE = DisplayFound("xcb", "NVIDIA RTX 4090/PCIe/SSE2", "")
NONE = DisplayFound("xcb", None, "")


@pytest.mark.parametrize(
    ("wish", "found", "kind", "word"),
    [
        ("auto", SOFTWARE, "painted", "software"),
        ("auto", HARDWARE, "gl", "RTX"),
        ("auto", NONE, "painted", "no OpenGL context"),
        ("gl", SOFTWARE, "gl", "as asked"),
        ("gl", NONE, "painted", "asked for but"),
        ("painted", HARDWARE, "painted", "as asked"),
    ],
)
def test_the_view_is_painted_where_opengl_would_be_software(
    wish: str, found: DisplayFound, kind: str, word: str
) -> None:
    choice = choose_viewport(wish, found)
    assert choice.kind == kind
    assert word in choice.reason


def test_the_schedule_is_marked_up_to_the_last_iteration() -> None:
    settings = Settings().updated({"iterations": 3_500, "densify_stop": 3_200})
    assert schedule_marks(settings) == [
        (1000, "SH 1"),
        (2000, "SH 2"),
        (3000, "SH 3"),
        (3000, "opacity reset"),
        (3200, "densify ends"),
    ]


def test_times_and_sizes_read_well() -> None:
    assert [duration(s) for s in (0.4, 59, 271, 3_660, 90_000)] == [
        "0 s",
        "59 s",
        "4 min 31 s",
        "1 h 1 min",
        "1 d 1 h",
    ]
    assert duration(float("nan")) == "–"  # noqa: RUF001 - the dash the window shows
    assert (memory(5.4e8), memory(1.24e9)) == ("540 MB", "1.2 GB")
    assert (counted(1, "photo"), counted(1200, "photo")) == ("1 photo", "1,200 photos")
    assert (share(0.0), share(0.004), share(0.5)) == ("0%", "0.4%", "50%")


def camera() -> Camera:
    pose = look_at(np.array([0.0, 0.0, -5.0]), np.zeros(3), np.array([0.0, -1.0, 0.0]))
    return Camera(pose, 100.0, 100.0, 50.0, 40.0, 100, 80)


def test_near_points_are_painted_over_far_ones_and_those_behind_not_at_all() -> None:
    points = np.array([[0.0, 0.0, -2.0], [0.0, 0.0, 3.0], [0.0, 0.0, -9.0]])
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], dtype=np.uint8)
    for order in ([0, 1, 2], [2, 1, 0]):
        pixels = points_picture(camera(), points[order], colors[order], (1, 2, 3), 3)
        assert pixels[40, 50].tolist() == [255, 0, 0, 255]
        assert (pixels[..., :3] == (1, 2, 3)).all(axis=2).sum() == 80 * 100 - 9


def test_no_points_make_an_empty_stage() -> None:
    empty = points_picture(camera(), np.empty((0, 3)), np.empty((0, 3), np.uint8), (9, 9, 9))
    assert (empty == (9, 9, 9, 255)).all()


def test_cameras_behind_the_viewer_and_the_one_looked_through_are_not_drawn() -> None:
    seen = look_at(np.array([0.5, 0.0, 0.0]), np.zeros(3), np.array([0.0, -1.0, 0.0]))
    behind = look_at(np.array([0.0, 0.0, -9.0]), np.zeros(3), np.array([0.0, -1.0, 0.0]))
    corners = frustum_corners([camera(), camera().moved(seen), camera().moved(behind)], 0.2)
    assert len(frustum_lines(corners, camera())) == 8
    assert frustum_lines(corners, camera(), hidden=1) == []
    apex, _ = camera().project(corners[1, :1])
    assert frustum_lines(corners, camera())[0][:2] == pytest.approx(tuple(apex[0]))
