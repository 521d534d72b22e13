"""Where the time of a training step on the CPU goes, and how near it is to what the machine can do.

    python -m benchmarks.cpu_step [--scaling] [--splats 40000] [--size 640x360] [--json FILE]

All of one run, medians: the engine's step on a fixed scene line by line, what torch and Python take
included, on one thread (its own processor time, which others on the machine hardly change) and on
two (wall time, taking turns with one), beside the floor that the scene's work has on this machine
(multiply-adds and bytes, both measured between the steps) and beside what a second thread gains on
bare multiply-adds; a refine; forward and backward against plain torch; and with --scaling the cost
against splats and pixels, which takes minutes.
"""

import argparse
import dataclasses
import functools
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_kit.floors import PARAMETERS, Rates, Work, count_work, work_of_step
from benchmarks.gpu_kit.scenes import TrainingScene, training_scene
from benchmarks.machine_peaks import COPIED_BYTES, PeakMeter, Peaks
from benchmarks.step_lines import (
    ENGINE_CALLS,
    ENGINE_LINES,
    PARTS,
    REST,
    Way,
    median_step,
    median_steps,
    peak_bytes,
    resident_bytes,
)
from cuda_rasterizer import describe, native, set_threads
from engine.cameras import Camera
from engine.dataset.photo_store import available_bytes
from engine.dataset.scene import Photo, Scene, SceneFrame
from engine.settings import Settings
from engine.training.gaussians import Gaussians
from engine.training.trainer import Trainer

CPU = torch.device("cpu")
NUMBERS_A_SPLAT = 59
# Parameter, gradient and Adam's two moments, float32: what a splat takes for good while it learns.
KEPT_BYTES_A_SPLAT = 4 * 4 * NUMBERS_A_SPLAT
# With what a step makes in passing, measured from 300,000 splats on and rounded up.
EXPECTED_BYTES_A_SPLAT = 1500
# Of a number of the picture: seven blurs of eleven taps, across and down, and what lies between.
LOSS_FMAS = 14 * 11 + 30
# Of what a second thread gains on bare multiply-adds, so much is to be gained on a step.
LEAST_SHARE = 0.9
# A turn begins with steps that are not measured: threads are made, and memory for what they fill.
WARM_UP_STEPS, STEPS_A_TURN = 2, 3


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much is measured: splats, width and height of each scene."""

    scene: tuple[int, int, int]
    repeats: int
    compared: tuple[int, int, int]
    growing_splats: tuple[tuple[int, int, int], ...]
    growing_pixels: tuple[tuple[int, int, int], ...]


WHOLE = Sizes(
    scene=(40_000, 640, 360),
    repeats=11,
    compared=(20_000, 256, 192),
    growing_splats=(
        *((n, 640, 360) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)),
        (1_000_000, 1156, 866),
    ),
    growing_pixels=(
        (50_000, 366, 274),
        (50_000, 578, 433),
        (50_000, 1156, 866),
        (50_000, 2310, 1732),
    ),
)
QUICK = Sizes(
    scene=(300, 48, 32),
    repeats=2,
    compared=(100, 32, 24),
    growing_splats=((100, 48, 32), (200, 48, 32)),
    growing_pixels=((100, 32, 32), (100, 64, 32)),
)


def rates_of(peaks: Peaks) -> Rates:
    """One thread's, as the floors take them."""
    return Rates(peaks.bytes_a_second, peaks.multiply_adds_a_second)


def work_of(counts: Any) -> dict[str, Work]:
    """As on a GPU; and a loss whose blurs, unlike there, are no small matter beside its bytes."""
    work = work_of_step(counts)
    numbers = 3 * counts.pixels
    return {**work, "loss": dataclasses.replace(work["loss"], fmas=float(LOSS_FMAS * numbers))}


