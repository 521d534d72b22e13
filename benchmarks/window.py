"""What the window costs: training speed with and without it, memory, and how fast it answers.

    python -m benchmarks.window [--viewport gl] [--scene demo] [--rounds 3] [--json FILE]
    python -m benchmarks.window --conditions idle --rounds 8 --steps 0

Two engines of one process train the same scene from the same seed: one alone, one behind the
window, in turns and never at once. Each turn is the same steps for both, so that a ratio compares
equal work in the same minute of the machine; the order swaps from turn to turn. Then the view is
dragged for thousands of steps: resident memory must stay flat, each view is timed from the mouse
to the painted picture, and the event loop is watched for stalls. Last the window is closed while
it trains. A private screen with a window manager is started for it (Xvfb, openbox), unless
`--here` takes the present display.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import torch  # noqa: F401  before Qt: torch's runtimes must be found first
from PySide6.QtCore import QElapsedTimer, QEventLoop, QObject, Qt, QTimer
from PySide6.QtOpenGL import QOpenGLWindow
from PySide6.QtWidgets import QApplication

from app.viewport.surface import OverlayPainter, Picture
from engine.engine_thread import Engine
from engine.messages import (
    Event,
    Frame,
    OpenScene,
    Saved,
    Shutdown,
    State,
    StateChanged,
    StepN,
    Stepped,
    View,
)
from engine.scene_names import scene_path
from engine.settings import Settings
from tests.gui.journey import Journey, make_journey
from tests.gui.private_display import PrivateDisplay

CONDITIONS = ("idle", "hidden", "minimised", "dragged")
IDLE_BAR = 0.97  # the window open and idle slows training by at most 3 %
CLOSE_BAR_S = 2.0  # beside the saving
MOVE_INTERVAL_MS = 16  # a mouse tells of its moves about so often
STALL_INTERVAL_MS = 5
WARM_UP_SHARE = 0.25  # of the steps with the view dragged, before memory counts
SAMPLES = 40  # of memory
MB = 1 << 20


def settings_for(resolution: int) -> Settings:
    """A steady run: nothing that makes some steps dearer than others."""
    return Settings().updated(
        {
            "resolution": resolution,
            "densify_start": 1_000_000,
            "opacity_reset_interval": 0,
            "evaluation_interval": 0,
            "checkpoint_interval": 0,
            "sh_interval": 100_000,
        }
    )


class Alone:
    """An engine without a window; nobody looks at its events but at the end of a turn."""

    def __init__(self, scene: Path, settings: Settings, folder: Path) -> None:
        self._engine = Engine()
        self._woken = threading.Event()
        self._engine.set_wake(self._woken.set)
        self._engine.start()
        self._engine.post(OpenScene(scene, settings, start=False, run_folder=folder))
        self._reach(State.READY)

    def seconds(self, steps: int) -> float:
        """Do so many steps; how long they took."""
        start = time.perf_counter()
        self._engine.post(StepN(steps))
        self._reach(State.PAUSED)
        return time.perf_counter() - start

    def close(self) -> None:
        """End the engine."""
        self._engine.post(Shutdown(save=False))
        self._engine.join(60)

    def _reach(self, state: State) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()
            for event in self._engine.take_events():
                if isinstance(event, StateChanged) and event.new is state:
                    return


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


def with_window(journey: Journey, steps: int) -> float:
    """Let the engine behind the window do so many steps; how long they took."""
    loop = QEventLoop()

    def look(state: State) -> None:
        if state is State.PAUSED:
            loop.quit()

    journey.session.state_changed.connect(look)
    start = time.perf_counter()
    journey.session.post(StepN(steps))
    loop.exec()
    seconds = time.perf_counter() - start
    journey.session.state_changed.disconnect(look)
    return seconds


def enter(journey: Journey, mouse: Mouse, condition: str) -> None:
    """Bring the window into a condition and let it settle."""
    mouse.timer.stop()
    if condition == "hidden":
        journey.window.hide()
    elif condition == "minimised":
        journey.window.showMinimized()
    else:
        journey.window.showNormal()
        journey.until(lambda: journey.view.view is not None, "a view is asked for")
    if condition in ("hidden", "minimised"):
        journey.until(lambda: journey.view.view is None, "no view is asked for")
    if condition == "dragged":
        mouse.timer.start()


def speeds(
    alone: Alone,
    journey: Journey,
    mouse: Mouse,
    conditions: Sequence[str],
    rounds: int,
    steps: int,
) -> dict[str, dict[str, float]]:
    """Steps/s of every condition and its ratio to the engine alone, over the same steps."""
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in conditions}
    for turn in range(rounds * len(conditions)):
        condition = conditions[turn % len(conditions)]

        def beside(condition: str = condition) -> float:
            enter(journey, mouse, condition)
            seconds = with_window(journey, steps)
            mouse.timer.stop()
            return seconds

        if turn // len(conditions) % 2:
            window = beside()
            pairs[condition].append((alone.seconds(steps), window))
        else:
            pairs[condition].append((alone.seconds(steps), beside()))
    results = {}
    for condition, times in pairs.items():
        ratios = sorted(before / beside for before, beside in times)
        results[condition] = {
            "alone": statistics.median(steps / before for before, _ in times),
            "with_window": statistics.median(steps / beside for _, beside in times),
            "ratio": statistics.median(ratios),
            "lowest": ratios[0],
            "highest": ratios[-1],
        }
    return results


def dragged(journey: Journey, mouse: Mouse, steps: int) -> dict[str, float]:
    """Drag the view for so many steps; memory, latency and stalls."""
    enter(journey, mouse, "dragged")
    first = journey.step
    memory = Memory(journey, max(1, steps // SAMPLES))
    latency, stalls = Latency(journey), Stalls(journey.window)
    seconds = with_window(journey, steps)
    mouse.timer.stop()
    stalls.timer.stop()
    latency.end()
    warm = first + int(WARM_UP_SHARE * steps)
    later = [size for step, size in zip(memory.steps, memory.bytes, strict=True) if step >= warm]
    return {
        "steps": steps,
        "steps_per_second": steps / seconds,
        "memory_mb_per_1000_steps": memory.slope(warm),
        "memory_mb": later[-1] / MB if later else float("nan"),
        "memory_range_mb": (max(later) - min(later)) / MB if later else float("nan"),
        "views": len(latency.milliseconds),
        "latency_median_ms": percentile(latency.milliseconds, 50),
        "latency_95_ms": percentile(latency.milliseconds, 95),
        "stall_99_ms": percentile(stalls.milliseconds, 99),
        "stall_longest_ms": percentile(stalls.milliseconds, 100),
    }


def percentile(values: list[float], share: float) -> float:
    """NaN of nothing."""
    return float(np.percentile(values, share)) if values else float("nan")


def closing(journey: Journey) -> dict[str, float]:
    """Close the window while it trains; the time beside the saving, and the saving."""
    enter(journey, Mouse(journey), "idle")
    journey.session.post(StepN(1_000_000))
    journey.train_on()
    start = time.perf_counter()
    journey.close()
    saving = sum(event.seconds for event in journey.all(Saved)[-1:])
    return {"close_s": time.perf_counter() - start - saving, "saving_s": saving}


def print_speeds(results: dict[str, dict[str, float]]) -> None:
    """A table, a line a condition."""
    print(f"{'window':12}{'alone':>12}{'with it':>12}{'ratio':>8}   lowest to highest")
    for condition, row in results.items():
        print(
            f"{condition:12}{row['alone']:8.2f} st/s{row['with_window']:8.2f} st/s"
            f"{row['ratio']:8.3f}   {row['lowest']:.3f} to {row['highest']:.3f}"
        )


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Everything, in the order of the module's first lines."""
    application = QApplication(["splatscope"])
    scene, settings = scene_path(arguments.scene), settings_for(arguments.resolution)
    alone = Alone(scene, settings, folder / "alone")
    journey = make_journey(application, arguments.viewport)
    journey.window.settings_panel.set_start_values(settings, "classic", Settings())
    journey.window.commands.start_when_open = False
    journey.window.commands.open_scene(scene)
    journey.reach(State.READY)
    steps = max(5, round(arguments.seconds * 20 / alone.seconds(20)))
    with_window(journey, 20)
    mouse = Mouse(journey)
    results: dict[str, object] = {"viewport": arguments.viewport, "steps_a_turn": steps}
    print(f"{arguments.viewport} view, {arguments.rounds} rounds of {steps} steps a turn\n")
    table = speeds(alone, journey, mouse, arguments.conditions, arguments.rounds, steps)
    print_speeds(table)
    alone.close()
    if "idle" in table:
        verdict = "reached" if table["idle"]["ratio"] >= IDLE_BAR else "missed"
        print(f"idle: bar of {IDLE_BAR} {verdict}\n")
    drag = dragged(journey, mouse, arguments.steps) if arguments.steps else {}
    for name, value in drag.items():
        print(f"{name.replace('_', ' '):28}{value:12.2f}")
    end = closing(journey)
    verdict = "reached" if end["close_s"] < CLOSE_BAR_S else "missed"
    print(f"\nclosed in {end['close_s']:.2f} s beside {end['saving_s']:.2f} s of saving: {verdict}")
    return results | {"speed": table, "dragged": drag, "closing": end}


def main() -> None:
    """Measure on a private screen, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--viewport", choices=("painted", "gl"), default="painted")
    parser.add_argument("--scene", default="demo")
    parser.add_argument("--resolution", type=int, default=0)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8, help="of one turn, about")
    parser.add_argument("--steps", type=int, default=2000, help="with the view dragged; 0: none")
    parser.add_argument("--here", action="store_true", help="use the present display")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if not arguments.here:
            display = PrivateDisplay()
            stack.callback(display.close)
            os.environ.pop("WAYLAND_DISPLAY", None)
            os.environ |= display.environment()
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="splatscope-window-"))
        os.environ |= {"XDG_DATA_HOME": name, "SPLATSCOPE_CONFIG_DIR": f"{name}/config"}
        results = measure(arguments, Path(name))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
