"""The benchmark of view latency runs, and its comparison is one."""

import json
from pathlib import Path

import pytest

from benchmarks import view_latency
from cuda_rasterizer import Attention, resolve_backend
from tests.cuda_rasterizer.drawing import draw
from tests.cuda_rasterizer.scenes import random_scene

pytestmark = pytest.mark.skipif(
    resolve_backend("auto") == "reference", reason="the CPU kernels are not built"
)


def test_it_tells_of_both_ways_to_serve_a_view(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "latency.json"
    quick = ["--splats", "200", "--size", "64x48", "--seconds", "0.4", "--rounds", "1"]
    view_latency.main([*quick, "--json", str(file)])
    printed = capsys.readouterr().out
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["splats"] == 200
    for kind in ("cut", "whole"):
        row = told["latency"][kind]
        assert row["views"] > 0
        assert 0 < row["median_ms"] <= row["centile_95_ms"] <= row["longest_ms"]
        assert f"\n{kind} " in printed


def test_in_the_turns_without_cuts_nobody_is_called_back() -> None:
    attention, served = Attention(), []
    scene = random_scene(1, 50, 64, 64)
    with view_latency.phases_whole():
        attention.call()
        with attention.heeded(lambda: served.append("whole")):
            draw(scene)
    with attention.heeded(lambda: served.append("cut")):
        draw(scene)
    assert served == ["cut"]
