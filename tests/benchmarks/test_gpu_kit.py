"""The device kit as far as it goes without a GPU: its parts on the CPU, and what it says here."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu_kit import checks, floors
from benchmarks.gpu_kit.clocks import (
    TimedLauncher,
    WallClock,
    empty_ms,
    median_by_kernel,
    median_ms,
)
from benchmarks.gpu_kit.report import Report
from benchmarks.gpu_kit.scenes import training_scene
from cuda_rasterizer import Rendering, rasterize
from tests.child_process import BUSY_SECONDS
from tests.cuda_rasterizer.scenes import random_scene

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = torch.device("cpu")
REASON = "torch finds no GPU that it can use: no NVIDIA driver"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gpu, "backend_status", lambda: {"reference": None, "cpu": None, "cuda": REASON}
    )


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A GPU as far as `main` looks, and sections to put in the place of the real ones."""
    status = {"reference": None, "cpu": None, "cuda": None}
    monkeypatch.setattr(gpu, "backend_status", lambda: status)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    sections: dict[str, Any] = {}
    monkeypatch.setattr(gpu, "SECTIONS", sections)
    return sections


# --- the run as a whole ---------------------------------------------------------------------------


def test_without_a_gpu_it_says_why_and_measures_nothing(no_gpu, capsys, tmp_path):
    file = tmp_path / "found.json"
    assert gpu.main(["--json", str(file)]) == gpu.EXIT_NO_GPU
    said = capsys.readouterr().out
    assert REASON in said
    assert "Nothing was measured" in said
    assert not file.exists()


def test_every_section_is_on_disk_before_the_next_begins(with_gpu, tmp_path):
    file = tmp_path / "found.json"
    seen: list[list[str]] = []

    def look(report: Report, device: torch.device) -> str:
        seen.append(list(json.loads(file.read_text())) if file.exists() else [])
        return "done"

    with_gpu |= {"first": look, "second": look}
    assert gpu.main(["--json", str(file)]) == 0
    assert seen == [[], ["first", "failures"]]
    assert json.loads(file.read_text()) == {"first": "done", "second": "done", "failures": []}


def test_a_check_that_fails_is_the_exit_code_and_the_rest_goes_on(with_gpu, capsys):
    done: list[str] = []
    with_gpu |= {
        "wrong": lambda report, device: report.fail("blend: a NaN"),
        "next": lambda report, device: done.append("next"),
    }
    assert gpu.main([]) == gpu.EXIT_WRONG
    assert done == ["next"]
    assert "FAILED: blend: a NaN" in capsys.readouterr().out


def test_what_has_no_time_left_is_named(with_gpu, capsys, tmp_path):
    with_gpu |= {"times": lambda report, device: pytest.fail("there was no time for it")}
    file = tmp_path / "found.json"
    assert gpu.main(["--limit", "0", "--json", str(file)]) == 0
    assert "times: left out" in capsys.readouterr().out
    assert json.loads(file.read_text())["times"] == "left out: no time"


BLOCKED = ("jaxtyping", "PIL", "scipy", "safetensors", "PySide6", "psutil", "tqdm", "platformdirs")


