"""The order of what a step does, and what of it shows from outside."""

import dataclasses
import math
from typing import Any

import pytest
import torch

from cuda_rasterizer import set_threads
from engine.training import trainer as trainer_module
from engine.training.gaussians import SHAPES
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import CALM, bits, make_trainer, step_until


def spied(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order of what a step does; the optimiser's entry lists the parameters it moves."""
    calls: list[str] = []

    def spy(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def called(*arguments: object, **named: object) -> object:
            gradients = [name for name, tensor in trainer.model.items() if tensor.grad is not None]
            calls.append(f"{name} {' '.join(gradients)}" if name == "step" else name)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, called)

    spy(trainer_module, "require_finite_step")
    spy(trainer.strategy, "observe")
    spy(trainer.strategy, "refine")
    spy(trainer.model, "lower_opacities")
    spy(trainer.optimizer, "step")
    spy(trainer.model, "clear_gradients")
    return calls


def test_an_ordinary_step_goes_backward_statistics_optimiser_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = make_trainer()
    step_until(trainer, 8)  # degree 1: every parameter takes part
    calls = spied(trainer, monkeypatch)
    trainer.step_once()
    everything = " ".join(SHAPES)
    assert calls[:4] == ["require_finite_step", "observe", f"step {everything}", "clear_gradients"]


def test_on_a_refine_step_the_optimiser_finds_no_gradient_and_moves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = make_trainer(gradient_threshold=0.1)  # nothing grows: rows stay comparable
    step_until(trainer, 14)
    calls = spied(trainer, monkeypatch)
    before = {name: tensor.detach().clone() for name, tensor in trainer.model.items()}
    counts = {name: group.steps for name, group in trainer.optimizer.groups.items()}
    result = trainer.step_once()
    assert result.refined is not None
    assert result.reset is None
    assert calls[:4] == ["require_finite_step", "observe", "refine", "step "]
    for name, tensor in trainer.model.items():
        assert torch.equal(tensor, before[name])
        assert trainer.optimizer.groups[name].steps == counts[name]


def test_on_a_reset_step_the_opacities_alone_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(opacity_reset_interval=13)
    step_until(trainer, 12)
    calls = spied(trainer, monkeypatch)
    before = {name: tensor.detach().clone() for name, tensor in trainer.model.items()}
    result = trainer.step_once()
    assert result.reset == 0.01
    assert result.refined is None
    moved = " ".join(name for name in SHAPES if name != "opacity_logits")
    assert calls[:3] == ["require_finite_step", "observe", f"step {moved}"]
    assert not torch.equal(trainer.model.means, before["means"])
    assert torch.equal(trainer.model.opacity_logits, before["opacity_logits"])
    assert trainer.optimizer.groups["opacity_logits"].steps == 12
    assert trainer.optimizer.groups["means"].steps == 13


def test_the_step_behind_a_reset_begins_with_lowered_opacities() -> None:
    """So that what is measured, saved or exported at a reset step is the model as it was learnt."""
    trainer = make_trainer(opacity_reset_interval=13)
    step_until(trainer, 13)
    learnt = trainer.model.opacity_logits.detach().clone()
    phases = trainer.phases()
    next(phases)
    # the logit of 0.01 in float32, to the bit
    highest = torch.tensor(math.log(0.01 / 0.99))
    assert torch.equal(trainer.model.opacity_logits, learnt.clamp(max=highest))
    group = trainer.optimizer.groups["opacity_logits"]
    assert not group.exp_avg.any()
    assert not group.exp_avg_sq.any()
    phases.close()  # a dropped step has not lowered them either
    assert torch.equal(trainer.model.opacity_logits, learnt)
    step_until(trainer, 14)
    assert trainer.model.opacities().max().item() < 0.02  # one step of Adam above 0.01
    learnt = trainer.model.opacity_logits.detach().clone()
    phases = trainer.phases()
    next(phases)
    assert torch.equal(trainer.model.opacity_logits, learnt)  # lowered once


def test_a_step_that_refines_and_resets_does_both_and_no_optimiser() -> None:
    trainer = make_trainer(opacity_reset_interval=15)
    step_until(trainer, 14)
    result = trainer.step_once()
    assert result.refined is not None
    assert result.reset == 0.01
    assert trainer.pending_reset == 0.01
    assert trainer.optimizer.groups["means"].steps == 14


def test_on_white_one_more_reset_comes_where_densifying_begins() -> None:
    trainer = make_trainer(background="white")
    results = [trainer.step_once() for _ in range(12)]
    assert [result.step for result in results if result.reset is not None] == [10]


def test_moments_follow_their_splats_through_a_refine() -> None:
    trainer = make_trainer(gradient_threshold=1e-3)
    step_until(trainer, 14)
    before = trainer.optimizer.groups["means"].exp_avg.clone()
    edits = []
    original = trainer.strategy.refine

    def refine(*arguments: Any) -> Any:
        edits.append(original(*arguments))
        return edits[-1]

    trainer.strategy.refine = refine  # type: ignore[method-assign]
    trainer.step_once()
    kept = edits[0].kept
    after = trainer.optimizer.groups["means"].exp_avg
    assert len(edits[0].sources) > 0
    assert torch.equal(after[: len(kept)], before[kept])
    assert not after[len(kept) :].any()
    assert len(after) == len(trainer.model)


def test_the_degree_rises_before_the_step_of_its_multiple_is_rendered() -> None:
    trainer = make_trainer(**CALM)
    degrees = [trainer.step_once() for _ in range(26)]
    assert [result.step for result in degrees if result.sh_raised] == [8, 16, 24]
    assert degrees[7].sh_degree == 1
    assert trainer.sh_degree == 3


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_every_degree_trains_ten_steps(degree: int) -> None:
    trainer = make_trainer(sh_interval=1, sh_degree_max=degree, **CALM)
    results = [trainer.step_once() for _ in range(10)]
    assert trainer.sh_degree == degree
    assert all(math.isfinite(result.loss) for result in results)
    used = (degree + 1) ** 2 - 1
    assert not trainer.model.sh_rest[:, used:].any()
    if degree:
        assert trainer.model.sh_rest[:, :used].any()


def test_every_photo_comes_once_before_any_comes_twice() -> None:
    trainer = make_trainer(**CALM)
    names = [trainer.step_once().photo for _ in range(16)]
    training = sorted(photo.name for photo in trainer.scene.training)
    assert sorted(names[:8]) == training
    assert sorted(names[8:]) == training
    assert names[:8] != names[8:]


def test_the_loss_falls_to_a_third_within_150_steps() -> None:
    trainer = make_trainer(**CALM, ssim_weight=0.2)
    losses = [trainer.step_once().loss for _ in range(150)]
    assert sum(losses[-8:]) < sum(losses[:8]) / 3


def test_two_trainers_with_one_seed_give_the_same_bits_and_another_seed_gives_others() -> None:
    settings = {"gradient_threshold": 2e-3, "background": "random"}
    first, second, other = (
        make_trainer(**settings),
        make_trainer(**settings),
        make_trainer(**settings, seed=1),
    )
    for trainer in (first, second, other):
        step_until(trainer, 17)
    assert bits(first) == bits(second)
    assert bits(first)["model.means"] != bits(other)["model.means"]


def test_the_number_of_threads_changes_no_bit() -> None:
    one, two = make_trainer(gradient_threshold=2e-3), make_trainer(gradient_threshold=2e-3)
    step_until(one, 17)
    set_threads(2)
    try:
        step_until(two, 17)
    finally:
        set_threads(1)
    assert bits(one) == bits(two)


def test_a_run_has_the_bits_of_one_whose_steps_leave_nothing_to_those_behind_them() -> None:
    busy = {"gradient_threshold": 1e-6, "background": "random"}
    runs = [make_trainer(**busy), make_trainer(**busy)]
    for _ in range(40):
        runs[0]._memory.clear()
        assert runs[0].step_once().splats == runs[1].step_once().splats
        assert bits(runs[0]) == bits(runs[1])
    assert len(runs[0].model) != 30


def test_a_step_reports_plain_numbers() -> None:
    result = make_trainer().step_once()
    assert result.step == 1
    assert result.loss == pytest.approx(0.8 * result.l1 + 0.2 * (1 - result.ssim), rel=1e-5)
    assert result.psnr > 0
    assert result.seconds > 0
    assert result.splats == 30
    for field in dataclasses.fields(result):
        assert not isinstance(getattr(result, field.name), torch.Tensor)
