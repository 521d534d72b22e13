"""Every device pixel of the view is a pixel of the picture, at fractional scales too."""

import json

import pytest

from tests.child_process import run_python
from tests.gui.private_display import PrivateDisplay

pytestmark = pytest.mark.gl


@pytest.mark.parametrize("scale", ["1", "1.5", "2"])
def test_the_picture_has_the_views_device_pixels(display: PrivateDisplay, scale: str) -> None:
    variables = display.environment() | {"QT_SCALE_FACTOR": scale}
    found = run_python("-m", "tests.gui.high_dpi_program", variables=variables)
    assert found.returncode == 0, found.stderr
    for seen in json.loads(found.stdout.splitlines()[-1]).values():
        assert seen["ratio"] == float(scale)
        for view in seen["views"]:
            assert view["frame"] == [round(side * float(scale)) for side in view["logical"]]
            # where the view begins between two device pixels, Qt clips one column or row of it
            lost = sum(1 / side for side in view["frame"]) if scale == "1.5" else 0.0
            assert view["exact"] >= 1 - 1.01 * lost
        assert max(seen["corners"]) < 1e-6
