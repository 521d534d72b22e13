"""A whole sitting by real mouse and keys from outside, and the program from start to exit."""

import json
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QWidget

from engine.messages import OpacitiesReset, Saved, SettingApplied, State
from engine.run.checkpoint import load_checkpoint
from engine.run.run_folder import RunFolder
from tests.child_process import run_python
from tests.gui.journey import EARLY, Journey, make_journey, xdotool
from tests.gui.private_display import PrivateDisplay
from tests.promises import quickest

pytestmark = pytest.mark.gl


class Hand:
    """The mouse and the keyboard of the desktop."""

    def __init__(self, journey: Journey) -> None:
        self._journey = journey

    def point(self, widget: QWidget, inside: QPoint | None = None) -> None:
        """Move the pointer over a widget; `--sync` would wait in vain where it is there already."""
        place = widget.mapToGlobal(inside or widget.rect().center())
        xdotool("mousemove", place.x(), place.y())

    def click(self, widget: QWidget) -> None:
        """Point and click."""
        self.point(widget)
        xdotool("click", 1)

    def drag(self, widget: QWidget, by: tuple[int, int], moves: int = 6) -> None:
        """Press in the middle of a widget, move, let go."""
        self.point(widget)
        xdotool("mousedown", 1)
        for _ in range(moves):
            xdotool("mousemove_relative", "--", by[0] // moves, by[1] // moves)
        xdotool("mouseup", 1)

    def keys(self, *keys: str) -> None:
        """Press and release keys, such as `ctrl+s`."""
        xdotool("key", *keys)


def test_a_sitting_by_mouse_and_keys(qapp: QApplication, kind: str) -> None:
    journey = make_journey(qapp, kind)
    hand, window = Hand(journey), journey.window
    window.settings_panel.set_start_values(EARLY, "classic", EARLY)
    buttons, surface = window.toolbar.buttons, journey.view.surface.widget

    hand.click(window.empty_page.demo_button)
    journey.reach(State.TRAINING)
    journey.train_on()
    journey.frame_of_newest_view(full_size=False)
    camera = journey.view.wanted_camera()
    assert camera is not None

    hand.drag(surface, (120, 30))
    journey.until(lambda: not is_moving(journey), "rest after the drag")
    journey.frame_of_newest_view()
    assert journey.view.frame is not None
    turned = journey.view.frame.camera.world_to_camera
    assert not np.allclose(turned, camera.world_to_camera, atol=0.1)

    hand.keys("bracketright")
    journey.until(lambda: journey.view.photo == 1, "the next photo's camera")
    xdotool("keydown", "f")
    journey.until(lambda: journey.view._flipped, "the photo")
    xdotool("keyup", "f")
    journey.until(lambda: not journey.view._flipped, "the render")

    hand.click(buttons["start_pause"])
    journey.reach(State.PAUSED)
    step = journey.step
    hand.click(buttons["step"])
    journey.until(lambda: journey.step == step + 1, "one step")
    journey.reach(State.PAUSED)

    hand.click(journey.field("opacity_lr"))
    hand.keys("ctrl+a")
    xdotool("type", "3e-4")
    applied = journey.answer(lambda: hand.keys("Return"), SettingApplied)
    assert (applied.step, applied.name, applied.new) == (step + 1, "opacity_lr", 3e-4)
    undone = journey.answer(lambda: hand.keys("ctrl+z"), SettingApplied)
    assert (undone.name, undone.new) == ("opacity_lr", applied.old)

    hand.click(surface)
    hand.keys("space")
    journey.reach(State.TRAINING)
    reset = next(b for b in window.action_panel.buttons.values() if b.text() == "Reset opacity")
    assert journey.answer(lambda: hand.click(reset), OpacitiesReset).by_hand
    assert journey.answer(lambda: hand.keys("ctrl+s"), Saved).path.is_file()

    run = journey.run
    hand.keys("ctrl+q")
    journey.until(lambda: journey.session.has_stopped and not window.isVisible(), "the end")
    journey.close()
    last = run.last_checkpoint()
    assert last is not None
    assert load_checkpoint(last).fact("step") == len(run.metrics_path.read_text().splitlines())


def is_moving(journey: Journey) -> bool:
    view = journey.view.view
    return view is None or view.moving


def test_the_program_closed_while_training_ends_with_a_checkpoint_and_no_thread(
    display: PrivateDisplay, kind: str, tmp_path: Path
) -> None:
    folders = {"XDG_DATA_HOME": "data", "SPLATSCOPE_CONFIG_DIR": "config"}
    folders["SPLATSCOPE_LOG_DIR"] = "logs"
    variables = {name: str(tmp_path / folder) for name, folder in folders.items()}

    def seconds_to_close() -> float:
        program = run_python(
            *("-m", "tests.gui.journey_program", kind), variables=display.environment() | variables
        )
        assert program.returncode == 0, program.stderr
        told = json.loads(program.stdout.splitlines()[-1])
        assert told["code"] == 0
        assert told["threads"] == ["MainThread"]
        assert told["kernel_threads"] == 1  # the caller's own: the pool has ended
        last = RunFolder(Path(told["run"])).last_checkpoint()
        assert last is not None
        assert load_checkpoint(last).fact("step") >= told["step"]
        return float(told["seconds"] - told["saving"])

    assert quickest(seconds_to_close, 2.0, tries=3) < 2.0
