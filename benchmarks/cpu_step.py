"""Where the time of a training step on the CPU goes, and how near it is to what the machine can do.

    python -m benchmarks.cpu_step [--quick] [--splats 40000] [--size 640x360] [--json FILE]

Four tables, all of one run: each phase of a step on a fixed scene on one thread and on two, beside
the floor that the scene's work has on this machine (multiply-adds and bytes, both measured between
the phases); the same step as the engine does it, with what is left for torch and Python; forward
and backward against plain torch; and the cost against splats and pixels. Medians of wall time.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_kit.floors import Rates, count_work, work_of_step
from benchmarks.gpu_kit.scenes import TrainingScene, training_scene
from benchmarks.machine_peaks import COPIED_BYTES, PeakMeter, Peaks
from cuda_rasterizer import describe, native, set_threads
from engine.cameras import Camera
from engine.dataset.scene import Photo, Scene, SceneFrame
from engine.settings import Settings
from engine.training.gaussians import Gaussians
from engine.training.trainer import Trainer

CPU = torch.device("cpu")
PART_OF_KERNEL = {
    "project": "projection",
    "bin_count": "binning and sorts",
    "bin_fill": "binning and sorts",
    "blend": "blending",
    "l1_ssim": "loss",
    "blend_backward": "blending backward",
    "project_backward": "projection backward",
    "adam": "Adam",
}
PARTS = tuple(dict.fromkeys(PART_OF_KERNEL.values()))


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    splats: int
    width: int
    height: int
    repeats: int
    compared: tuple[int, int, int]
    growing_splats: tuple[tuple[int, int, int], ...]
    growing_pixels: tuple[tuple[int, int, int], ...]


WHOLE = Sizes(
    splats=40_000,
    width=640,
    height=360,
    repeats=15,
    compared=(20_000, 256, 192),
    growing_splats=tuple((n, 640, 360) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)),
    growing_pixels=(
        (50_000, 366, 274),
        (50_000, 578, 433),
        (50_000, 1156, 866),
        (50_000, 2310, 1732),
    ),
)
QUICK = Sizes(
    splats=300,
    width=48,
    height=32,
    repeats=2,
    compared=(100, 32, 24),
    growing_splats=((100, 48, 32), (200, 48, 32)),
    growing_pixels=((100, 32, 32), (100, 64, 32)),
)


class KernelClock:
    """Wall time of every kernel that was called while it was on, by the part that it belongs to."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Measures the calls within; what was measured before is forgotten."""
        self.seconds.clear()
        plain = native.call

        def timed(kernel: native.KernelName, dtype: torch.dtype, params: ctypes.Structure) -> None:
            start = time.perf_counter()
            plain(kernel, dtype, params)
            self.seconds[PART_OF_KERNEL[kernel]] += time.perf_counter() - start

        native.call = timed
        try:
            yield
        finally:
            native.call = plain


def milliseconds_by_part(
    step: Callable[[], object], repeats: int, between: Callable[[], None]
) -> dict[str, float]:
    """Medians of each part, of the "whole", and of what is "outside the kernels"."""
    clock = KernelClock()
    rows: dict[str, list[float]] = defaultdict(list)
    step()
    for _ in range(repeats):
        between()
        start = time.perf_counter()
        with clock.on():
            step()
        whole = time.perf_counter() - start
        for part, seconds in clock.seconds.items():
            rows[part].append(1e3 * seconds)
        rows["outside the kernels"].append(1e3 * (whole - sum(clock.seconds.values())))
        rows["whole"].append(1e3 * whole)
    return {part: statistics.median(times) for part, times in rows.items()}


def rates_of(peaks: Peaks) -> Rates:
    """One thread's, as the floors take them."""
    return Rates(peaks.bytes_a_second, peaks.multiply_adds_a_second)


