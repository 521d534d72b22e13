"""Is the CUDA backend right and how fast is it: one run of under four minutes on the day of a GPU.

    python -m benchmarks.gpu [--json gpu-results.json] [--only SECTION ...] [--limit 230]

Needs torch with CUDA, numpy and cuda-bindings, no network and no window. In order: what is there;
compiling; the kernels' numbers and gradients against the CPU's; this device's own rates; every part
of a training step and the whole, each beside its floor; compute-sanitizer where that is found;
gsplat's step where that is installed. What is found is printed and written section by section.

Exit codes: 0 all is right, 1 a number is wrong, 3 there is no GPU to run on.
"""

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_kit import checks, child, floors, rivals, sanitizer
from benchmarks.gpu_kit.clocks import TimedLauncher, clock_of, empty_ms, median_by_kernel, median_ms
from benchmarks.gpu_kit.report import Report
from benchmarks.gpu_kit.scenes import TrainingScene, training_scene
from cuda_rasterizer import backend_status
from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.driver import load_driver
from cuda_rasterizer.cuda.launcher import CudaLauncher, launcher_of_gpu
from cuda_rasterizer.cuda.launches import use_launcher
from cuda_rasterizer.cuda.nvrtc import load_compiler
from tests.cuda_rasterizer.scenes import random_scene

EXIT_WRONG = 1
EXIT_NO_GPU = 3
LIMIT_S = 230.0
SPLATS = (100_000, 1_000_000, 3_000_000)
PICTURES = ((1152, 896), (2304, 1792))  # 1 and 4 megapixels
RIVAL = (1_000_000, 1920, 1080)
REPEATS = 15
BLEND_BAR, OTHER_BAR, RIVAL_BAR = 3.0, 1.5, 0.7


