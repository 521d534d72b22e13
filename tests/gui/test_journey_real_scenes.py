"""Real scenes of every format open and train in the real window, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from engine.messages import Failed, SceneOpened
from tests.gui.journey import Journey, make_journey
from tests.test_scene_formats import SCENES

pytestmark = pytest.mark.gl


@pytest.fixture(scope="module")
def room(qapp: QApplication) -> Iterator[Journey]:
    """One window for all scenes."""
    journey = make_journey(qapp, "painted")
    yield journey
    journey.close()


@pytest.mark.parametrize("name", SCENES)
def test_a_real_scene_of_each_format_trains_in_the_window(
    data_folder: Path, room: Journey, name: str
) -> None:
    room.begin()
    room.open(data_folder / SCENES[name], resolution=8, random_points=4_000)
    room.train_on(3)
    [opened] = room.all(SceneOpened)
    assert room.window.photos_panel.model.rowCount() == len(opened.photos)
    room.frame_of_newest_view()
    assert room.seen().std() > 5  # a picture, not a flat colour
    assert not room.all(Failed)
