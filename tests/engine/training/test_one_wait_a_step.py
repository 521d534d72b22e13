"""Steps on a GPU that is only pretended, with the real kernels on the emulator.

The device is as slow as can be, so that everything that waits for it is counted; and what a step
finds out too late has to be undone.
"""

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from cuda_rasterizer import cuda_backend
from cuda_rasterizer.cuda.launches import use_launcher
from engine.errors import TrainingError
from engine.training.trainer import Trainer
from tests.cuda_emulator.launcher import EmulatedLauncher
from tests.engine.pretend_gpu import GPU, Counts, PretendTensor, pretend_gpu
from tests.engine.training.tiny_scene import (
    MemoryPhotos,
    bits,
    pictures,
    quick,
    step,
    tiny_scene,
)

pytestmark = pytest.mark.emulator


class LauncherOfTheGpu:
    """The emulator, as the launcher of the pretended device."""

    device_type = GPU.type

    def __init__(self, launcher: EmulatedLauncher) -> None:
        self._launcher = launcher

    def launch(self, kernel: str, params: ctypes.Structure, **words: Any) -> None:
        self._launcher.launch(kernel, params, **words)


@pytest.fixture
def gpu(emulated: EmulatedLauncher, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    pictures()  # drawn before there is a GPU
    with use_launcher(LauncherOfTheGpu(emulated)), pretend_gpu(monkeypatch) as counts:
        yield counts


def trainer_on_gpu(**values: object) -> Trainer:
    photos = MemoryPhotos(list(pictures()), [None] * 10)
    return Trainer(tiny_scene(), photos, quick(**values), backend="cuda", device=GPU)


def poison_colors(monkeypatch: pytest.MonkeyPatch, *, at_call: int) -> None:
    """The compositing of one step hands a NaN on to projection, as a broken kernel would."""
    original = cuda_backend.project_backward
    calls = 0

    def poisoned(inputs: Any, view: Any, radii: Any, gradients: Any, *rest: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == at_call:
            colors = gradients[4].clone()
            seen = int((radii[:, 0] > 0).to(torch.int32).argmax().item())
            colors[seen, 1] = math.nan
            gradients = (*gradients[:4], colors)
        original(inputs, view, radii, gradients, *rest)

    monkeypatch.setattr(cuda_backend, "project_backward", poisoned)


def test_a_steady_step_waits_once_and_that_is_for_the_number_of_instances(gpu: Counts) -> None:
    trainer = trainer_on_gpu(sh_interval=2)
    for _ in range(3):
        step(trainer)
    for _ in range(4):
        gpu.clear()
        step(trainer)
        assert gpu.reads == ["cuda_rasterizer.cuda.binning"]
        assert gpu.event_waits == []
        assert gpu.plain_uploads == []
    assert isinstance(trainer.model.means, PretendTensor)
    assert [result.step for result in trainer.take_results()] == [1, 2, 3, 4, 5, 6]
    trainer.settle()
    assert [result.step for result in trainer.take_results()] == [7]


def test_steps_read_late_are_those_read_at_once(gpu: Counts) -> None:
    settings = {"gradient_threshold": 1e-6, "densify_start": 1, "densify_interval": 4}
    late, at_once = trainer_on_gpu(**settings), trainer_on_gpu(**settings)
    told = []
    for _ in range(6):
        step(late)
        told += late.take_results()
    late.settle()
    told += late.take_results()
    expected = [at_once.step_once() for _ in range(6)]
    assert [result.loss for result in told] == [result.loss for result in expected]
    assert [result.step for result in told] == [1, 2, 3, 4, 5, 6]
    assert told[3].refined == expected[3].refined is not None
    assert bits(late) == bits(at_once)


@pytest.mark.parametrize("by", ["the next step", "settling"])
def test_a_gradient_that_is_not_finite_moves_nothing_and_is_told_a_step_later(
    gpu: Counts, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    trainer = trainer_on_gpu()
    for _ in range(2):
        trainer.step_once()
    before = bits(trainer)
    parameters = {name: tensor.numbers.clone() for name, tensor in trainer.model.items()}
    poison_colors(monkeypatch, at_call=1)
    step(trainer)
    assert trainer.step == 3
    for name, tensor in trainer.model.items():  # nobody has heard of it, and nothing has moved
        assert torch.equal(tensor.numbers, parameters[name]), name
    with pytest.raises(TrainingError, match=r"gradients? of .*sh_dc.* not finite at step 3"):
        step(trainer) if by == "the next step" else trainer.settle()
    assert trainer.step == 2
    assert trainer.take_results() == []
    assert bits(trainer) == before
    assert trainer.step_once().step == 3


def test_a_refine_waits_for_its_own_step(gpu: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_on_gpu(gradient_threshold=1e-6, densify_start=1, densify_interval=3)
    trainer.step_once()
    step(trainer)
    poison_colors(monkeypatch, at_call=1)
    with pytest.raises(TrainingError, match="not finite at step 3"):
        step(trainer)
    assert [result.step for result in trainer.take_results()] == [2]
    assert trainer.step == 2
    assert trainer.step_once().refined is not None


def test_a_step_dropped_behind_one_that_is_not_read_leaves_no_trace(gpu: Counts) -> None:
    dropped, alone = trainer_on_gpu(), trainer_on_gpu()
    for trainer in (dropped, alone):
        step(trainer)
    for phases_done in (1, 2, 3):
        phases = dropped.phases()
        for _ in range(phases_done):
            next(phases)
        phases.close()
        assert dropped.step == 1
    for trainer in (dropped, alone):
        step(trainer)
        trainer.settle()
        assert [result.step for result in trainer.take_results()] == [1, 2]
    assert bits(dropped) == bits(alone)


def test_a_photo_that_shows_nothing_is_found_out_later_and_counts_no_step(gpu: Counts) -> None:
    trainer = trainer_on_gpu()
    trainer.step_once()
    kept = trainer.model.means.detach().clone()
    with torch.no_grad():
        trainer.model.means += 1e4
    moved = trainer.model.means.numbers.detach().clone()
    step(trainer)
    with torch.no_grad():
        assert torch.equal(trainer.model.means.numbers, moved)
        trainer.model.means.copy_(kept)
    step(trainer)
    trainer.settle()
    assert [result.unseen for result in trainer.take_results()] == [True, False]
    assert trainer.optimizer.groups["means"].steps == 2
    assert sum(trainer.unseen.values()) == 1


def test_nothing_is_done_by_hand_before_it_is_known_how_a_step_ended(gpu: Counts) -> None:
    trainer = trainer_on_gpu()
    step(trainer)
    for change in (trainer.reset_opacity, trainer.prune_now, trainer.export_state):
        with pytest.raises(RuntimeError, match="settle first"):
            change()
    trainer.settle()
    trainer.reset_opacity()
