"""Which recipe a run follows for which no preset is named, and how that is told."""

from pathlib import Path

import pytest

from engine import cli, usual_preset
from engine.presets import CLASSIC, CPU_FAST, load_preset, nearest_preset, preset_names
from engine.run.run_folder import RunFolder
from engine.settings import Settings, setting_info
from tests.engine.cli.commands import Capture

THREE = ["--iterations", "3", "--threads", "1", "--backend", "cpu"]
GIVEN = {"iterations": 3, "threads": 1, "backend": "cpu"}


def test_a_run_on_a_cpu_takes_the_preset_for_it_and_says_so(
    scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert cli.main(["train", str(scene), "--output", str(tmp_path / "r"), *THREE]) == 0
    assert "Preset cpu-fast: No GPU does the work" in capsys.readouterr().err
    settings, _ = RunFolder(tmp_path / "r").read_facts()
    assert settings.differences() == {**load_preset(CPU_FAST).differences(), **GIVEN}


def test_the_published_recipe_is_had_by_its_name(
    scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["train", str(scene), "--output", str(tmp_path / "r"), *THREE]
    assert cli.main([*arguments, "--preset", "classic"]) == 0
    assert "Preset" not in capsys.readouterr().err
    settings, _ = RunFolder(tmp_path / "r").read_facts()
    assert settings.differences() == GIVEN
    assert (
        cli.main(["train", "--output", str(tmp_path / "r"), "--resume", "--iterations", "4"]) == 0
    )
    settings, _ = RunFolder(tmp_path / "r").read_facts()
    assert settings.differences() == {**GIVEN, "iterations": 4}  # a resumed run keeps its own


def test_a_gpu_gets_the_published_recipe_unless_the_cpu_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usual_preset, "resolve_backend", lambda name: "cuda")
    assert usual_preset.usual_preset().name == CLASSIC
    assert usual_preset.usual_preset("cpu").name == CPU_FAST
    monkeypatch.setattr(usual_preset, "resolve_backend", lambda name: "reference")
    assert usual_preset.usual_preset().name == CPU_FAST


def test_every_built_in_preset_is_nearest_to_itself() -> None:
    for name in preset_names():
        assert nearest_preset(load_preset(name)) == name
    assert nearest_preset(Settings().changed("opacity_lr", 0.05)) == CLASSIC


def test_the_preset_for_a_cpu_changes_nothing_but_how_steps_are_done() -> None:
    changed = load_preset(CPU_FAST).differences()
    assert changed
    assert {setting_info(name).group for name in changed} == {"faster_steps"}
