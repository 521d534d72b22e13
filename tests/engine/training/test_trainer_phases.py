from collections.abc import Callable
from typing import Any

import pytest
import torch

from cuda_rasterizer import Attention
from engine.errors import TrainingError
from engine.training import trainer as trainer_module
from engine.training.step_result import Phase
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import bits, camera_at, make_trainer

SETTINGS = {"gradient_threshold": 2e-3, "background": "random", "opacity_reset_interval": 9}
STEPS = 16  # past degrees 1 and 2, resets at 9, and a refine at 15


def run(trainer: Trainer, visit: Callable[[Trainer], None]) -> list[Phase]:
    seen = []
    while trainer.step < STEPS:
        for phase in trainer.phases():
            seen.append(phase)
            visit(trainer)
    return seen


def nothing(trainer: Trainer) -> None:
    pass


def look(trainer: Trainer) -> None:
    """A view of another size and place, and an evaluation, as the engine would serve them."""
    before = trainer.model.means.grad
    picture = trainer.render(camera_at(2.0).resized(17, 31), (0.2, 0.4, 0.6))
    assert picture.shape == (31, 17, 3)
    assert not picture.requires_grad
    list(trainer.evaluate())
    assert trainer.model.means.grad is before


def test_a_step_pauses_after_render_loss_and_backward() -> None:
    trainer = make_trainer(**SETTINGS)
    assert list(trainer.phases()) == [Phase.RENDER, Phase.LOSS, Phase.BACKWARD]
    assert trainer.step == 1


def test_views_and_evaluations_at_every_boundary_change_no_bit() -> None:
    watched, alone = make_trainer(**SETTINGS), make_trainer(**SETTINGS)
    assert run(watched, look) == run(alone, nothing)
    assert bits(watched) == bits(alone)


def test_views_and_evaluations_between_the_tiles_of_a_phase_change_no_bit() -> None:
    watched, alone = make_trainer(**SETTINGS), make_trainer(**SETTINGS)
    attention, served = Attention(), []

    def serve() -> None:
        served.append(watched.step)
        look(watched)
        attention.call()

    attention.call()
    with attention.heeded(serve):
        run(watched, nothing)
    run(alone, nothing)
    assert len(served) >= 2 * STEPS  # each on its way there and back, which have four tiles
    assert bits(watched) == bits(alone)


@pytest.mark.parametrize("phase", list(Phase))
def test_closing_a_step_early_leaves_no_trace(phase: Phase) -> None:
    interrupted, alone = make_trainer(**SETTINGS), make_trainer(**SETTINGS)
    run(alone, nothing)
    while interrupted.step < STEPS:
        before = bits(interrupted)
        phases = interrupted.phases()
        while next(phases) is not phase:
            pass
        phases.close()
        assert bits(interrupted) == before
        assert all(tensor.grad is None for _, tensor in interrupted.model.items())
        interrupted.step_once()
    assert bits(interrupted) == bits(alone)


def test_no_parameter_moves_before_the_last_phase() -> None:
    trainer = make_trainer(**SETTINGS)
    before = trainer.model.means.detach().clone()
    for _ in trainer.phases():
        assert torch.equal(trainer.model.means, before)
    assert not torch.equal(trainer.model.means, before)


def test_the_model_is_not_changed_by_hand_while_a_step_is_under_way() -> None:
    trainer = make_trainer()
    phases = trainer.phases()
    next(phases)
    for change in (trainer.reset_opacity, trainer.prune_now, trainer.densify_now):
        with pytest.raises(RuntimeError, match="step is under way"):
            change()
    with pytest.raises(RuntimeError, match="step is under way"):
        trainer.apply_setting("opacity_lr", 0.1)
    with pytest.raises(RuntimeError, match="step is under way"):
        next(trainer.phases())
    phases.close()
    trainer.apply_setting("opacity_lr", 0.1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a stopwatch reads, in its one place."""
    seconds = [0.0]
    monkeypatch.setattr("engine.training.stopwatch.time.perf_counter", lambda: seconds[0])
    return seconds


def test_time_that_others_take_between_phases_is_not_training_time(clock: list[float]) -> None:
    trainer = make_trainer()
    for _ in trainer.phases():
        clock[0] += 100.0
    assert trainer.seconds == 0.0


def test_time_that_others_take_within_a_phase_is_not_training_time(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer()
    original = trainer_module.l1_ssim_with_gradient

    def is_interrupted(*arguments: Any, **named: Any) -> Any:
        clock[0] += 103.0
        trainer.was_interrupted(100.0)
        return original(*arguments, **named)

    monkeypatch.setattr(trainer_module, "l1_ssim_with_gradient", is_interrupted)
    assert [trainer.step_once().seconds for _ in range(2)] == [3.0, 6.0]


def test_what_the_device_did_for_others_while_a_step_waited_is_not_training_time(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer()
    original = trainer_module.l1_ssim_with_gradient

    def waits(*arguments: Any, **named: Any) -> Any:
        clock[0] += 3.0
        return original(*arguments, **named)

    monkeypatch.setattr(trainer_module, "l1_ssim_with_gradient", waits)
    trainer.waited_for_others(4.0)  # 3 s of them in the first step, 1 s in the second
    assert [trainer.step_once().seconds for _ in range(3)] == [0.0, 2.0, 5.0]


def test_a_preview_leaves_gradients_that_are_there_alone() -> None:
    trainer = make_trainer()
    phases = trainer.phases()
    while next(phases) is not Phase.BACKWARD:
        pass
    gradient = trainer.model.means.grad
    assert gradient is not None
    kept = gradient.clone()
    look(trainer)
    assert torch.equal(gradient, kept)
    phases.close()


def test_an_error_after_the_refine_of_a_step_leaves_no_trace_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = make_trainer(**SETTINGS | {"opacity_reset_interval": 15})
    while trainer.step < 14:
        trainer.step_once()
    before = bits(trainer)

    def fails(*arguments: object, **named: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(trainer.optimizer, "step", fails)
        with pytest.raises(TrainingError, match="Memory ran out in step 15"):
            trainer.step_once()
    assert bits(trainer) == before
    assert trainer.step_once().refined is not None
