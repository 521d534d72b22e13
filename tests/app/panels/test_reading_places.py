"""Where a plot writes what is read in it: beside its curves, also where these have few points."""

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.panels.metrics_panel import LOSS_CURVES
from app.panels.plot import Plot
from tests.settling import show


@pytest.mark.parametrize(("height", "is_above"), [(1.0, True), (0.0, False)])
def test_a_reading_does_not_hide_a_line_between_two_distant_points(
    qtbot: QtBot, height: float, is_above: bool
) -> None:
    plot = Plot("Loss", LOSS_CURVES)
    qtbot.addWidget(plot)
    plot.resize(420, 240)
    show(qtbot, plot)
    steps = np.array([1.0, 2.0, 3.0, 400.0])
    plot.set_curve(LOSS_CURVES[0].key, steps, np.array([0.0, 1.0, height, height]))
    plot.fit(1.0, 300.0)  # the last point is out of sight, the line to it is not
    plot.show_cursor(100.0)
    reading, area = plot._reading.geometry(), plot._area
    line = area.y() + area.scale.y(height)
    assert plot.reading
    assert not reading.top() <= line <= reading.bottom()
    assert (line < reading.top()) is is_above
