"""An engine that hears of a step only one step later, as on a GPU; here the device is the CPU."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cuda_rasterizer.cpu_backend import BlendBackward
from engine import messages as m
from engine.messages import State
from engine.run.checkpoint import load_checkpoint
from engine.training.step_outcomes import may_wait
from engine.training.trainer import Trainer
from tests.engine.driving import Driver, quick

CALM = quick(densify_stop=0, opacity_reset_interval=0, iterations=12)


@pytest.fixture(autouse=True)
def read_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(trainer: Trainer, step: int) -> bool:
        assert not may_wait(trainer, step)
        settings = trainer.settings.densify
        return step >= settings.densify_stop or step % settings.densify_interval != 0

    monkeypatch.setattr("engine.training.trainer.may_wait", late)


def poison(monkeypatch: pytest.MonkeyPatch, at_call: int) -> None:
    """One backward of the run makes a NaN."""
    original, calls = BlendBackward.run, []

    def poisoned(way_back: BlendBackward, *arguments: Any) -> None:
        original(way_back, *arguments)
        calls.append(1)
        if len(calls) == at_call:
            assert way_back.wanted.opacities is not None
            way_back.wanted.opacities.fill_(math.nan)

    monkeypatch.setattr(BlendBackward, "run", poisoned)


def rows(folder: Path) -> list[int]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def test_a_bad_step_is_told_with_its_number_and_the_last_good_state_is_saved(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, CALM, start=False)
    poison(monkeypatch, at_call=5)
    failed = driver.ask(m.Start(), m.Failed)
    driver.reach(State.FAILED)
    assert "opacity_logits is not finite at step 5" in failed.message
    assert failed.step == 4
    assert driver.steps == 4
    saved = driver.ask(m.Save(), m.Saved)
    assert saved.step == 4
    assert rows(folder) == [1, 2, 3, 4]
    checkpoint = load_checkpoint(saved.path)
    assert checkpoint.facts["step"] == 4
    assert all(bool(tensor.isfinite().all()) for tensor in checkpoint.tensors.values())
    driver.ask(m.Start(), m.Finished)
    assert rows(folder) == list(range(1, 13))


def test_pausing_finds_out_first_how_the_last_step_ended(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.open(scene, tmp_path / "run", CALM, start=False)
    poison(monkeypatch, at_call=3)
    failed = driver.ask(m.StepN(3), m.Failed)
    driver.reach(State.FAILED)
    assert "step 3" in failed.message
    assert failed.step == 2
    assert not [change for change in driver.all(m.StateChanged) if change.new is State.PAUSED]


def test_every_step_is_told_once_and_in_order_when_it_is_known(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open(scene, folder, quick(iterations=30, evaluation_interval=7, checkpoint_interval=11))
    driver.wait(m.Finished)
    told = [int(step) for event in driver.all(m.Stepped) for step in event.steps]
    assert told == list(range(1, 31)) == rows(folder)
    assert [event.step for event in driver.all(m.Evaluated)] == [7, 14, 21, 28, 30]
    assert [event.step for event in driver.all(m.Saved)] == [11, 22, 30]
