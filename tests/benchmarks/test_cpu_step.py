"""The benchmark of a CPU step: it runs, counts what it says, and leaves the code as it was."""

import functools
import json
import math
import time
from pathlib import Path

import pytest

from benchmarks import cpu_step
from benchmarks.machine_peaks import PeakMeter
from benchmarks.step_lines import (
    ENGINE_CALLS,
    ENGINE_LINES,
    PARTS,
    REST,
    Lines,
    Way,
    median_steps,
    peak_bytes,
    resident_bytes,
)
from cuda_rasterizer import native, resolve_backend

pytestmark = pytest.mark.skipif(
    resolve_backend("auto") == "reference", reason="the CPU kernels are not built"
)


def test_a_quick_run_prints_every_phase_and_writes_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "step.json"
    cpu_step.main(["--quick", "--scaling", "--json", str(file)])
    printed = capsys.readouterr().out
    results = json.loads(file.read_text(encoding="utf-8"))
    assert set(results["phases"]) == {*PARTS, *ENGINE_LINES, REST, "whole", "refine"}
    for part, row in results["phases"].items():
        assert part in printed
        assert row["median_ms"] > 0.0
        assert row["ratio"] is None or row["ratio"] == pytest.approx(
            row["median_ms"] / row["floor_ms"]
        )
    whole = results["phases"]["whole"]
    if "peaks" in results:
        bare = results["peaks"]["second_core"]
        assert whole["share_of_bare_gain"] == pytest.approx(whole["gain_of_2_threads"] / bare)
        assert f"{whole['share_of_bare_gain']:.2f} of the {bare:.2f} times" in printed
    for growing in (results["splats"], results["pixels"]):
        assert {"splats", "pixels", "pairs", "ms", "bytes_a_splat"} == set(growing[0])
        pairs = [row["pairs"] for row in growing]
        assert pairs == sorted(pairs)
    assert results["counts"]["pairs"] > results["counts"]["instances"] > 0
    assert results["reference"]["ratio"] > 0.0


def test_the_kernels_and_the_threads_are_as_before_a_run() -> None:
    before = native.call, [vars(owner)[name] for owner, name, _ in ENGINE_CALLS]
    threads = native.thread_count()
    cpu_step.main(["--quick"])
    assert (native.call, [vars(owner)[name] for owner, name, _ in ENGINE_CALLS]) == before
    assert native.thread_count() == threads


def test_everything_is_given_back_when_a_step_fails() -> None:
    plain = native.call

    def fail() -> None:
        assert native.call is not plain
        raise ValueError("a step that fails")

    lines = Lines(time.perf_counter)
    with pytest.raises(ValueError, match="a step that fails"), lines.step(ENGINE_CALLS):
        fail()
    assert native.call is plain


def test_time_belongs_to_the_innermost_line_and_the_lines_add_up() -> None:
    ticks = iter(range(100))
    lines = Lines(lambda: float(next(ticks)))
    with lines.step():  # enters at 0
        with lines.line("outer"), lines.line("inner"):  # 1 and 2, the inner one to 3
            pass
        with lines.line("inner"):  # 4: outer ends, 5 to 6
            pass
    # The clock is read once where a line begins and once where it ends.
    assert lines.seconds == {REST: 3.0, "outer": 2.0, "inner": 2.0}
    assert sum(lines.seconds.values()) == 7.0


def test_ways_of_timing_take_turns() -> None:
    ran: list[str] = []
    ways = [
        Way(time.perf_counter, functools.partial(ran.append, "one")),
        Way(time.perf_counter, functools.partial(ran.append, "two")),
    ]
    between = functools.partial(ran.append, "between")
    medians = median_steps(
        *(functools.partial(ran.append, "step"), 2, ways), steps_a_turn=2, between=between
    )
    assert ran == ["step", *["between", *["one", "step", "step"], *["two", "step", "step"]] * 2]
    assert [set(times) for times in medians] == [{REST, "whole"}] * 2


def test_the_peak_of_memory_is_that_of_the_action() -> None:
    before = resident_bytes()
    peak = peak_bytes(lambda: bytearray(64 << 20))
    if before is None or peak is None:
        pytest.skip("this system does not tell how much memory a process takes")
    assert 60 << 20 < peak - before < 200 << 20  # pages of the interpreter come and go


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
