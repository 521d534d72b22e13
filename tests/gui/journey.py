"""Drives the real window with the real engine: clicks, keys, pixels, and waiting with a limit.

Everything goes through windows at global places, as a desktop would deliver it: what lies on top
gets the click. When something is waited for in vain, a picture of the screen and the stacks of
all threads are left in a folder that the error names.
"""

import dataclasses
import faulthandler
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image
from PySide6.QtCore import QEvent, QEventLoop, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.main_window import MainWindow
from app.preferences import Preferences
from app.theme import Theme
from app.training_session import TrainingSession
from app.viewport.photo_pictures import decode_photo
from app.viewport.viewport import Viewport, make_viewport
from engine.engine_thread import Engine
from engine.messages import Event, RunStarted, State, Stepped
from engine.run.run_folder import RunFolder
from engine.scene_names import DEMO_FOLDER
from engine.settings import Settings
from tests.gui.window_room import drag, screen_pixels, surface_pixels
from tests.journals import read_journal
from tests.settling import settle

LIMIT_S = 200.0  # for what takes seconds at most: the machine may be busy with other work
POLL_MS = 5
EARLY = Settings().updated(
    {
        "resolution": 2,  # the demo at 160x104: a step takes about 15 ms
        "evaluation_interval": 0,
        "checkpoint_interval": 0,
        "opacity_reset_interval": 0,
        "densify_start": 100_000,  # a steady number of splats, a steady speed
        "preview_share_rest": 0.2,  # less waiting for pictures while it trains
    }
)

