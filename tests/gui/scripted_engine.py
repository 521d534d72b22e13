"""An engine that does no training: it says what a test tells it to say, from its own thread.

Frames are test cards: pixel (column, row) of frame `n` is (column % 256, row % 256, n % 256, 255),
so that a shifted, sheared, scaled or old picture is told from the right one by any pixel of it.
"""

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.cameras import Camera
from engine.dataset.scene import Finding
from engine.messages import (
    Command,
    EngineStopped,
    Event,
    Frame,
    OpenScene,
    Pause,
    PhotoSummary,
    RunStarted,
    SceneOpened,
    Shutdown,
    Start,
    State,
    StateChanged,
    Stepped,
    View,
)
from engine.settings import Settings
from tests.looking import look_at
from tests.settling import LIMIT_MS


def picture_card(width: int, height: int, number: int) -> np.ndarray:
    """The test card of frame `number`, RGBA8 (height, width, 4)."""
    pixels = np.empty((height, width, 4), dtype=np.uint8)
    pixels[..., 0] = (np.arange(width) % 256)[None, :]
    pixels[..., 1] = (np.arange(height) % 256)[:, None]
    pixels[..., 2] = number % 256
    pixels[..., 3] = 255
    return pixels


def ring_of_cameras(count: int, width: int = 320, height: int = 240) -> list[Camera]:
    """Cameras on a circle of radius 4 round the origin, slightly above it, looking at it."""
    cameras = []
    for angle in np.linspace(0, 2 * np.pi, count, endpoint=False):
        eye = np.array([4 * np.cos(angle), -1.0, 4 * np.sin(angle)])
        pose = look_at(eye, np.zeros(3), np.array([0.0, -1.0, 0.0]))
        cameras.append(Camera(pose, 300.0, 300.0, width / 2, height / 2, width, height))
    return cameras


def scene_opened(run_id: int = 1, photos: int = 8, name: str = "ring") -> SceneOpened:
    """A scene of cameras on a circle round a small cloud; every fourth photo is held out."""
    generator = np.random.default_rng(0)
    summaries = tuple(
        PhotoSummary(f"photo_{i:03d}.png", Path(f"photo_{i:03d}.png"), camera, i % 4 == 0)
        for i, camera in enumerate(ring_of_cameras(photos))
    )
    return SceneOpened(
        run_id=run_id,
        name=name,
        path=Path("scenes") / name,
        photos=summaries,
        points=generator.normal(0.0, 0.5, (500, 3)).astype(np.float32),
        point_colors=generator.integers(0, 256, (500, 3), dtype=np.uint8),
        findings=(Finding("no_alpha", "ok", "", "Photos have no transparency."),),
        up=(0.0, -1.0, 0.0),
        pivot=(0.0, 0.0, 0.0),
        extent=4.4,
    )


def stepped(run_id: int, first: int, last: int, splats: int = 1000) -> Stepped:
    """Made-up metrics of the steps `first` to `last`."""
    steps = np.arange(first, last + 1, dtype=np.int64)
    decay = np.exp(-steps / 1000)
    return Stepped(
        run_id=run_id,
        steps=steps,
        seconds=steps * 0.05,
        loss=0.05 + 0.2 * decay,
        l1=0.03 + 0.1 * decay,
        ssim=0.9 - 0.4 * decay,
        psnr=28 - 12 * decay,
        splats=splats + steps,
        position_lr=1.6e-4,
        sh_degree=0,
        steps_per_second=20.0,
        preview_share=0.02,
        memory_bytes=512 * 2**20,
    )


