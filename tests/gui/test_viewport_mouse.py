"""Real X events, as a hand makes them, reach the view: hit-testing included."""

import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from engine.messages import State
from tests.gui.window_room import Room, widget_place
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


def xdotool(*words: object) -> None:
    subprocess.run(["xdotool", *map(str, words)], check=True, timeout=LIMIT_MS / 1000)


def test_real_mouse_and_keys_move_the_view(room: Room) -> None:
    room.open()
    surface = room.view.surface
    before = room.engine.last_view()
    assert before is not None
    x, y = (value + 120 for value in widget_place(surface.widget))
    xdotool("mousemove", x, y, "mousedown", 1)
    for step in range(1, 6):
        xdotool("mousemove", x + 12 * step, y + 3 * step)
    xdotool("mouseup", 1)

    def turned() -> bool:
        view = room.engine.last_view()
        return (
            view is not None
            and not view.moving
            and not np.allclose(view.camera.world_to_camera, before.camera.world_to_camera)
        )

    room.qtbot.waitUntil(turned, timeout=LIMIT_MS)
    room.wait_for_current_frame()
    xdotool("key", "h")  # the click gave the view the keyboard

    def is_home() -> bool:
        view = room.engine.last_view()
        return view is not None and bool(
            np.allclose(view.camera.world_to_camera, before.camera.world_to_camera)
        )

    room.qtbot.waitUntil(is_home, timeout=LIMIT_MS)
    xdotool("key", "space")
    room.qtbot.waitUntil(lambda: room.session.state is State.PAUSED, timeout=LIMIT_MS)
    xdotool("key", "ctrl+Return")  # a shortcut of the window, while the view has the focus
    room.qtbot.waitUntil(lambda: room.session.state is State.TRAINING, timeout=LIMIT_MS)


@pytest.fixture
def patient_double_click(qapp: QApplication) -> Iterator[None]:
    """Two clicks are a double click, however long a busy machine takes between them."""
    interval = qapp.doubleClickInterval()
    qapp.setDoubleClickInterval(LIMIT_MS)
    yield
    qapp.setDoubleClickInterval(interval)


@pytest.mark.usefixtures("patient_double_click")
def test_the_mouse_is_where_the_view_thinks_it_is(room: Room) -> None:
    room.open()
    places: list[tuple[float, float]] = []
    room.view.navigation.picked.connect(lambda place: places.append(place.toTuple()))
    left, top = widget_place(room.view.surface.widget)
    for x, y in ((5, 5), (300, 100)):
        xdotool("mousemove", left + x, top + y, "click", "--repeat", 2, "--delay", 40, 1)
        room.qtbot.waitUntil(lambda p=(x, y): p in places, timeout=LIMIT_MS)


def test_typing_into_a_field_leaves_the_view_alone(room: Room) -> None:
    room.open()
    left, top = widget_place(room.view.surface.widget)
    xdotool("mousemove", left + 60, top + 60, "click", 1)
    room.qtbot.waitUntil(lambda: room.view._focused, timeout=LIMIT_MS)
    field = room.window.settings_panel.list.search
    field.clear()
    x, y = widget_place(field)
    xdotool("mousemove", x + 20, y + 8, "click", 1)
    room.qtbot.waitUntil(lambda: not room.view._focused, timeout=LIMIT_MS)
    asked, commands = len(room.engine.views), len(room.engine.commands)
    xdotool("key", "w", "space", "h")
    room.qtbot.waitUntil(lambda: field.text() == "w h", timeout=LIMIT_MS)
    assert len(room.engine.views) == asked
    assert len(room.engine.commands) == commands
    field.clear()
