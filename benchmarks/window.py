"""What the window costs: training speed with and without it, memory, and how fast it answers.

    python -m benchmarks.window [--viewport gl] [--scene demo] [--rounds 3] [--json FILE]
    python -m benchmarks.window --conditions idle --rounds 30 --seconds 4 --steps 0

One engine trains, in turns of the same number of steps with its window and without: then nobody
asks it for views, nobody takes its events and the window's thread sleeps. So both have the same
memory and the same splats, and a ratio compares the same work in the same seconds of the machine;
the order swaps from turn to turn. (Two engines side by side, one of them behind a window, differed
by up to 5 % from run to run, whatever the window did.) Then the view is
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch  # noqa: F401  before Qt: torch's runtimes must be found first
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

from benchmarks.window_probes import MB, Latency, Memory, Mouse, Stalls, percentile
from engine.engine_thread import Engine
from engine.messages import CommandRefused, Event, Saved, State, StateChanged, StepN, View
from engine.scene_names import scene_path
from engine.settings import Settings
from tests.gui.journey import Journey, make_journey, turn_event_loop
from tests.gui.private_display import PrivateDisplay

CONDITIONS = ("idle", "hidden", "minimised", "dragged")
IDLE_BAR = 0.97  # the window open and idle slows training by at most 3 %
CLOSE_BAR_S = 2.0  # beside the saving
REST_MS = 600  # by then the window has shown what it was told, and a picture
WARM_UP_SHARE = 0.25  # of the steps with the view dragged, before memory counts
SAMPLES = 40  # of memory


def settings_for(resolution: int) -> Settings:
    """A steady run: nothing that makes some steps dearer than others."""
    return Settings().updated(
        {
            "resolution": resolution,
            "iterations": 1_000_000,
            "densify_start": 1_000_000,
            "opacity_reset_interval": 0,
            "evaluation_interval": 0,
            "checkpoint_interval": 0,
            "sh_interval": 100_000,
        }
    )


class CurtainedEngine(Engine):
    """An engine that can be cut off from its window for a while; nothing that it tells is lost."""

    def __init__(self) -> None:
        super().__init__()
        self._wake: Callable[[], None] | None = None
        self._view: View | None = None
        self._kept: list[Event] = []  # told while the window slept

    def set_wake(self, wake: Callable[[], None] | None) -> None:
        """See `EngineHandle`."""
        self._wake = wake
        super().set_wake(wake)

    def request_view(self, view: View | None) -> None:
        """See `EngineHandle`."""
        self._view = view
        super().request_view(view)

    def take_events(self) -> list[Event]:
        """See `EngineHandle`."""
        kept, self._kept = self._kept, []
        return kept + super().take_events()

    def alone(self, steps: int) -> float:
        """Do so many steps while the calling thread, the window's own, sleeps; the seconds."""
        done = threading.Event()
        super().request_view(None)
        super().set_wake(done.set)
        start = time.perf_counter()
        self.post(StepN(steps))
        told: list[Event] = []
        while not any(isinstance(e, StateChanged) and e.new is State.PAUSED for e in told):
            done.wait()
            done.clear()
            told += super().take_events()
            if refused := [event.reason for event in told if isinstance(event, CommandRefused)]:
                raise RuntimeError(f"{steps} more steps were refused: {refused[0]}")
        seconds = time.perf_counter() - start
        self._kept += told
        super().request_view(self._view)
        super().set_wake(self._wake)
        if self._wake is not None:
            self._wake()
        return seconds


class Turn(NamedTuple):
    """So many steps with the window: seconds, and those that its own thread worked."""

    seconds: float
    own: float