def phases(sizes: Sizes, meter: PeakMeter | None) -> dict[str, Any]:
    """A step of the engine on one thread and on two, its kernels beside their floors on one."""
    splats, width, height = sizes.scene
    scene = training_scene(splats, width, height, CPU, "cpu")
    counts = count_work(scene)
    trainer = trainer_of(scene)
    start = {name: tensor.detach().clone() for name, tensor in trainer.model.items()}

    @torch.no_grad()
    def use_threads(count: int) -> None:
        for name, tensor in trainer.model.items():
            tensor.copy_(start[name])  # lest the scene change while it is measured
        set_threads(count)
        for _ in range(WARM_UP_STEPS):
            trainer.step_once()

    one_thread, two_threads = (functools.partial(use_threads, count) for count in (1, 2))
    ways = [Way(time.thread_time, one_thread), Way(time.perf_counter, one_thread)]
    ways.append(Way(time.perf_counter, two_threads))
    alone, wall, both = median_steps(
        *(trainer.step_once, sizes.repeats, ways),
        steps_a_turn=STEPS_A_TURN,
        calls=ENGINE_CALLS,
        between=meter.window if meter is not None else lambda: None,
    )
    rates = None if meter is None else rates_of(meter.peaks())
    bare_gain = None if meter is None else meter.peaks().second_core
    print(
        f"{counts.splats:,} splats, {counts.seen:,} seen, {width}x{height}: "
        f"{counts.instances:,} (tile, splat) and about {counts.pairs:,} (pixel, splat) pairs"
    )
    print(
        f"{'':30}{'1 thread':>10}{'2 threads':>11}{'gain':>6}{'of bare':>9}"
        f"{'floor':>8}{'ratio':>7}  limit{'x bytes':>13}{'tile pair':>11}{'pixel pair':>12}"
    )
    rows: dict[str, Any] = {}
    for part in (*PARTS, *ENGINE_LINES, REST, "whole"):
        work = None if rates is None else work_of(counts).get(part)
        floor = None if rates is None or work is None else work.milliseconds(rates)
        one, gain = alone[part], wall[part] / both[part]
        moved = None if rates is None or work is None else 1e3 * work.bytes / rates.bytes_per_s
        rows[part] = {
            "median_ms": one,
            "wall_ms": wall[part],
            "wall_ms_2_threads": both[part],
            "gain_of_2_threads": gain,
            "share_of_bare_gain": None if bare_gain is None else gain / bare_gain,
            "floor_ms": floor,
            "ratio": None if floor is None else one / floor,
            "bytes_ms": moved,
            "ns_a_tile_pair": 1e6 * one / max(1, counts.instances),
            "ns_a_pixel_pair": 1e6 * one / max(1, counts.pairs),
        }
        share, bound = "" if bare_gain is None else f"{gain / bare_gain:.2f}", ""
        if rates is not None and work is not None and floor is not None and moved is not None:
            limit = work.limited_by(rates)
            bound = f"{floor:8.2f}{one / floor:7.1f}  {limit:10}{one / moved:8.1f}"
        print(
            f"{part:30}{one:10.2f}{both[part]:11.2f}{gain:6.2f}{share:>9}{bound:35}"
            f"{rows[part]['ns_a_tile_pair']:7.0f} ns{rows[part]['ns_a_pixel_pair']:9.2f} ns"
        )
    if bare_gain is not None:
        share = rows["whole"]["share_of_bare_gain"]
        print(
            f"a second thread makes a step {rows['whole']['gain_of_2_threads']:.2f} times as fast, "
            f"{share:.2f} of the {bare_gain:.2f} times that it makes of bare multiply-adds "
            f"(to be at least {LEAST_SHARE})"
        )
    return {"counts": dataclasses.asdict(counts), "phases": rows}


def refine(sizes: Sizes, rates: Rates | None) -> dict[str, Any]:
    """Cloning, splitting and pruning, by the statistics of some steps, on one thread."""
    set_threads(1)
    times = []
    for _ in range(min(3, sizes.repeats)):
        trainer = trainer_of(training_scene(*sizes.scene, CPU, "cpu"))
        for _ in range(3):
            trainer.step_once()
        before = len(trainer.model)
        start = time.thread_time()
        trainer.densify_now()
        trainer.prune_now()
        times.append(1e3 * (time.thread_time() - start))
    grown, median = len(trainer.model), statistics.median(times)
    # Parameters and both moments are read and written anew.
    moved = 3 * PARAMETERS * (before + grown)
    floor = None if rates is None else Work(moved).milliseconds(rates)
    print(
        f"a refine, every hundred steps or so, takes {median:.1f} ms more"
        f" ({before:,} splats become {grown:,})"
        + ("" if floor is None else f": {median / floor:.1f} times its floor, {floor:.1f} ms")
    )
    ratio = None if floor is None else median / floor
    return {"median_ms": median, "floor_ms": floor, "ratio": ratio, "bytes_ms": floor}


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


def against_torch(sizes: Sizes) -> dict[str, float]:
    """Forward and backward on one thread against the reference, in processor time."""
    set_threads(1)
    times = {}
    for backend in ("reference", "cpu"):
        scene = training_scene(*sizes.compared, CPU, backend)
        rows = []
        for _ in range(1 if backend == "reference" else sizes.repeats):
            start = time.thread_time()
            scene.forward_and_backward()
            rows.append(1e3 * (time.thread_time() - start))
        times[backend] = statistics.median(rows)
    ratio = times["reference"] / times["cpu"]
    splats, width, height = sizes.compared
    print(
        f"\nforward, loss and backward of {splats:,} splats at {width}x{height}: plain torch "
        f"{times['reference']:.0f} ms, kernels {times['cpu']:.2f} ms, {ratio:.0f} times faster"
    )
    return {**{f"{name}_ms": value for name, value in times.items()}, "ratio": ratio}


