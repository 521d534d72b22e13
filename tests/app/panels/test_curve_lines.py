"""What is drawn of a curve."""

import numpy as np
from PySide6.QtGui import QColor, QImage, QPainter

from app.palette import DARK
from app.panels.curve_lines import CurveLines
from app.panels.plot_header import Curve
from app.panels.plot_scale import PlotScale

SCALE = PlotScale((0.0, 10.0), (0.0, 1.0), 0.0, 0.0, 100.0, 20.0)


def colored(*values: float, at: tuple[float, ...]) -> list[bool]:
    """Whether the curve through these values has its colour at each of some steps."""
    lines = CurveLines((Curve("only", "only", "accent"),))
    steps = np.arange(1.0, 1.0 + len(values))
    lines.set_points("only", steps, np.array(values))
    picture = QImage(100, 20, QImage.Format.Format_RGB32)
    picture.fill(0)
    painter = QPainter(picture)
    lines.paint(painter, SCALE)
    painter.end()
    color = QColor(DARK.accent)
    return [picture.pixelColor(int(SCALE.x(step)), 10) == color for step in at]


def test_the_first_step_of_a_run_is_a_dot() -> None:
    assert colored(0.5, at=(0.5, 1.0, 1.5)) == [False, True, False]


def test_a_point_between_unknown_ones_is_a_dot_and_a_line_has_none() -> None:
    # a row above the line, of one pixel, only dots have their colour
    alone = colored(np.nan, 0.5, np.nan, 0.5, 0.5, at=(2.0, 3.0))
    assert alone == [True, False]
    assert colored(0.45, 0.45, 0.45, at=(2.0,)) == [False]