def test_torch_and_numpy_and_cuda_bindings_are_all_it_imports():
    program = f"""
        import sys
        for name in {BLOCKED!r}:
            sys.modules[name] = None
        from benchmarks import gpu
        sys.exit(gpu.main(["--limit", "0"]) not in (0, gpu.EXIT_NO_GPU))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUSY_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_cpu_kernels_are_built_where_they_are_missing(monkeypatch):
    commands: list[list[str]] = []

    def build(command: list[str], limit_s: float) -> tuple[int, str]:
        commands.append(command)
        return 0, ""

    def status() -> dict[str, str | None]:
        return {"cpu": None if len(commands) == 2 else "not built"}

    monkeypatch.setattr(gpu, "backend_status", status)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    monkeypatch.setattr(gpu.child, "run", build)
    assert gpu._cpu_kernels(quiet()) == "yes, built now"
    assert [command[1] for command in commands] == ["-S", "--build"]


def test_without_cmake_the_reference_stands_in_for_the_cpu_kernels(monkeypatch):
    monkeypatch.setattr(gpu, "backend_status", lambda: {"cpu": "not built"})
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    assert "the slow reference is the truth" in gpu._cpu_kernels(quiet())


# --- numbers --------------------------------------------------------------------------------------


def quiet() -> Report:
    return Report(None, 100.0)


def test_the_comparison_finds_two_right_backends_alike(monkeypatch):
    monkeypatch.setattr(checks, "SCENES", {"few": {"count": 200, "width": 30, "height": 20}})
    names = ("no splats", "one pixel", "needles")
    monkeypatch.setattr(checks, "HARD_CASES", {name: checks.HARD_CASES[name] for name in names})
    report = quiet()
    rows = gpu.compared(report, CPU, "cpu", "reference", seed=1)
    assert not report.failures
    assert {"few", "few, antialiased", "one pixel", "loss", "Adam", "bytes"} <= {
        row["name"] for row in rows
    }


def brighter(*arguments: Any, backend: str, **words: Any) -> Rendering:
    """A backend that is wrong by a thousandth in its colours."""
    rendering = rasterize(*arguments, backend=backend, **words)
    if backend == "reference":
        return rendering
    fields = dict(vars(rendering), color=rendering.color * 1.001)
    return Rendering(**fields)


def test_the_comparison_finds_a_backend_that_is_wrong(monkeypatch):
    monkeypatch.setattr(checks, "rasterize", brighter)
    scene = random_scene(2, 300, 40, 30, dtype=torch.float32)
    found = checks.difference("scene", scene, CPU, "cpu", "reference")
    assert "of the pixels differ" in found.problems[0]


def test_the_comparison_finds_a_gradient_that_is_wrong(monkeypatch):
    drawn = checks.drawn

    def doubled(scene: Any, device: Any, backend: str, **options: Any) -> checks.Drawn:
        result = drawn(scene, device, backend, **options)
        if backend == "cpu":
            result.tensors["scales"] *= 1.01
        return result

    monkeypatch.setattr(checks, "drawn", doubled)
    scene = random_scene(3, 300, 40, 30, dtype=torch.float32)
    found = checks.difference("scene", scene, CPU, "cpu", "reference")
    assert found.problems == (f"the gradient of scales is off by {0.01:.2g} of its sum",)


# --- times and floors -----------------------------------------------------------------------------


class Silent:
    """A launcher that does nothing."""

    device_type = "cpu"

    def __init__(self) -> None:
        self.launched: list[str] = []

    def launch(self, kernel: str, params: Any, **_: Any) -> None:
        self.launched.append(kernel)


class Ticking(WallClock):
    """Every mark is a second after the last."""

    now = 0.0

    def mark(self) -> float:
        self.now += 1.0
        return self.now


def test_each_kernel_is_measured_by_its_name_and_its_launches_are_added_up():
    silent = Silent()
    timed = TimedLauncher(silent, Ticking())
    params = floors._RateParams()

    def step() -> None:
        for kernel in ("sort_count", "blend", "sort_count"):
            timed.launch(kernel, params, grid=1, block=32)

    assert median_by_kernel(step, timed, 3) == {"blend": 1000.0, "sort_count": 2000.0}
    assert silent.launched.count("blend") == 4  # one warms up


class Device(Ticking):
    """One that has caught up with Python, or has not; launches and holds in their order."""

    def __init__(self, *, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.holds = 0

    def has_passed(self, mark: float) -> bool:
        return self.is_idle

    def hold(self) -> None:
        self.holds += 1


@pytest.mark.parametrize(("is_idle", "holds"), [(True, 3), (False, 1)])
def test_no_kernel_waits_for_python_between_its_marks_whose_own_time_is_taken_off(is_idle, holds):
    clock = Device(is_idle=is_idle)
    assert empty_ms(clock, repeats=4) == 1000.0
    assert clock.holds == 4
    clock.holds = 0
    timed = TimedLauncher(Silent(), clock, overhead_ms=250.0)
    for _ in range(3):
        timed.launch("blend", floors._RateParams(), grid=1, block=32)
    assert clock.holds == holds  # the first launch always: nobody knows what the device does
    assert timed.take() == {"blend": 2250.0}


def test_a_median_leaves_the_warm_up_out():
    clock = Ticking()
    assert median_ms(lambda: None, clock, 5) == 1000.0
    assert clock.now == 10.0


def test_floors_are_the_slower_of_memory_and_arithmetic():
    rates = floors.Rates(bytes_per_s=1e9, fmas_per_s=1e9)
    assert floors.Work(2e6, 1e6).milliseconds(rates) == 2.0
    assert floors.Work(1e6, 2e6).milliseconds(rates) == 2.0
    assert floors.Work(2e6, 1e6).limited_by(rates) == "memory"
    assert floors.Work(1e6, 2e6).limited_by(rates) == "arithmetic"


def test_the_work_of_adam_is_four_reads_and_three_writes_of_59_numbers():
    counts = floors.Counts(splats=1000, seen=0, instances=0, pixels=0, pairs=0)
    assert floors.work_of_step(counts)["Adam"].bytes == 1000 * 59 * 4 * 7


def test_pairs_are_the_splats_that_count_at_a_pixel():
    scene = training_scene(50, 32, 32, CPU, "reference")
    with torch.no_grad():
        scene.means[:, :2] = 0.0
        scene.log_scales.fill_(3.0)  # each covers the whole picture evenly
        scene.logits.fill_(-2.0)  # alpha 0.119: the transmittance ends behind 72 of them
    counts = floors.count_work(scene, sampled_pixels=16)
    assert (counts.splats, counts.seen, counts.pixels) == (50, 50, 1024)
    assert counts.instances == 50 * 4
    assert counts.pairs == 50 * 1024


def test_parts_over_their_bar_say_so():
    rates = floors.Rates(1e9, 1e9)
    work = {"loss": floors.Work(1e6), "blending": floors.Work(1e6)}
    rows = gpu.part_rows({"loss": 2.0, "blending": 2.0, "other": 1.0}, work, rates)
    assert rows[0][3:] == ["2.00x", "over 1.5x, memory"]
    assert rows[1][3:] == ["2.00x", ""]
    assert rows[2][2:] == ["", "", ""]


def test_a_step_of_the_kit_learns():
    scene = training_scene(200, 48, 32, CPU, "cpu")
    scene.step()
    before = {name: leaf.detach().clone() for name, leaf in scene.leaves().items()}
    scene.step()
    for name, leaf in scene.leaves().items():
        assert not torch.equal(leaf, before[name]), name
        assert bool(leaf.isfinite().all()), name


# --- on the emulator, and for NVRTC ---------------------------------------------------------------


@pytest.mark.emulator
def test_every_part_of_a_step_is_measured_beside_its_floor(emulated, capsys):
    scene = training_scene(60, 33, 20, CPU, "cuda")
    rates = floors.Rates(1e9, 1e9)
    found = gpu.timed_scene(quiet(), scene, emulated, rates, repeats=1)
    assert list(found["parts_ms"]) == list(found["floors"])
    assert all(milliseconds > 0 for milliseconds in found["parts_ms"].values())
    assert found["counts"]["splats"] == 60
    assert "whole step" in capsys.readouterr().out
    json.dumps(found)


@pytest.mark.emulator
def test_the_numbers_of_the_kernels_are_compared_and_repeated(emulated, monkeypatch):
    few = {"few": {"count": 60, "width": 33, "height": 20, "sh_degree": 1}}
    monkeypatch.setattr(checks, "SCENES", few)
    monkeypatch.setattr(checks, "HARD_CASES", {})
    report = quiet()
    gpu.compared(report, CPU, "cuda", "cpu", seed=4)
    assert not report.failures
    scene = random_scene(5, 40, 20, 18, dtype=torch.float32, sh_degree=1)
    assert checks.repeats_exactly(scene, CPU, "cuda")


@pytest.mark.emulator
def test_what_the_sanitizer_looks_at_is_one_small_step(emulated):
    assert gpu.small(quiet(), CPU)["sum"] > 0


@pytest.mark.nvrtc
@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_the_kernel_that_measures_the_rate_compiles(target):
    compiler = pytest.importorskip("cuda_rasterizer.cuda.nvrtc").load_compiler()
    assert compiler.compile("multiply_add_rate", floors._RATE_SOURCE, target).image