Kind = TypeVar("Kind", bound=Event)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = LIMIT_S) -> None:
    """Turn the event loop until `condition` holds; AssertionError with evidence after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(
                f"waited {seconds:g} s in vain: {what}; see {_evidence()} for the screen and stacks"
            )
        turn_event_loop()


def turn_event_loop(milliseconds: int = POLL_MS) -> None:
    """Let Qt work for a moment. QTest's own waiting would keep the engine from Python's lock."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def _evidence() -> Path:
    """A folder with a picture of the screen and the stacks of all threads."""
    folder = Path(tempfile.mkdtemp(prefix="splatscope-journey-"))
    Image.fromarray(screen_pixels()).save(folder / "screen.png")
    with (folder / "stacks.txt").open("w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    return folder


def xdotool(*arguments: object) -> None:
    """Real mouse and keys from outside, while the event loop turns."""
    process = subprocess.Popen(["xdotool", *map(str, arguments)])
    wait_until(lambda: process.poll() is not None, f"xdotool {arguments}")
    assert process.returncode == 0, arguments


@dataclasses.dataclass
class Journey:
    """A real window, the engine behind it, and all that the engine told."""

    window: MainWindow
    session: TrainingSession
    engine: Engine
    events: list[Event] = dataclasses.field(default_factory=list)

    # --- what there is ---------------------------------------------------------------------------

    @property
    def view(self) -> Viewport:
        return self.window.viewport

    @property
    def state(self) -> State:
        return self.session.state

    @property
    def step(self) -> int:
        return self.session.step

    @property
    def run(self) -> RunFolder:
        """The folder of the open run."""
        assert self.window.run_folder is not None
        return RunFolder(self.window.run_folder)

    def journal(self, what: str) -> list[dict[str, Any]]:
        """The entries of one kind in the journal of the open run."""
        entries = read_journal(self.run.journal_path)
        return [entry for entry in entries if entry["what"] == what]

    def all(self, kind: type[Kind]) -> list[Kind]:
        """The events of a kind since the scene was opened."""
        return [event for event in self.events if isinstance(event, kind)]

    # --- waiting ---------------------------------------------------------------------------------

    def until(self, condition: Callable[[], bool], what: str, seconds: float = LIMIT_S) -> None:
        """Wait for a condition; a failure tells state, step and the last events."""
        try:
            wait_until(condition, what, seconds)
        except AssertionError as error:
            last = [type(event).__name__ for event in self.events[-8:]]
            raise AssertionError(f"{error}; {self.state} at step {self.step}, {last}") from error

    def reach(self, state: State) -> None:
        """Wait until the engine is in a state."""
        self.until(lambda: self.state is state, f"state {state.value}")

    def train_on(self, steps: int = 2) -> int:
        """Wait until so many more steps are told; the step reached."""
        target = self.step + steps
        self.until(lambda: self.step >= target, f"step {target}")
        return self.step

    def answer(self, deed: Callable[[], object], kind: type[Kind]) -> Kind:
        """Do something and wait for the event that answers it."""
        known = len(self.all(kind))
        deed()
        self.until(lambda: len(self.all(kind)) > known, f"an event {kind.__name__}")
        return self.all(kind)[known]

    def frame_of_newest_view(self, full_size: bool = True) -> None:
        """Wait until the newest view asked for is shown, at full size, of the step that holds."""

        def shown() -> bool:
            frame, view = self.view.frame, self.view.view
            if frame is None or view is None or frame.view_id != view.view_id:
                return False
            is_newest = self.state is State.TRAINING or frame.step == self.step
            return is_newest and (frame.scale == 1.0 or not full_size)

        self.until(shown, "a frame of the newest view")

    # --- the screen ------------------------------------------------------------------------------

    def seen(self) -> np.ndarray:
        """What the screen shows of the view, RGB (height, width, 3)."""
        return surface_pixels(self.view.surface)

    def shown_exactly(self) -> np.ndarray:
        """Wait until the screen shows the newest frame pixel by pixel; those pixels."""
        found: list[np.ndarray] = []

        def exact() -> bool:
            frame = self.view.frame
            if frame is None or frame.pixels.shape[:2] != self.view.surface.pixel_size()[::-1]:
                return False
            seen = self.seen()
            found[:] = [seen]
            return bool((seen == self.view.frame.pixels[..., :3]).all())  # type: ignore[union-attr]

        self.until(exact, "the frame's own pixels on the screen")
        return found[0]

    def bare(self) -> None:
        """Take everything off the picture, so that its pixels can be compared."""
        for key in ("cameras", "pivot", "labels"):
            if self.window.actions_table[key].isChecked():
                self.window.actions_table[key].trigger()
        self.window.settings_panel.list.search.setFocus()  # a focused view has a ring

    # --- mouse and keys --------------------------------------------------------------------------

    def click(self, widget: QWidget, inside: QPoint | None = None) -> None:
        """Click at a widget's place; whatever lies on top there gets it."""
        assert widget.isVisible(), f"{widget} cannot be seen"
        handle = widget.window().windowHandle()
        place = widget.mapTo(widget.window(), inside or widget.rect().center())
        QTest.mouseClick(handle, Qt.MouseButton.LeftButton, pos=place)

    def press(
        self,
        key: Qt.Key,
        modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    ) -> None:
        """A key for whatever has the keyboard."""
        QTest.keyClick(focus_window(), key, modifiers)

    def type_text(self, text: str) -> None:
        """Type into whatever has the keyboard."""
        for letter in text:
            QTest.keyClick(focus_window(), letter)

    def set_value(self, name: str, text: str) -> None:
        """Click into a setting's field, type a value and press Enter."""
        field = self.field(name)
        self.click(field)
        self.until(field.hasFocus, f"the focus in the field of {name}")
        self.press(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        self.type_text(text)
        self.press(Qt.Key.Key_Return)

    def field(self, name: str) -> QWidget:
        """The value field of a setting, scrolled into sight."""
        panel = self.window.settings_panel
        panel.list.set_closed_groups([])
        row = panel.row(name)
        assert row.field is not None
        settle()
        panel.list.area.ensureWidgetVisible(row)
        settle()
        return row.field

    def drag(self, by: tuple[int, int] = (90, 25), moves: int = 6) -> None:
        """Drag in the middle of the view with the left button."""
        widget = self.view.surface.widget
        step = (by[0] // moves, by[1] // moves)
        drag(self.view.surface, (widget.width() // 2, widget.height() // 2), [step] * moves)

    # --- from beginning to end -------------------------------------------------------------------

    def begin(self) -> None:
        """Make the window as good as new for the next test; what is open stays open."""
        self.view.set_flipped(False)
        for card in list(self.window.error_cards.cards):
            card.dismiss_button.click()
        self.window.raise_()
        self.window.activateWindow()
        self.until(self.window.isActiveWindow, "the window in front")

    def open(self, scene: Path = DEMO_FOLDER, *, start: bool = True, **changes: object) -> None:
        """Open a scene and wait until it trains (or is ready), with a first frame."""
        self.window.settings_panel.set_start_values(EARLY.updated(changes), "classic", Settings())
        self.window.commands.start_when_open = start
        run = self.session.run_id + 1
        self.events.clear()
        self.window.commands.open_scene(scene)
        self.until(lambda: self.session.run_id == run, "the new run")
        self.until(lambda: bool(self.all(RunStarted)), "the start of the run")
        self.reach(State.TRAINING if start else State.READY)
        if start:
            self.train_on()
        self.frame_of_newest_view(full_size=False)

    def pause(self) -> int:
        """Click on Pause; the step at which it holds."""
        self.click(self.window.toolbar.buttons["start_pause"])
        self.reach(State.PAUSED)
        return self.step

    def close(self) -> None:
        """Close the window, join the engine and take everything down."""
        self.window.close()
        self.until(lambda: self.session.has_stopped, "the end of the engine")
        assert self.session.close(LIMIT_S)
        self.window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def make_journey(application: QApplication, kind: str, engine: Engine | None = None) -> Journey:
    """A window of one kind of view on an engine of its own, shown and in front."""
    engine = engine or Engine()
    session = TrainingSession(engine)
    theme = Theme(application)
    window = MainWindow(
        session,
        theme,
        make_viewport(kind, decode_photo),
        Preferences(geometry=(0, 0, 1400, 900)),
    )
    journey = Journey(window, session, engine)
    session.event_arrived.connect(journey.events.append)
    session.start()
    window.appear()
    journey.until(window.isActiveWindow, "the window in front")
    return journey


def focus_window() -> QWindow:
    """The window that has the keyboard."""
    window = QGuiApplication.focusWindow()
    assert window is not None, "no window has the keyboard"
    return window


def steps_told(journey: Journey) -> list[int]:
    """Every step that the events tell of, in order."""
    return [int(step) for event in journey.all(Stepped) for step in event.steps]
