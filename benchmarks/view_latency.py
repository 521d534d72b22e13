"""How long a view waits for its picture while a large scene trains, kernels cut and not.

    python -m benchmarks.view_latency [--splats 100000] [--size 1156x866] [--scale 0.25]
        [--seconds 15] [--rounds 2] [--json FILE]

An engine without a window trains a scene made in code, whose photos have `--size`, while a camera
moves: a view every 16 ms, each timed until a frame that answers it has arrived (a frame answers all
views up to its own). Turns in which long kernels stop for a view alternate with turns in which a
view waits for the end of its phase. All pictures have one scale, which the engine would else choose
by what they cost, so that both turns draw the same. The training rate stands beside. The load of
the machine is told first: figures of a busy one are no bars.
"""

import argparse
import contextlib
import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from cuda_rasterizer import Attention
from engine.cameras import Camera
from engine.dataset.scene import Distortion
from engine.engine_thread import Engine
from engine.messages import Event, Frame, OpenScene, SceneOpened, Shutdown, Stepped, View
from engine.settings import Settings
from engine.view_scheduler import ViewScheduler
from tests.engine.dataset.scene_files import make_views, write_colmap

MOVE_SECONDS = 0.016  # a mouse tells of its moves about so often
VIEW_WIDTH = 960
PHOTOS = 3
STEADY = {
    "densify_start": 1_000_000,
    "opacity_reset_interval": 0,
    "evaluation_interval": 0,
    "checkpoint_interval": 0,
}


class Watcher:
    """An engine that trains, and what it told."""

    def __init__(self, scene: Path, folder: Path) -> None:
        self.frames: list[tuple[float, Frame]] = []
        self.steps = 0
        self.camera: Camera | None = None
        self.number = 0
        self._engine = Engine()
        self._woken = threading.Event()
        self._engine.set_wake(self._woken.set)
        self._engine.start()
        self._engine.post(OpenScene(scene, Settings().updated(STEADY), True, folder))
        while self.steps == 0 or self.camera is None:
            self.listen(0.1)

    def listen(self, seconds: float) -> None:
        """Wait so long for news, and take it."""
        self._woken.wait(seconds)
        self._woken.clear()
        for event in self._engine.take_events():
            self._take(event)
        frame = self._engine.take_frame()
        if frame is not None:
            self.frames.append((time.perf_counter(), frame))

    def _take(self, event: Event) -> None:
        if isinstance(event, SceneOpened):
            self.camera = event.photos[0].camera
        elif isinstance(event, Stepped) and len(event.steps):
            self.steps = int(event.steps[-1])

    def ask(self) -> View:
        """Ask for the next view of a camera that swings to and fro."""
        assert self.camera is not None
        self.number += 1
        turn = 0.1 * math.sin(self.number / 20)
        pose = np.eye(4)
        pose[:3, :3] = [
            [math.cos(turn), 0.0, math.sin(turn)],
            [0.0, 1.0, 0.0],
            [-math.sin(turn), 0.0, math.cos(turn)],
        ]
        height = round(VIEW_WIDTH * self.camera.height / self.camera.width)
        camera = self.camera.moved(pose @ self.camera.world_to_camera).resized(VIEW_WIDTH, height)
        view = View(self.number, camera, moving=True)
        self._engine.request_view(view)
        return view

    def close(self) -> None:
        """End the engine."""
        self._engine.post(Shutdown(save=False))
        if not self._engine.join(60):
            raise RuntimeError("the engine did not end within a minute")


def at_scale(scale: float) -> contextlib.AbstractContextManager[object]:
    """Meanwhile every picture of a moving camera is so much smaller than its view."""
    return mock.patch.object(ViewScheduler, "_scale", return_value=scale)


@contextlib.contextmanager
def phases_whole() -> Iterator[None]:
    """Meanwhile no kernel stops for a view."""

    @contextlib.contextmanager
    def nothing(*_: object) -> Iterator[None]:
        yield

    with mock.patch.object(Attention, "heeded", nothing):
        yield


def drag(watcher: Watcher, seconds: float) -> tuple[list[float], float]:
    """Milliseconds of each view that was answered, and steps a second meanwhile."""
    asked: dict[int, float] = {}
    latencies: list[float] = []
    watcher.frames.clear()
    first, start = watcher.steps, time.perf_counter()
    next_move = start
    while (now := time.perf_counter()) < start + seconds:
        if now >= next_move:
            asked[watcher.ask().view_id] = now
            next_move = now + MOVE_SECONDS
        watcher.listen(max(0.0, next_move - time.perf_counter()))
        for arrived, frame in watcher.frames:
            for number in [number for number in asked if number <= frame.view_id]:
                latencies.append(1e3 * (arrived - asked.pop(number)))
        watcher.frames.clear()
    return latencies, (watcher.steps - first) / (time.perf_counter() - start)


def measured(watcher: Watcher, rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Median and 95th centile of the latency, cut and whole, over all rounds."""
    latencies: dict[str, list[float]] = {"cut": [], "whole": []}
    rates: dict[str, list[float]] = {"cut": [], "whole": []}
    for turn in range(rounds):
        for name in ("cut", "whole") if turn % 2 == 0 else ("whole", "cut"):
            with phases_whole() if name == "whole" else contextlib.nullcontext():
                drag(watcher, min(2.0, seconds))  # until costs are known
                found, rate = drag(watcher, seconds)
            latencies[name] += found
            rates[name].append(rate)
    return {
        name: {
            "views": len(found),
            "median_ms": float(np.percentile(found, 50)) if found else math.nan,
            "centile_95_ms": float(np.percentile(found, 95)) if found else math.nan,
            "longest_ms": max(found, default=math.nan),
            "steps_per_second": float(np.median(rates[name])),
        }
        for name, found in latencies.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splats", type=int, default=100_000)
    parser.add_argument("--size", default="1156x866", help="of the photos")
    parser.add_argument("--scale", type=float, default=0.25, help="of pictures to their views")
    parser.add_argument("--seconds", type=float, default=15.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    chosen = parser.parse_args(arguments)
    width, height = (int(part) for part in chosen.size.split("x"))
    lens = Distortion("PINHOLE", (width, width, width / 2, height / 2), width, height)
    with tempfile.TemporaryDirectory(prefix="splatscope-latency-") as name:
        folder = Path(name)
        write_colmap(folder / "scene", make_views(PHOTOS, points=chosen.splats, lens=lens))
        load = os.getloadavg()[0]
        watcher = Watcher(folder / "scene", folder / "run")
        try:
            with at_scale(chosen.scale):
                rows = measured(watcher, chosen.rounds, chosen.seconds)
        finally:
            watcher.close()
    print(
        f"{chosen.splats:,} splats, photos of {chosen.size}, views of {VIEW_WIDTH} pixels at "
        f"{chosen.scale:g}; load before: {load:.1f}"
    )
    print(f"{'kernels':10}{'views':>7}{'median':>11}{'95th':>11}{'longest':>11}{'training':>13}")
    for kind, row in rows.items():
        print(
            f"{kind:10}{row['views']:7.0f}{row['median_ms']:8.0f} ms{row['centile_95_ms']:8.0f} ms"
            f"{row['longest_ms']:8.0f} ms{row['steps_per_second']:8.2f} st/s"
        )
    if chosen.json:
        found = {
            "splats": chosen.splats,
            "size": chosen.size,
            "scale": chosen.scale,
            "load": load,
            "latency": rows,
        }
        chosen.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