def phases(sizes: Sizes, meter: PeakMeter | None) -> dict[str, Any]:
    """The kernels of a step on one thread and on two, beside their floors on one."""
    scene = training_scene(sizes.splats, sizes.width, sizes.height, CPU, "cpu")
    counts = count_work(scene)
    between = meter.window if meter is not None else lambda: None
    by_threads = {}
    for threads in (1, 2):
        set_threads(threads)
        by_threads[threads] = milliseconds_by_part(scene.step, sizes.repeats, between)
    floors: dict[str, float] = {}
    if meter is not None:
        rates = rates_of(meter.peaks())
        floors = {part: w.milliseconds(rates) for part, w in work_of_step(counts).items()}
    print(
        f"{counts.splats:,} splats, {counts.seen:,} seen, {sizes.width}x{sizes.height}: "
        f"{counts.instances:,} (tile, splat) and about {counts.pairs:,} (pixel, splat) pairs"
    )
    print(
        f"{'':24}{'1 thread':>10}{'2 threads':>11}{'gain':>7}{'floor':>9}{'ratio':>7}{'a pair':>10}"
    )
    rows: dict[str, Any] = {}
    for part in (*PARTS, "outside the kernels", "whole"):
        one, two = by_threads[1][part], by_threads[2][part]
        floor = floors.get(part)
        rows[part] = {
            "median_ms": one,
            "median_ms_2_threads": two,
            "gain_of_2_threads": one / two,
            "floor_ms": floor,
            "ratio": None if floor is None else one / floor,
            "ns_a_tile_pair": 1e6 * one / max(1, counts.instances),
            "ns_a_pixel_pair": 1e6 * one / max(1, counts.pairs),
        }
        bound = "" if floor is None else f"{floor:9.2f}{one / floor:7.1f}"
        a_pair = f"{rows[part]['ns_a_tile_pair']:7.0f} ns"
        print(f"{part:24}{one:10.2f}{two:11.2f}{one / two:7.2f}{bound:16}{a_pair:>10}")
    return {"counts": dataclasses.asdict(counts), "phases": rows}


class _OnePhoto:
    """The photo of `training_scene` as bytes."""

    def __init__(self, scene: TrainingScene) -> None:
        self._pixels = (scene.target * 255).to(torch.uint8).numpy()

    def rgb(self, index: int) -> np.ndarray:
        """The one there is."""
        del index
        return self._pixels

    def alpha(self, index: int) -> None:
        """It is opaque."""
        del index


def trainer_of(scene: TrainingScene) -> Trainer:
    """The engine's trainer on the splats and the photo of `scene`, at the full degree of SH."""
    width, height = scene.size
    fx, fy = float(scene.intrinsics[0, 0]), float(scene.intrinsics[1, 1])
    camera = Camera(np.eye(4), fx, fy, width / 2, height / 2, width, height)
    photo = Photo("benchmark", Path("benchmark"), camera, None, False, False)
    empty = np.zeros((0, 3))
    world = Scene(
        *("benchmark", Path("benchmark"), (photo,), empty, empty.astype(np.uint8), SceneFrame()),
        *((), False, None),
    )
    model = Gaussians(
        {
            "means": scene.means,
            "rotations": scene.quaternions,
            "log_scales": scene.log_scales,
            "opacity_logits": scene.logits,
            "sh_dc": scene.sh_dc,
            "sh_rest": scene.sh_rest,
        }
    )
    trainer = Trainer(world, _OnePhoto(scene), Settings(), backend="cpu", model=model)
    trainer.sh_reached = 3
    trainer.step = 1  # statistics for densifying are gathered, and no refine comes near
    return trainer


def engine_step(sizes: Sizes, threads: int) -> dict[str, float]:
    """A step of the engine: kernels, and what is left for torch and Python; then a refine."""
    set_threads(threads)
    trainer = trainer_of(training_scene(sizes.splats, sizes.width, sizes.height, CPU, "cpu"))
    times = milliseconds_by_part(trainer.step_once, sizes.repeats, lambda: None)
    times["kernels"] = times["whole"] - times["outside the kernels"]
    start = time.perf_counter()
    trainer.densify_now()
    trainer.prune_now()
    times["refine"] = 1e3 * (time.perf_counter() - start)
    print(
        f"the engine's step, {threads} thread(s): {times['whole']:.2f} ms, of it kernels "
        f"{times['kernels']:.2f}, torch and Python {times['outside the kernels']:.2f} ms; "
        f"a refine {times['refine']:.1f} ms"
    )
    return times


