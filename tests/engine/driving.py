"""Drives a real engine in tests: posts commands, collects events, waits with a limit."""

import errno
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from engine import messages as m
from engine.cameras import Camera
from engine.dataset.scene import Distortion
from engine.engine_thread import Engine
from engine.messages import Command, Event, Frame, State
from engine.settings import Settings
from tests.engine.dataset.scene_files import make_views, write_colmap

Kind = TypeVar("Kind", bound=Event)
SECONDS = 100.0  # a limit for what takes well under one: the machine may be busy
SMALL = Distortion("PINHOLE", (30.0, 30.0, 16.0, 12.0), 32, 24)


def write_tiny_scene(root: Path, photos: int = 8, seed: int = 0) -> Path:
    """8 photos of 32x24 pixels round 40 points, one of them held out; a step takes about 2 ms."""
    write_colmap(root, make_views(photos, points=40, lens=SMALL, seed=seed))
    return root


def quick(**changes: object) -> Settings:
    """Settings for a short run in which everything happens early."""
    early = {
        "iterations": 60,
        "evaluation_interval": 0,
        "checkpoint_interval": 0,
        "densify_start": 4,
        "densify_interval": 10,
        "opacity_reset_interval": 25,
        "sh_interval": 15,
        "threads": 1,
    }
    return Settings().updated({**early, **changes})


ENDLESS = quick(iterations=1_000_000)


def full_disk(descriptor: int) -> None:
    """Takes the place of `os.fsync`."""
    raise OSError(errno.ENOSPC, "No space left on device")


class Driver:
    """An engine and everything that it told so far."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.events: list[Event] = []
        self.frames: list[Frame] = []
        self._woken = threading.Event()
        engine.set_wake(self._woken.set)

    @property
    def state(self) -> State:
        changes = self.all(m.StateChanged)
        return changes[-1].new if changes else State.EMPTY

    @property
    def steps(self) -> int:
        """Steps done, as the events tell."""
        told = [int(event.steps[-1]) for event in self.all(m.Stepped)]
        return max(told, default=0)

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def take(self) -> None:
        self.events += self.engine.take_events()
        frame = self.engine.take_frame()
        if frame is not None:
            self.frames.append(frame)

    def post(self, command: Command) -> None:
        self.engine.post(command)

    def until(self, condition: Callable[[], bool], seconds: float = SECONDS) -> None:
        end = time.monotonic() + seconds
        self.take()
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {seconds} s in vain; last events: {self.events[-8:]}")
            self.listen(0.05)

    def listen(self, seconds: float) -> None:
        """Wait so long for news, and take it. A loop without it starves the engine of the GIL."""
        self._woken.wait(seconds)
        self._woken.clear()
        self.take()

    def next(self, kind: type[Kind], seconds: float = SECONDS) -> Kind:
        """Wait for one more event of `kind` than there was."""
        self.take()
        known = len(self.all(kind))
        return self.wait(kind, known + 1, seconds)

    def wait(self, kind: type[Kind], count: int = 1, seconds: float = SECONDS) -> Kind:
        """Wait until there were `count` events of `kind`; the last of them."""
        self.until(lambda: len(self.all(kind)) >= count, seconds)
        return self.all(kind)[-1]

    def ask(self, command: Command, kind: type[Kind], seconds: float = SECONDS) -> Kind:
        """Post a command and wait for the answer."""
        self.take()
        known = len(self.all(kind))
        self.post(command)
        return self.wait(kind, known + 1, seconds)

    def reach(self, state: State, seconds: float = SECONDS) -> None:
        self.until(lambda: self.state is state, seconds)

    def open(
        self, scene: Path, folder: Path, settings: Settings | None = None, start: bool = True
    ) -> None:
        """Open a scene and wait until the run exists."""
        started = len(self.all(m.RunStarted))
        self.post(m.OpenScene(scene, settings or quick(), start, folder))
        self.wait(m.RunStarted, started + 1)

    def open_paused(self, scene: Path, folder: Path, settings: Settings) -> None:
        """Open a scene and pause after three steps."""
        self.open(scene, folder, settings, start=False)
        self.post(m.StepN(3))
        self.reach(State.PAUSED)

    def camera(self) -> Camera:
        """The first photo's."""
        return self.all(m.SceneOpened)[-1].photos[0].camera


@contextmanager
def running_engine() -> Iterator[Driver]:
    """A started engine that is shut down, and seen to end, when the block is left."""
    engine = Engine()
    driver = Driver(engine)
    engine.start()
    try:
        yield driver
    finally:
        engine.post(m.Shutdown(save=False))
        ended = engine.join(SECONDS)
        driver.take()
        assert ended, "the engine thread did not end"
        assert isinstance(driver.events[-1], m.EngineStopped)