def main(arguments: list[str] | None = None) -> int:
    """Run the sections that were asked for, or all; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=None, help="where to write what is found")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="leave out the other sections")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds the run may take")
    chosen = parser.parse_args(arguments)
    report = Report(chosen.json, chosen.limit)
    reason = backend_status()["cuda"]
    if reason is not None:
        report.say(f"No GPU can be measured here: {reason}.")
        report.say("Nothing was measured. Run this where `splatscope doctor` finds a GPU.")
        return EXIT_NO_GPU
    device = torch.device("cuda", torch.cuda.current_device())
    for name in chosen.only or [name for name in SECTIONS if name not in FOR_A_CHILD]:
        if report.remaining_s() <= 0:
            report.say(f"\n{name}: left out, the {chosen.limit:.0f} s are over")
            report.keep(name, "left out: no time")
            continue
        report.say(f"\n== {name} ==")
        report.keep(name, SECTIONS[name](report, device))
    if report.failures:
        report.say(f"\n{len(report.failures)} of the checks failed.")
        return EXIT_WRONG
    report.say("\nEverything that was checked is right.")
    return 0


# --- what is there --------------------------------------------------------------------------------


def environment(report: Report, device: torch.device) -> dict[str, Any]:
    """Device, driver and versions; builds the CPU kernels where they are not."""
    properties = torch.cuda.get_device_properties(device)
    facts = {
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "multiprocessors": properties.multi_processor_count,
        "driver": _driver_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "cuda_bindings": _version("cuda-bindings"),
        "date": time.strftime("%Y-%m-%d"),
        "cpu_kernels": _cpu_kernels(report),
    }
    for name, value in facts.items():
        report.say(f"{name:16}{value}")
    return facts


def _driver_version() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return "unknown (no nvidia-smi)"
    query = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    code, text = child.run(query, 20)
    return text.split()[0] if code == 0 and text else "unknown"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cpu_kernels(report: Report) -> str:
    """Whether there are some, or why the reference must stand in for them."""
    if backend_status()["cpu"] is None:
        return "yes"
    program = shutil.which("cmake")
    if program is None:
        return "no, and no cmake to build them: the slow reference is the truth"
    report.say("building the CPU kernels ...")
    folder = child.ROOT / "build" / "native"
    for command in (
        [program, "-S", str(child.ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"],
        [program, "--build", str(folder), "--parallel"],
    ):
        code, text = child.run(command, report.remaining_s() / 2)
        if code != 0:
            report.say(text)
            return "no, building them failed: the slow reference is the truth"
    reason = backend_status()["cpu"]
    return "yes, built now" if reason is None else f"no, though they were built: {reason}"


# --- compiling ------------------------------------------------------------------------------------


def compiling(report: Report, device: torch.device) -> dict[str, Any]:
    """Compile time with an empty cache and with a full one; registers and spills of each kernel."""
    driver, compiler = load_driver(device.index), load_compiler()

    def stream() -> int:
        return int(torch.cuda.current_stream(device).cuda_stream)

    with tempfile.TemporaryDirectory() as folder:
        times = {}
        for name in ("cold", "cached"):
            launcher = CudaLauncher(driver, compiler, stream, Path(folder) / "kernels")
            start = time.perf_counter()
            launcher.prepare()
            times[name] = time.perf_counter() - start
    report.say(f"all kernels: {times['cold']:.2f} s, from the cache {times['cached']:.2f} s")
    kernels = {name: dataclasses.asdict(launcher.attributes(name)) for name in sources.kernels()}
    rows = [
        [name, str(found["registers"]), str(found["spilled_bytes"])]
        for name, found in kernels.items()
    ]
    report.table(("kernel", "registers", "spilled bytes"), rows)
    return {"seconds": times, "kernels": kernels}


# --- numbers --------------------------------------------------------------------------------------


def numbers(report: Report, device: torch.device) -> list[dict[str, Any]]:
    """Everything against the CPU backend on fresh random scenes and on hard ones."""
    truth = "cpu" if backend_status()["cpu"] is None else "reference"
    seed = int(time.time()) % 1_000_000
    report.say(f"seed {seed}, truth: {truth}")
    found = compared(report, device, "cuda", truth, seed)
    scene = random_scene(seed, 3000, 200, 150, dtype=torch.float32, sh_degree=3)
    if not checks.repeats_exactly(scene, device, "cuda"):
        report.fail("the deterministic mode does not repeat its bits")
    return found


def compared(
    report: Report, device: torch.device, fast: str, truth: str, seed: int
) -> list[dict[str, Any]]:
    """Rows of the comparison; those that fail are told to the report."""
    differences = []
    for name, scene in checks.checked_scenes(seed).items():
        if truth == "reference" and len(scene.means) > 5000:
            continue  # plain torch would take minutes
        for options in checks.OPTIONS:
            if truth == "reference" and "absolute_gradient" in options:
                continue
            label = ", ".join([name, *options])
            differences.append(
                dataclasses.replace(
                    checks.difference(name, scene, device, fast, truth, **options), name=label
                )
            )
    differences += checks.other_differences(device, fast, truth)
    rows = []
    for found in differences:
        verdict = "ok" if not found.problems else "; ".join(found.problems)
        apart = (f"{found.pixels_apart:.1e}", f"{found.gradients_apart:.1e}")
        rows.append([found.name, *apart, verdict])
        if found.problems:
            report.fail(f"{found.name}: {verdict}")
    report.table(("scene", "pixels apart", "gradients apart", ""), rows)
    return [dataclasses.asdict(found) for found in differences]


# --- times ----------------------------------------------------------------------------------------


def measured_rates(report: Report, device: torch.device) -> floors.Rates:
    """What this device can do, measured once."""
    clock = clock_of(device)
    rates = floors.Rates(
        floors.measured_bandwidth(device, clock), floors.measured_multiply_adds(device, clock)
    )
    report.say(
        f"memory {rates.bytes_per_s / 1e9:,.0f} GB/s (copy), multiply-adds "
        f"{rates.fmas_per_s / 1e12:.1f} T/s"
    )
    return rates


def times(report: Report, device: torch.device) -> dict[str, Any]:
    """Every part of a step beside its floor, the whole step and its peak memory, at all sizes."""
    rates = measured_rates(report, device)
    found: dict[str, Any] = {"rates": dataclasses.asdict(rates), "scenes": []}
    for width, height in PICTURES:
        for splats in SPLATS:
            if report.remaining_s() <= 20:
                report.say(f"{splats:,} splats at {width}x{height}: left out, no time")
                continue
            scene = training_scene(splats, width, height, device, "cuda")
            launcher = launcher_of_gpu(device.index)
            found["scenes"].append(timed_scene(report, scene, launcher, rates, REPEATS))
            report.keep("times", found)
    return found


def timed_scene(
    report: Report, scene: TrainingScene, launcher: Any, rates: floors.Rates, repeats: int
) -> dict[str, Any]:
    """One table."""
    width, height = scene.size
    device = scene.means.device
    counts = floors.count_work(scene)
    clock = clock_of(device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    whole = median_ms(scene.step, clock, repeats)
    drawing = median_ms(torch.no_grad()(scene.draw), clock, repeats)
    overhead = empty_ms(clock)
    timed = TimedLauncher(launcher, clock, overhead)
    with use_launcher(timed):
        kernels = median_by_kernel(scene.step, timed, max(1, repeats // 3))
    parts = time_of_parts(kernels)
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    report.say(
        f"\n{counts.splats:,} splats, {width}x{height}: {counts.seen:,} seen, "
        f"{counts.instances:,} in tiles, {counts.pairs / counts.pixels:.1f} a pixel"
    )
    rows = part_rows(parts, floors.work_of_step(counts), rates)
    other = whole - sum(parts.values())
    rows.append(["between kernels", f"{other:.3f}", "", "", ""])
    rows.append(["whole step", f"{whole:.3f}", "", "", ""])
    report.table(("part", "ms", "floor", "ratio", ""), rows)
    report.say(f"forward alone {drawing:.3f} ms; peak memory {peak / 2**30:.2f} GiB")
    return {
        "size": [width, height],
        "whole_ms": whole,
        "forward_ms": drawing,
        "parts_ms": parts,
        "kernels_ms": kernels,
        "two_events_ms": overhead,
        "peak_bytes": peak,
        **floors.as_json(counts, rates),
    }


def time_of_parts(kernels: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds of each part of a step from those of the kernels, in the order of the step."""
    parts = dict.fromkeys(floors.PART_OF_MODULE.values(), 0.0)
    for name, milliseconds in kernels.items():
        module = sources.kernels()[name].module
        part = floors.PART_OF_MODULE.get(module, module)
        parts[part] = parts.get(part, 0.0) + milliseconds
    return {part: milliseconds for part, milliseconds in parts.items() if milliseconds > 0}