def growing(rows: tuple[tuple[int, int, int], ...], repeats: int) -> list[dict[str, Any]]:
    """A whole step of the kernels over a row of sizes, those that memory has room for."""
    print(
        f"\n{'splats':>10}{'pixels':>11}{'pairs':>12}{'ms':>9}{'us/splat':>10}{'ns/pixel':>10}"
        f"{'ns/pair':>9}{'bytes/splat':>13}"
    )
    results: list[dict[str, Any]] = []
    for splats, width, height in rows:
        free, expected = available_bytes(), splats * EXPECTED_BYTES_A_SPLAT
        if free is not None and expected > free // 2:
            print(f"{splats:10,} splats are left out: they may take {expected >> 20:,} MiB")
            continue
        row = grown(splats, width, height, max(2, repeats // 4))
        results.append(row)
        whole, pixels, pairs, taken = (
            row[key] for key in ("ms", "pixels", "pairs", "bytes_a_splat")
        )
        print(
            f"{splats:10,}{pixels:11,}{pairs:12,}{whole:9.1f}{1e3 * whole / splats:10.2f}"
            f"{1e6 * whole / pixels:10.0f}{1e6 * whole / max(1, pairs):9.0f}"
            f"{'' if taken is None else f'{taken:13,.0f}'}"
        )
    return results


def grown(splats: int, width: int, height: int, repeats: int) -> dict[str, Any]:
    """One row; memory is that of a whole step, picture and photo included."""
    before = resident_bytes()
    scene = training_scene(splats, width, height, CPU, "cpu")
    pairs = count_work(scene, sampled_pixels=0).instances
    peak = peak_bytes(scene.step)
    return {
        "splats": splats,
        "pixels": width * height,
        "pairs": pairs,
        "ms": median_step(scene.step, repeats, time.thread_time)["whole"],
        "bytes_a_splat": None if peak is None or before is None else (peak - before) / splats,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument(
        "--scaling", action="store_true", help="10 k to 1 M splats, 0.1 to 4 MP too"
    )
    parser.add_argument("--splats", type=int, help="of the fixed scene")
    parser.add_argument("--size", help="of its picture, as 640x360")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args(arguments)
    sizes = QUICK if given.quick else WHOLE
    splats, width, height = sizes.scene
    if given.size:
        width, height = (int(part) for part in given.size.split("x"))
    sizes = dataclasses.replace(sizes, scene=(given.splats or splats, width, height))
    torch.set_num_threads(1)
    threads = native.thread_count()
    meter = PeakMeter.compiled(copied_bytes=(1 << 20) if given.quick else COPIED_BYTES)
    print(f"{describe('cpu')}; torch {torch.__version__}, float32, SH degree 3")
    try:
        results = measured(sizes, meter, scaling=given.scaling)
    finally:
        set_threads(threads)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measured(sizes: Sizes, meter: PeakMeter | None, *, scaling: bool) -> dict[str, Any]:
    """Every table, printed as it is made."""
    results: dict[str, Any] = {"backend": describe("cpu"), **phases(sizes, meter)}
    if meter is None:
        print("no floors: there is no C++ compiler (c++) to build the loops that measure peaks")
    else:
        peaks = meter.peaks()
        results["peaks"] = dataclasses.asdict(peaks)
        print(
            f"peaks of one thread: {peaks.multiply_adds_a_second / 1e9:.1f} G multiply-adds/s, "
            f"copy {peaks.bytes_a_second / 1e9:.1f} GB/s; a second thread makes of it "
            f"{peaks.second_core:.2f} and {peaks.second_core_copying:.2f} times as much"
        )
    results["kept_bytes_a_splat"] = KEPT_BYTES_A_SPLAT
    print(f"a splat keeps {KEPT_BYTES_A_SPLAT} bytes: parameter, gradient and two moments")
    rates = None if meter is None else rates_of(meter.peaks())
    results["phases"]["refine"] = refine(sizes, rates)
    results["reference"] = against_torch(sizes)
    if scaling:
        set_threads(1)
        results["splats"] = growing(sizes.growing_splats, sizes.repeats)
        results["pixels"] = growing(sizes.growing_pixels, sizes.repeats)
    return results


if __name__ == "__main__":
    main()
