"""The benchmark of a CPU step: it runs, counts what it says, and leaves the code as it was."""

import json
import math
from pathlib import Path

import pytest

from benchmarks import cpu_step
from benchmarks.machine_peaks import PeakMeter
from cuda_rasterizer import native, resolve_backend

pytestmark = pytest.mark.skipif(
    resolve_backend("auto") == "reference", reason="the CPU kernels are not built"
)


def test_a_quick_run_prints_every_phase_and_writes_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "step.json"
    cpu_step.main(["--quick", "--json", str(file)])
    printed = capsys.readouterr().out
    results = json.loads(file.read_text(encoding="utf-8"))
    assert set(results["phases"]) == {*cpu_step.PARTS, "outside the kernels", "whole"}
    for part, row in results["phases"].items():
        assert part in printed
        assert row["median_ms"] > 0.0
        assert row["ratio"] is None or row["ratio"] == pytest.approx(
            row["median_ms"] / row["floor_ms"]
        )
    assert {"splats", "pixels", "pairs", "ms"} == set(results["splats"][0])
    pairs = [row["pairs"] for row in results["splats"]]
    assert pairs == sorted(pairs)
    assert results["counts"]["pairs"] > results["counts"]["instances"] > 0
    assert results["reference"]["ratio"] > 0.0
    engine = results["engine"]["1"]
    assert engine["kernels"] + engine["outside the kernels"] == pytest.approx(engine["whole"])


def test_the_kernels_and_the_threads_are_as_before_a_run() -> None:
    plain, threads = native.call, native.thread_count()
    cpu_step.main(["--quick"])
    assert native.call is plain
    assert native.thread_count() == threads


def test_a_kernel_clock_gives_the_kernels_back_when_a_step_fails() -> None:
    plain = native.call

    def fail() -> None:
        assert native.call is not plain
        raise ValueError("a step that fails")

    with pytest.raises(ValueError, match="a step that fails"), cpu_step.KernelClock().on():
        fail()
    assert native.call is plain


def test_peaks_are_numbers_of_this_machine() -> None:
    meter = PeakMeter.compiled(copied_bytes=1 << 20)
    if meter is None:
        pytest.skip("there is no C++ compiler to build the loops with")
    meter.window()
    peaks = meter.peaks()
    assert peaks.lanes in {4, 8, 16}
    # Any machine of the last twenty years does a hundredth of this, even shared with others.
    assert peaks.multiply_adds_a_second > 1e7
    assert peaks.bytes_a_second > 1e7
    assert math.isfinite(peaks.second_core)