def part_rows(
    parts: Mapping[str, float], work: Mapping[str, floors.Work], rates: floors.Rates
) -> list[list[str]]:
    """Each part, its floor, their ratio, and whether that is within the bar."""
    rows = []
    for part, milliseconds in parts.items():
        if part not in work:
            rows.append([part, f"{milliseconds:.3f}", "", "", ""])
            continue
        floor = work[part].milliseconds(rates)
        bar = BLEND_BAR if part.startswith("blending") else OTHER_BAR
        ratio = milliseconds / floor
        verdict = "" if ratio <= bar else f"over {bar}x, {work[part].limited_by(rates)}"
        rows.append([part, f"{milliseconds:.3f}", f"{floor:.3f}", f"{ratio:.2f}x", verdict])
    return rows


def gsplat_step(report: Report, device: torch.device) -> str:
    """Ours and gsplat's in a process of its own: it may compile for minutes, or break off."""
    if importlib.util.find_spec("gsplat") is None:
        report.say("gsplat is not installed: nothing to compare with")
        return "not installed"
    command = [sys.executable, "-m", "benchmarks.gpu", "--only", "gsplat_here"]
    code, text = child.run(command, report.remaining_s() - 5)
    report.say(text)
    return text if code == 0 else f"no result: {text}"


def gsplat_here(report: Report, device: torch.device) -> dict[str, Any]:
    """The whole step of both on the same splats and view."""
    splats, width, height = RIVAL
    clock = clock_of(device)
    theirs = rivals.gsplat_step_ms(
        training_scene(splats, width, height, device, "cuda"), clock, REPEATS
    )
    ours = median_ms(training_scene(splats, width, height, device, "cuda").step, clock, REPEATS)
    ratio = ours / theirs["ms"]
    verdict = "reached" if ratio <= RIVAL_BAR else "missed"
    report.say(
        f"{splats:,} splats, {width}x{height}: {ours:.2f} ms, gsplat {theirs['version']} "
        f"{theirs['ms']:.2f} ms: {ratio:.2f}x; the aim of {RIVAL_BAR}x is {verdict}"
    )
    return {"ours_ms": ours, "gsplat": theirs, "ratio": ratio}


# --- accesses and races ---------------------------------------------------------------------------


def sanitized(report: Report, device: torch.device) -> dict[str, Any] | str:
    """compute-sanitizer over the section "small", tool by tool while there is time."""
    program = sanitizer.find_sanitizer()
    if program is None:
        report.say("compute-sanitizer is not found: nothing was checked with it")
        return "compute-sanitizer is not found"
    found = {}
    for tool in sanitizer.TOOLS:
        if report.remaining_s() <= 5:
            found[tool] = "left out: no time"
            continue
        content, text = sanitizer.check_small_scene(program, tool, report.remaining_s() / 2)
        last_words = text.splitlines()[-1] if text else "nothing was said"
        none = f"no verdict: {last_words}"
        verdict = none if content is None else "ok" if content else "found something"
        report.say(f"{tool}: {verdict}")
        found[tool] = verdict
        if content is False:
            report.say(text)
            report.fail(f"{tool} found something")
    return found


def small(report: Report, device: torch.device) -> dict[str, Any]:
    """One step and its picture on a small scene, for a tool that looks on."""
    scene = training_scene(300, 70, 50, device, "cuda")
    scene.step()
    scene.step()
    total = float(sum(leaf.detach().abs().sum() for leaf in scene.leaves().values()))
    report.say(f"sum of all parameters {total:.6g}")
    return {"sum": total}


SECTIONS: dict[str, Callable[[Report, torch.device], Any]] = {
    "environment": environment,
    "compiling": compiling,
    "numbers": numbers,
    "times": times,
    "sanitizer": sanitized,
    "gsplat": gsplat_step,
    "gsplat_here": gsplat_here,
    "small": small,
}
FOR_A_CHILD = ("gsplat_here", "small")


if __name__ == "__main__":
    sys.exit(main())