def with_window(journey: Journey, steps: int) -> Turn:
    """Let the engine behind the window do so many steps."""
    loop = QEventLoop()

    def look(state: State) -> None:
        if state is State.PAUSED:
            loop.quit()

    journey.session.state_changed.connect(look)
    start, own = time.perf_counter(), time.thread_time()
    journey.session.post(StepN(steps))
    loop.exec()
    turn = Turn(time.perf_counter() - start, time.thread_time() - own)
    journey.session.state_changed.disconnect(look)
    return turn


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
    journey: Journey,
    engine: CurtainedEngine,
    mouse: Mouse,
    conditions: Sequence[str],
    rounds: int,
    steps: int,
) -> dict[str, dict[str, float]]:
    """Steps/s of every condition and its ratio to the engine alone, over as many steps."""
    pairs: dict[str, list[tuple[float, Turn]]] = {name: [] for name in conditions}
    for number in range(rounds * len(conditions)):
        condition = conditions[number % len(conditions)]

        def beside(condition: str = condition) -> Turn:
            enter(journey, mouse, condition)
            turn_event_loop(REST_MS)  # so that no turn begins with what the other one left
            turn = with_window(journey, steps)
            mouse.timer.stop()
            return turn

        if number // len(conditions) % 2:
            window = beside()
            pairs[condition].append((engine.alone(steps), window))
        else:
            pairs[condition].append((engine.alone(steps), beside()))
    return {condition: summary(turns, steps) for condition, turns in pairs.items()}


def summary(turns: list[tuple[float, Turn]], steps: int) -> dict[str, float]:
    """Medians over the turns, and where the ratio's lies with 95 % certainty."""
    ratios = sorted(alone / beside.seconds for alone, beside in turns)
    low, high = median_ranks(len(ratios))
    return {
        "alone": statistics.median(steps / alone for alone, _ in turns),
        "with_window": statistics.median(steps / beside.seconds for _, beside in turns),
        "ratio": statistics.median(ratios),
        "at_least": ratios[low],
        "at_most": ratios[high],
        "own_thread": statistics.median(beside.own / beside.seconds for _, beside in turns),
    }


def median_ranks(count: int) -> tuple[int, int]:
    """Between which of so many sorted values the median of all lies with 95 % certainty.

    Each value is as likely above the median as below, so their number below is binomial. With less
    than six values no two of them are certain enough: the lowest and the highest.
    """
    tail, low = 0.0, 0
    for rank in range(count // 2):
        tail += math.comb(count, rank) / 2**count
        if tail > 0.025:
            break
        low = rank
    return low, count - 1 - low


def dragged(journey: Journey, mouse: Mouse, steps: int) -> dict[str, float]:
    """Drag the view for so many steps; memory, latency and stalls."""
    enter(journey, mouse, "dragged")
    turn_event_loop(REST_MS)  # the end of the last turn is news until then
    first = journey.step
    memory = Memory(journey, max(1, steps // SAMPLES))
    latency, stalls = Latency(journey), Stalls(journey.window)
    seconds = with_window(journey, steps).seconds
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
    print(f"{'window':12}{'alone':>12}{'with it':>12}{'ratio':>8}   {'95 %':16}its thread")
    for condition, row in results.items():
        print(
            f"{condition:12}{row['alone']:8.2f} st/s{row['with_window']:8.2f} st/s"
            f"{row['ratio']:8.3f}   {row['at_least']:.3f} to {row['at_most']:.3f}"
            f"{row['own_thread']:10.1%}"
        )


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """Everything, in the order of the module's first lines."""
    application = QApplication(["splatscope"])
    scene, settings = scene_path(arguments.scene), settings_for(arguments.resolution)
    engine = CurtainedEngine()
    journey = make_journey(application, arguments.viewport, engine)
    journey.window.settings_panel.set_start_values(settings, "classic", Settings())
    journey.window.commands.start_when_open = False
    journey.window.commands.open_scene(scene)
    journey.reach(State.READY)
    with_window(journey, 20)
    steps = max(5, round(arguments.seconds * 20 / engine.alone(20)))
    mouse = Mouse(journey)
    results: dict[str, object] = {"viewport": arguments.viewport, "steps_a_turn": steps}
    print(f"{arguments.viewport} view, {arguments.rounds} rounds of {steps} steps a turn\n")
    table = speeds(journey, engine, mouse, arguments.conditions, arguments.rounds, steps)
    print_speeds(table)
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
        results = measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