class ScriptedEngine:
    """An `EngineHandle` whose thread carries out scripts.

    It records `commands`, `views` and `window_work`, answers Start, Pause, OpenScene and Shutdown
    with the events the real engine would send, and renders a numbered card for each view request.
    What else happens, a test says with `emit` and `show`.
    """

    def __init__(self, *, answers_views: bool = True, stops_by_itself: bool = True) -> None:
        self.commands: list[Command] = []
        self.views: list[View | None] = []
        self.window_work: list[float] = []
        self.frame_count = 0
        self.run_id = 0
        self.step = 0
        self.state = State.EMPTY
        self.answers_views = answers_views
        self.stops_by_itself = stops_by_itself
        self._events: list[Event] = []
        self._frame: Frame | None = None
        self._wake: Callable[[], None] | None = None
        self._wake_pending = False
        self._lock = threading.Lock()
        self._scripts: queue.SimpleQueue[Callable[[], bool]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="scripted-engine", daemon=True)

    # --- the handle ---

    def start(self) -> None:
        self._thread.start()

    def post(self, command: Command) -> None:
        self.commands.append(command)
        self._scripts.put(lambda: self._answer(command))

    def request_view(self, view: View | None) -> None:
        self.views.append(view)
        if view is not None and self.answers_views:
            self._scripts.put(lambda: self._render(view))

    def count_window_work(self, seconds: float) -> None:
        self.window_work.append(seconds)

    def take_events(self) -> list[Event]:
        with self._lock:
            events, self._events = self._events, []
            self._wake_pending = False
        return events

    def take_frame(self) -> Frame | None:
        with self._lock:
            frame, self._frame = self._frame, None
        return frame

    def set_wake(self, wake: Callable[[], None] | None) -> None:
        with self._lock:
            self._wake = wake

    def join(self, timeout: float) -> bool:
        if self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # --- the script ---

    def emit(self, *events: Event) -> None:
        """Send events, from the engine thread."""
        self._scripts.put(lambda: self._send(*events))

    def enter(self, state: State) -> None:
        """Go to another state and say so."""
        self._scripts.put(lambda: self._enter(state))

    def show(self, frame: Frame) -> None:
        """Hand out a frame, from the engine thread."""
        self._scripts.put(lambda: self._hand_out(frame))

    def stop(self) -> None:
        """Let the engine end, as after a Shutdown."""
        self._scripts.put(self._stop)

    def end(self) -> None:
        """End the thread without a word; for tests that never closed their window."""
        self._scripts.put(lambda: False)
        assert self.join(LIMIT_MS / 1000), "the scripted engine's thread did not end"

    def frame_of(self, view: View, *, scale: float = 1.0, number: int | None = None) -> Frame:
        """The numbered card that answers `view`, coarse when `scale` is below 1."""
        self.frame_count += 1
        number = self.frame_count if number is None else number
        width = max(1, round(view.camera.width * scale))
        height = max(1, round(view.camera.height * scale))
        return Frame(
            run_id=self.run_id,
            view_id=view.view_id,
            step=self.step,
            pixels=picture_card(width, height, number),
            camera=view.camera.resized(width, height),
            scale=scale,
        )

    def last_view(self) -> View | None:
        """The view that is asked for now."""
        return self.views[-1] if self.views else None

    # --- in the thread ---

    def _run(self) -> None:
        while self._scripts.get()():
            pass

    def _answer(self, command: Command) -> bool:
        if isinstance(command, Shutdown):
            self._enter(State.CLOSING)
            return self._stop() if self.stops_by_itself else True
        if isinstance(command, OpenScene):
            self._open(command)
        elif isinstance(command, Start):
            self._enter(State.TRAINING)
        elif isinstance(command, Pause):
            self._enter(State.PAUSED)
        return True

    def _open(self, command: OpenScene) -> None:
        self.run_id += 1
        self.step = 0
        self._enter(State.LOADING)
        opened = scene_opened(self.run_id, name=command.path.name)
        started = RunStarted(
            self.run_id, Path("runs") / f"{command.path.name}-1", Settings(), 0, "CPU, 2 threads"
        )
        self._send(opened, started)
        self._enter(State.TRAINING if command.start else State.READY)

    def _render(self, view: View) -> bool:
        if self.run_id and view is self.last_view():
            self._hand_out(self.frame_of(view))
        return True

    def _enter(self, state: State) -> bool:
        old, self.state = self.state, state
        return self._send(StateChanged(self.run_id, old, state, self.step))

    def _send(self, *events: Event) -> bool:
        with self._lock:
            self._events.extend(events)
        self._wake_up()
        return True

    def _hand_out(self, frame: Frame) -> bool:
        with self._lock:
            self._frame = frame
        self._wake_up()
        return True

    def _stop(self) -> bool:
        self._send(EngineStopped(self.run_id))
        return False

    def _wake_up(self) -> None:
        with self._lock:
            wake = None if self._wake_pending else self._wake
            self._wake_pending = wake is not None
        if wake is not None:
            wake()
