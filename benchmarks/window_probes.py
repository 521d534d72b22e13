"""What `benchmarks.window` looks at a window with: a hand on the mouse, latency, stalls, memory."""

import math
import time

import numpy as np
import psutil
from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer
from PySide6.QtOpenGL import QOpenGLWindow

from app.viewport.surface import OverlayPainter, Picture
from engine.messages import Event, Frame, Stepped, View
from tests.gui.journey import Journey

MOVE_INTERVAL_MS = 16  # a mouse tells of its moves about so often
STALL_INTERVAL_MS = 5
MB = 1 << 20


class Mouse(QObject):
    """Turns the view to and fro, as a hand on the mouse does, at every tick."""

    def __init__(self, journey: Journey) -> None:
        super().__init__(journey.window)
        self._navigation = journey.view.navigation
        self._moves = 0
        self.timer = QTimer(self)
        self.timer.setInterval(MOVE_INTERVAL_MS)
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self._move)

    def _move(self) -> None:
        if self._navigation.controls is not None:
            self._moves += 1
            turn = 4.0 * math.cos(self._moves / 40)
            self._navigation.controls.orbit(turn, 0.0, self._navigation.height)
            self._navigation.moved.emit()


class Latency(QObject):
    """Times each view from its request, made in the mouse's event, to a picture painted.

    A picture answers all views up to its own: those that it overtook were never drawn.
    """

    def __init__(self, journey: Journey) -> None:
        super().__init__(journey.window)
        self.milliseconds: list[float] = []
        self._asked: dict[int, float] = {}
        self._view = journey.view
        self._surface = journey.view.surface
        self._present = self._surface.present
        # The surface has no signal for it, so its method is replaced while this listens.
        self._surface.present = self._presented  # type: ignore[method-assign]
        self._view.view_requested.connect(self._request)
        self._waiting: Frame | None = None
        windows = [s for s in self._surface.sources if isinstance(s, QOpenGLWindow)]
        self._paints_later = bool(windows)
        for window in windows:
            window.frameSwapped.connect(self._painted)

    def end(self) -> None:
        """Time nothing more."""
        # As in `__init__`: the surface's own method again.
        self._surface.present = self._present  # type: ignore[method-assign]
        self._view.view_requested.disconnect(self._request)

    def _request(self, view: View | None) -> None:
        if view is not None:
            self._asked[view.view_id] = time.perf_counter()

    def _presented(self, picture: Picture | None, overlay: OverlayPainter | None) -> None:
        self._present(picture, overlay)
        frame = self._view.frame
        if frame is None or picture is None or picture.pixels is not frame.pixels:
            return
        self._waiting = frame
        if not self._paints_later:
            self._surface.widget.repaint()  # at once, so that its end can be timed
            self._painted()

    def _painted(self) -> None:
        if self._waiting is None:
            return
        now, newest = time.perf_counter(), self._waiting.view_id
        self._waiting = None
        for number in [number for number in self._asked if number <= newest]:
            self.milliseconds.append(1e3 * (now - self._asked.pop(number)))


class Stalls(QObject):
    """How much too late a timer of the event loop fires: so long nothing in the window answers."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.milliseconds: list[float] = []
        self._clock = QElapsedTimer()
        self._clock.start()
        self.timer = QTimer(self)
        self.timer.setInterval(STALL_INTERVAL_MS)
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self._tick)
        self.timer.start()

    def _tick(self) -> None:
        self.milliseconds.append(max(0.0, self._clock.nsecsElapsed() / 1e6 - STALL_INTERVAL_MS))
        self._clock.restart()


class Memory(QObject):
    """Resident memory of the process over the steps."""

    def __init__(self, journey: Journey, every: int) -> None:
        super().__init__(journey.window)
        self.steps: list[int] = []
        self.bytes: list[int] = []
        self._every = every
        self._process = psutil.Process()
        journey.session.event_arrived.connect(self._take)

    def _take(self, event: Event) -> None:
        if isinstance(event, Stepped) and len(event.steps):
            step = int(event.steps[-1])
            if not self.steps or step - self.steps[-1] >= self._every:
                self.steps.append(step)
                self.bytes.append(self._process.memory_info().rss)

    def slope(self, begin: int) -> float:
        """Megabytes per 1,000 steps from step `begin` on, by least squares."""
        steps, sizes = np.array(self.steps), np.array(self.bytes) / MB
        late = steps >= begin
        if late.sum() < 3:
            return float("nan")
        return float(1000 * np.polyfit(steps[late], sizes[late], 1)[0])


def percentile(values: list[float], share: float) -> float:
    """NaN of nothing."""
    return float(np.percentile(values, share)) if values else float("nan")
