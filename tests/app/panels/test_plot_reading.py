"""Which values are read under the pointer of a plot."""

import numpy as np

from app.palette import DARK
from app.panels.metrics_history import Mark, MarkKind
from app.panels.metrics_panel import PSNR_CURVES, SPLAT_CURVES
from app.panels.plot_reading import STAYS, Box, least_hiding, reading_boxes, reading_text

TRAIN = (np.arange(1.0, 2_001.0, 10.0), np.full(200, 20.0))
HELD_OUT = (np.array([1_000.0, 1_500.0]), np.array([25.33, 26.0]))


RESET = Mark(700, MarkKind.RESET, "opacities reset to 0.01")
WEIGHT = Mark(702, MarkKind.LOSS, "Loss, SSIM weight", "0.2", "0.3")
CURVES = (50, 10, 200, 120)  # where they are drawn, in px


def reading(step: float, *marks: Mark) -> str:
    points = {"train": TRAIN, "held_out": HELD_OUT}
    return reading_text(PSNR_CURVES, points, marks, step, 5.0, DARK)


def place(cursor: int, wanted: int, x: np.ndarray, y: np.ndarray) -> Box:
    """Of a text of one line of 20 px, or of two where it is broken."""
    boxes = reading_boxes(CURVES, cursor, wanted, lambda width: 20 if width >= wanted else 40)
    return least_hiding(boxes, x, y)


def test_no_held_out_value_is_read_before_the_first_is_measured() -> None:
    assert "train 20" in reading(470.0)
    assert "held out" not in reading(470.0)


def test_the_last_measured_held_out_value_is_read_with_its_step() -> None:
    assert f"held out 25.33 (step{STAYS}1,000)" in reading(1_490.0)
    assert f"held out 26 (step{STAYS}1,500)" in reading(1_990.0)


def test_a_dot_is_read_from_just_before_it_as_well() -> None:
    assert "held out 25.33" in reading(996.0)
    assert "held out 26" in reading(1_496.0)


def test_a_point_that_stands_for_several_steps_says_so_and_counts_are_whole() -> None:
    splats = np.linspace(5_103, 6_299, 10)  # every other one is no whole number
    each = {"splats": (np.arange(691.0, 701.0), splats)}
    assert reading_text(SPLAT_CURVES, each, (), 697.0, 5.0, DARK).startswith("step 697<br>")
    means = {"splats": (np.arange(8) * 8.0 + 4.5, splats[:8])}  # of steps 1 to 8, 9 to 16 ...
    text = reading_text(SPLAT_CURVES, means, (), 21.0, 5.0, DARK)
    assert text.startswith(f"mean of steps 17{STAYS}to{STAYS}24<br>")
    assert "splats 5,369<" in text  # 5368.8


def test_one_mark_is_told_whole_and_several_in_short() -> None:
    assert "702 Loss, SSIM weight: 0.2 → 0.3 (loss not comparable across)" in reading(700.0, WEIGHT)
    both = reading(700.0, RESET, WEIGHT)
    assert "700 opacities reset to 0.01" in both
    assert "702 SSIM weight: 0.2 → 0.3<" in both


def test_a_reading_stands_on_the_side_of_the_cursor_that_has_more_room() -> None:
    nothing = np.empty(0)
    assert place(100, 90, nothing, nothing) == (160, 10, 90, 20)
    assert place(200, 90, nothing, nothing) == (50, 10, 90, 20)
    # broken rather than over the cursor, which is at 100
    assert place(100, 190, nothing, nothing) == (104, 10, 146, 40)


def test_a_reading_hides_no_curve_where_there_is_another_place() -> None:
    x = np.arange(50.0, 250.0)
    assert place(100, 90, x, np.full(200, 15.0)) == (160, 110, 90, 20)
    falling = np.where(x < 140, 15.0, 125.0)  # to the lower right
    assert place(240, 90, x, falling) == (146, 10, 90, 20)


def test_a_reading_breaks_its_lines_where_it_would_hide_the_curves_otherwise() -> None:
    wide = (50, 10, 300, 120)

    def height_of(width: int) -> int:
        return 20 if width >= 150 else 40

    boxes = reading_boxes(wide, 190, 150, height_of)
    nothing = np.empty(0)
    assert least_hiding(boxes, nothing, nothing) == (200, 10, 150, 20)
    right = np.arange(190.0, 350.0)
    x, y = np.tile(right, 2), np.repeat([15.0, 125.0], len(right))  # above and below
    assert least_hiding(boxes, x, y) == (50, 10, 136, 40)
    assert all(box[2] >= 110 for box in reading_boxes(wide, 120, 150, height_of))


def test_a_reading_stays_for_a_few_points() -> None:
    x = np.arange(160.0, 180.0)
    y = np.where(x < 172, 15.0, 125.0)  # 12 above, 8 below
    assert place(100, 146, x, y)[1] == 10


def test_a_reading_without_room_at_either_side_stands_across_and_stays_in_the_plot() -> None:
    x, y = np.arange(50.0, 250.0), np.full(200, 15.0)
    left, top, width, height = place(150, 240, x, y)
    assert (left, top, width, height) == (10, 110, 240, 20)
    assert place(150, 400, x, y) == (0, 90, 250, 40)
    (only,) = reading_boxes(CURVES, 150, 240, lambda _: 125)  # higher than the curves
    assert only == (10, 5, 240, 125)