def against_torch(sizes: Sizes) -> dict[str, float]:
    """Forward and backward on all threads against the reference."""
    times = {}
    for backend in ("reference", "cpu"):
        scene = training_scene(*sizes.compared, CPU, backend)
        repeats = 1 if backend == "reference" else sizes.repeats
        scene.forward_and_backward()
        rows = []
        for _ in range(repeats):
            start = time.perf_counter()
            scene.forward_and_backward()
            rows.append(1e3 * (time.perf_counter() - start))
        times[backend] = statistics.median(rows)
    ratio = times["reference"] / times["cpu"]
    splats, width, height = sizes.compared
    print(
        f"forward, loss and backward of {splats:,} splats at {width}x{height}: plain torch "
        f"{times['reference']:.0f} ms, kernels {times['cpu']:.2f} ms, {ratio:.0f} times faster"
    )
    return {**{f"{name}_ms": value for name, value in times.items()}, "ratio": ratio}


def growing(rows: tuple[tuple[int, int, int], ...], repeats: int) -> list[dict[str, float]]:
    """A whole step of the kernels over a row of sizes."""
    print(f"{'splats':>10}{'pixels':>11}{'pairs':>12}{'ms':>9}{'ns/splat':>10}{'ns/pixel':>10}")
    results = []
    for splats, width, height in rows:
        scene = training_scene(splats, width, height, CPU, "cpu")
        pairs = count_work(scene, sampled_pixels=0).instances
        times = milliseconds_by_part(scene.step, max(2, repeats // 3), lambda: None)
        whole, pixels = times["whole"], width * height
        row = {"splats": splats, "pixels": pixels, "pairs": pairs, "ms": whole}
        results.append(row)
        print(
            f"{splats:10,}{pixels:11,}{pairs:12,}{whole:9.1f}{1e6 * whole / splats:10.0f}"
            f"{1e6 * whole / pixels:10.0f}"
        )
    return results


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--splats", type=int, help="of the fixed scene")
    parser.add_argument("--size", help="of its picture, as 640x360")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args(arguments)
    sizes = QUICK if given.quick else WHOLE
    if given.splats:
        sizes = dataclasses.replace(sizes, splats=given.splats)
    if given.size:
        width, height = (int(part) for part in given.size.split("x"))
        sizes = dataclasses.replace(sizes, width=width, height=height)
    torch.set_num_threads(1)
    threads = native.thread_count()
    meter = PeakMeter.compiled(copied_bytes=(1 << 20) if given.quick else COPIED_BYTES)
    print(f"{describe('cpu')}; torch {torch.__version__}, float32, SH degree 3")
    try:
        results = measured(sizes, meter)
    finally:
        set_threads(threads)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measured(sizes: Sizes, meter: PeakMeter | None) -> dict[str, Any]:
    """Every table, printed as it is made."""
    results: dict[str, Any] = {"backend": describe("cpu"), **phases(sizes, meter)}
    if meter is None:
        print("no floors: there is no C++ compiler (c++) to build the loops that measure peaks")
    else:
        peaks = meter.peaks()
        results["peaks"] = {**dataclasses.asdict(peaks), "second_core": peaks.second_core}
        print(
            f"peaks: {peaks.multiply_adds_a_second / 1e9:.1f} G multiply-adds/s, "
            f"copy {peaks.bytes_a_second / 1e9:.1f} GB/s; two threads "
            f"{peaks.second_core:.2f} and "
            f"{peaks.bytes_a_second_on_two / peaks.bytes_a_second:.2f} times that"
        )
    results["engine"] = {str(threads): engine_step(sizes, threads) for threads in (1, 2)}
    results["reference"] = against_torch(sizes)
    results["splats"] = growing(sizes.growing_splats, sizes.repeats)
    results["pixels"] = growing(sizes.growing_pixels, sizes.repeats)
    return results


if __name__ == "__main__":
    main()
