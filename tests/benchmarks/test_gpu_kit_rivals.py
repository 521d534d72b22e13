"""The device kit's programs beside ours: a step of gsplat, and compute-sanitizer."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu_kit import rivals, sanitizer
from benchmarks.gpu_kit.clocks import WallClock
from benchmarks.gpu_kit.report import Report
from benchmarks.gpu_kit.scenes import training_scene
from cuda_rasterizer import rasterize

CPU = torch.device("cpu")


def test_without_gsplat_there_is_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: None)
    assert gpu.gsplat_step(Report(None, 100.0), CPU) == "not installed"
    assert "nothing to compare with" in capsys.readouterr().out


def test_a_gsplat_that_breaks_off_ends_nothing(monkeypatch):
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(gpu.child, "run", lambda command, limit_s: (None, "not done in 9 s"))
    report = Report(None, 100.0)
    assert gpu.gsplat_step(report, CPU) == "no result: not done in 9 s"
    assert not report.failures


def test_the_step_of_gsplat_is_measured_on_the_same_splats(monkeypatch):
    calls: list[dict[str, Any]] = []

    def rasterization(means, quats, scales, opacities, colors, view, camera, width, height, **more):
        calls.append(more)
        rendering = rasterize(
            *(means, quats, scales, opacities),
            world_to_camera=view[0],
            intrinsics=camera[0],
            width=width,
            height=height,
            sh=colors,
            backend="reference",
        )
        return rendering.color[None], rendering.alpha[None, ..., None], {}

    fake = types.ModuleType("gsplat")
    fake.rasterization, fake.__version__ = rasterization, "9.9"
    fake.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "gsplat", fake)
    scene = training_scene(40, 24, 16, CPU, "reference")
    before = scene.means.detach().clone()
    found = rivals.gsplat_step_ms(scene, WallClock(), 1)
    assert found["version"] == "9.9"
    assert found["ms"] > 0
    assert calls[0]["sh_degree"] == 3
    assert not torch.equal(scene.means, before)


UNCACHED = "$PYTORCH_NO_CUDA_MEMORY_CACHING"


def stand_in(folder: Path, code: int, seconds: float = 0.0) -> str:
    program = folder / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\nsleep {seconds}\necho looked with $2 {UNCACHED}\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(("code", "content"), [(0, True), (9, False), (1, None)])
def test_the_sanitizer_s_verdict_is_its_exit_code(tmp_path, code, content):
    program = stand_in(tmp_path, code)
    assert sanitizer.check_small_scene(program, "racecheck", 10.0) == (
        content,
        "looked with racecheck 1",  # and each tensor is an allocation of its own
    )


def test_a_sanitizer_without_time_is_no_failure(tmp_path):
    content, text = sanitizer.check_small_scene(stand_in(tmp_path, 0, 5.0), "memcheck", 0.2)
    assert content is None
    assert "not done in" in text


def test_the_sanitizer_is_found_in_a_toolkit(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program = stand_in(tmp_path / "bin", 0)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert sanitizer.find_sanitizer() == program


def test_a_sanitizer_that_finds_something_fails_the_run(monkeypatch):
    monkeypatch.setattr(gpu.sanitizer, "find_sanitizer", lambda: "program")
    monkeypatch.setattr(
        gpu.sanitizer,
        "check_small_scene",
        lambda program, tool, limit_s: (tool != "racecheck", "a race in blend"),
    )
    report = Report(None, 100.0)
    found = gpu.sanitized(report, CPU)
    assert found == {"memcheck": "ok", "racecheck": "found something", "synccheck": "ok"}
    assert report.failures == ["racecheck found something"]
