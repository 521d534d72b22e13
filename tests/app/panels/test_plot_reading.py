"""Which values are read under the pointer of a plot."""

import numpy as np

from app.palette import DARK
from app.panels.metrics_panel import PSNR_CURVES
from app.panels.plot_reading import reading_text

TRAIN = (np.arange(1.0, 2_001.0, 10.0), np.full(200, 20.0))
HELD_OUT = (np.array([1_000.0, 1_500.0]), np.array([25.33, 26.0]))


def reading(step: float) -> str:
    points = {"train": TRAIN, "held_out": HELD_OUT}
    return reading_text(PSNR_CURVES, points, [], step, 5.0, DARK)


def test_no_held_out_value_is_read_before_the_first_is_measured() -> None:
    assert "train 20" in reading(470.0)
    assert "held out" not in reading(470.0)


def test_the_last_measured_held_out_value_is_read_with_its_step() -> None:
    assert "held out 25.33 (step 1,000)" in reading(1_490.0)
    assert "held out 26 (step 1,500)" in reading(1_990.0)


def test_a_dot_is_read_from_just_before_it_as_well() -> None:
    assert "held out 25.33" in reading(996.0)
    assert "held out 26" in reading(1_496.0)
