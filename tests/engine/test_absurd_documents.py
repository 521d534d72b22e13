"""Files that no program writes: numbers and nestings beyond all bounds are told in our words."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from app.preferences import load_preferences
from engine.dataset.load import load_scene
from engine.errors import EngineError
from engine.presets import load_preset
from engine.run.checkpoint import load_checkpoint
from engine.run.metrics_log import MetricsLog
from engine.run.run_folder import RunFacts, RunFolder
from engine.run.run_history import read_history
from engine.settings import Settings

# more digits than Python reads, more than a float holds, and deeper than any reader goes
ABSURD = {"digits": "9" * 5_000, "large": "9" * 400, "deep": "[" * 100_000 + "]" * 100_000}
TEXTS = pytest.mark.parametrize("absurd", ABSURD.values(), ids=ABSURD)
PYTHONS_WORDS = ("recursion", "sys.", "int too large", "Exceeds the limit")


def folder_of_a_run(path: Path) -> RunFolder:
    folder = RunFolder(path / "run")
    folder.create()
    folder.write_facts(
        Settings().updated({"iterations": 77}), RunFacts("demo", "demo", "cpu", "CPU", {})
    )
    return folder


def scene_file(path: Path, absurd: str) -> Callable[[], object]:
    frame = '{"file_path": "a.png", "transform_matrix": 0, "fl_x": 1, "w": ' + absurd + "}"
    (path / "transforms.json").write_text('{"frames": [' + frame + "]}")
    return lambda: load_scene(path, Settings())


def preset_file(path: Path, absurd: str) -> Callable[[], object]:
    (path / "mine.toml").write_text(f"opacity_lr = {absurd}")
    return lambda: load_preset(path / "mine.toml")


def run_file(path: Path, absurd: str) -> Callable[[], object]:
    folder = folder_of_a_run(path)
    folder.facts_path.write_text(folder.facts_path.read_text().replace("77", absurd))
    return folder.read_facts


READERS = {
    "transforms.json": scene_file,
    "mine.toml": preset_file,
    "run.toml": run_file,
}


@TEXTS
@pytest.mark.parametrize("name", READERS)
def test_a_file_is_named_and_its_trouble_is_told_briefly(
    tmp_path: Path, name: str, absurd: str
) -> None:
    read = READERS[name](tmp_path, absurd)
    with pytest.raises(EngineError) as refusal:
        read()
    words = str(refusal.value)
    assert name in words
    assert not [word for word in PYTHONS_WORDS if word in words]
    assert len(words) < 500  # a sentence, not the number itself


def test_a_key_of_thousands_of_dots_is_refused_at_once(tmp_path: Path) -> None:
    keys = ".".join("a" * 50_000)  # `tomllib` takes minutes over them
    (tmp_path / "mine.toml").write_text(f"opacity_lr = 0.1\n{keys} = 1\n")
    with pytest.raises(EngineError, match=r"mine\.toml cannot be read: it is nested too deeply"):
        load_preset(tmp_path / "mine.toml")
    folder = folder_of_a_run(tmp_path)
    folder.facts_path.write_text(f"[{keys}]\n")
    with pytest.raises(EngineError, match=r"run\.toml cannot be read: it is nested too deeply"):
        folder.read_facts()


def test_a_date_where_a_number_should_be_is_told_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("seed = 2026-11-30\n")
    with pytest.raises(EngineError, match="seed is 2026-11-30; expected a number"):
        load_preset(tmp_path / "mine.toml")


@pytest.mark.parametrize("absurd", [ABSURD["digits"], ABSURD["deep"]], ids=["digits", "deep"])
def test_a_checkpoints_header_is_told_in_the_same_way(tmp_path: Path, absurd: str) -> None:
    path = tmp_path / "step-000001.safetensors"
    metadata = {"format_version": "1", "facts": '{"step": ' + absurd + "}"}
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(EngineError, match="damaged header") as refusal:
        load_checkpoint(path)
    assert path.name in str(refusal.value)
    assert not [word for word in PYTHONS_WORDS if word in str(refusal.value)]


@TEXTS
def test_such_a_line_of_a_runs_logs_costs_that_line_alone(tmp_path: Path, absurd: str) -> None:
    folder = folder_of_a_run(tmp_path)
    rows = [{"step": step, "seconds": step / 10, "loss": 0.5} for step in (1, 2, 3)]
    lines = [json.dumps(row) for row in rows]
    lines[1] = lines[1].replace("0.5", absurd)
    folder.metrics_path.write_text("\n".join(lines) + "\n")
    folder.journal_path.write_text(lines[1] + "\n")
    history = read_history(folder, 1, 3)
    assert {1, 3} <= set(history.event.steps.tolist()) <= {1, 2, 3}
    assert history.event.loss[[0, -1]].tolist() == [0.5, 0.5]
    with MetricsLog(folder.metrics_path, after_step=3) as log:
        pass
    assert log.damaged == 3 - len(history.event.steps)


@TEXTS
def test_preferences_are_set_aside_with_a_reason(tmp_path: Path, absurd: str) -> None:
    path = tmp_path / "preferences.json"
    path.write_text('{"version": 1, "geometry": [0, 0, 1, ' + absurd + "]}")
    _, warning = load_preferences(path)
    assert not [word for word in PYTHONS_WORDS if word in warning]
    if absurd != ABSURD["large"]:
        assert str(path) in warning
        assert "cannot be used" in warning
