"""What a change means while training, row by row of the table in the design."""

import pytest
import torch

from engine.errors import SettingError
from tests.engine.training.tiny_scene import CALM, bits, make_trainer, step_until


@pytest.mark.parametrize("end", ["position_lr_start", "position_lr_end"])
def test_either_end_of_the_position_rate_is_recomputed_from_the_formula(end: str) -> None:
    trainer = make_trainer(**CALM, position_lr_steps=100)
    step_until(trainer, 9)
    trainer.apply_setting(end, 1e-3)
    ends = {"position_lr_start": 1.6e-4, "position_lr_end": 1.6e-6} | {end: 1e-3}
    expected = ends["position_lr_start"] ** 0.9 * ends["position_lr_end"] ** 0.1 * trainer.extent
    assert trainer.step_once().position_lr == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("rate", "parameter"),
    [
        ("position_lr_start", "means"),
        ("scale_lr", "log_scales"),
        ("rotation_lr", "rotations"),
        ("opacity_lr", "opacity_logits"),
        ("sh_dc_lr", "sh_dc"),
        ("sh_rest_lr", "sh_rest"),
    ],
)
def test_a_rate_of_zero_holds_its_parameter_still_from_the_next_step(
    rate: str, parameter: str
) -> None:
    trainer = make_trainer(**CALM, sh_interval=1)
    step_until(trainer, 3)
    trainer.apply_setting(rate, 0.0)
    before = {name: tensor.detach().clone() for name, tensor in trainer.model.items()}
    trainer.step_once()
    still = {name for name, tensor in trainer.model.items() if torch.equal(tensor, before[name])}
    assert still == {parameter}


def test_the_number_of_iterations_rescales_no_schedule() -> None:
    changed, unchanged = make_trainer(), make_trainer()
    changed.apply_setting("iterations", 40)
    assert changed.step_once().position_lr == unchanged.step_once().position_lr
    assert changed.next_occurrence("opacity_reset_interval") is None  # 50 lies beyond 40
    assert unchanged.next_occurrence("opacity_reset_interval") == 50


def test_intervals_count_from_step_zero_whenever_they_are_changed() -> None:
    trainer = make_trainer(gradient_threshold=0.1)
    step_until(trainer, 11)
    trainer.apply_setting("densify_interval", 6)
    trainer.apply_setting("opacity_reset_interval", 7)
    assert trainer.next_occurrence("densify_interval") == 12
    assert trainer.next_occurrence("opacity_reset_interval") == 14
    results = [trainer.step_once() for _ in range(13)]
    assert [result.step for result in results if result.refined] == [12, 18, 24]
    assert [result.step for result in results if result.reset] == [14, 21]


def test_a_cap_below_the_count_stops_growth_and_deletes_nothing() -> None:
    trainer = make_trainer(gradient_threshold=1e-6, densify_interval=2, max_splats=1200)
    step_until(trainer, 22)
    count = len(trainer.model)
    assert count == 1200  # the cap was reached exactly
    trainer.apply_setting("max_splats", 1100)
    assert [trainer.step_once().splats for _ in range(4)] == [1200] * 4
    trainer.apply_setting("max_splats", 1203)
    assert [trainer.step_once().splats for _ in range(2)] == [1200, 1203]


def test_lowering_the_sh_maximum_keeps_higher_coefficients_to_the_bit_and_unused() -> None:
    trainer = make_trainer(**CALM, sh_interval=2)
    step_until(trainer, 10)
    assert trainer.sh_degree == 3
    trainer.apply_setting("sh_degree_max", 1)
    kept = trainer.model.sh_rest[:, 3:].detach().clone()
    assert kept.any()
    results = [trainer.step_once() for _ in range(12)]
    assert {result.sh_degree for result in results} == {1}
    assert not any(result.sh_raised for result in results)
    assert torch.equal(trainer.model.sh_rest[:, 3:], kept)
    trainer.apply_setting("sh_degree_max", 0)
    rest = trainer.model.sh_rest.detach().clone()
    step_until(trainer, 30)
    assert torch.equal(trainer.model.sh_rest, rest)
    trainer.apply_setting("sh_degree_max", 3)
    assert trainer.sh_degree == 3
    trainer.step_once()
    assert not torch.equal(trainer.model.sh_rest[:, 3:], kept)


def test_the_densify_window_moves_at_once() -> None:
    trainer = make_trainer(gradient_threshold=0.1)
    trainer.apply_setting("densify_start", 4)
    trainer.apply_setting("densify_stop", 20)
    results = [trainer.step_once() for _ in range(30)]
    assert [result.step for result in results if result.refined] == [5, 10, 15]


def test_thresholds_wait_for_the_next_refine() -> None:
    trainer = make_trainer(gradient_threshold=0.1)
    step_until(trainer, 12)
    trainer.apply_setting("prune_opacity", 0.5)  # every splat is below
    trainer.apply_setting("gradient_threshold", 1e-6)
    assert trainer.next_occurrence("prune_opacity") == 15
    step_until(trainer, 14)
    assert len(trainer.model) == 30
    refined = trainer.step_once().refined
    assert refined is not None
    assert refined.split + refined.cloned > 0
    assert refined.pruned > 0


def test_the_split_boundary_decides_between_clones_and_splits() -> None:
    trainer = make_trainer(gradient_threshold=1e-6)
    step_until(trainer, 14)
    trainer.apply_setting("split_boundary", 1.0)
    refined = trainer.step_once().refined
    assert refined is not None
    assert refined.cloned > 0
    assert refined.split == 0


def test_the_reset_value_holds_at_the_next_reset() -> None:
    trainer = make_trainer(opacity_reset_interval=6)
    trainer.apply_setting("opacity_reset_value", 0.05)
    step_until(trainer, 5)
    assert trainer.step_once().reset == 0.05
    trainer.apply_setting("opacity_reset_value", 0.2)  # of the one after it
    phases = trainer.phases()
    next(phases)
    assert trainer.model.opacities().max().item() == pytest.approx(0.05, rel=1e-5)


def test_the_ssim_weight_changes_the_loss_of_the_next_step() -> None:
    trainer = make_trainer(**CALM)
    trainer.step_once()
    trainer.apply_setting("ssim_weight", 1.0)
    result = trainer.step_once()
    assert result.loss == pytest.approx(1 - result.ssim, rel=1e-5)


def test_the_background_changes_the_next_step_and_not_the_order_of_photos() -> None:
    changed, unchanged = make_trainer(**CALM), make_trainer(**CALM)
    changed.step_once()
    unchanged.step_once()
    changed.apply_setting("background", "random")
    first, second = changed.step_once(), unchanged.step_once()
    assert first.photo == second.photo
    assert first.loss != second.loss


def test_a_setting_for_a_whole_run_is_refused() -> None:
    trainer = make_trainer()
    with pytest.raises(SettingError, match="restart"):
        trainer.apply_setting("seed", 5)
    trainer.apply_setting("seed", 0)  # the value it has


def test_a_value_out_of_range_changes_nothing() -> None:
    trainer = make_trainer()
    before = bits(trainer)
    with pytest.raises(SettingError, match="opacity_lr"):
        trainer.apply_setting("opacity_lr", 7.0)
    assert bits(trainer) == before


def test_a_reset_by_hand_lowers_every_opacity_and_zeroes_its_moments() -> None:
    trainer = make_trainer(**CALM)
    step_until(trainer, 5)
    assert trainer.reset_opacity() == 0.01
    assert trainer.model.opacities().max().item() == pytest.approx(0.01, rel=1e-5)
    assert not trainer.optimizer.groups["opacity_logits"].exp_avg.any()
    trainer.step_once()
    assert trainer.optimizer.groups["opacity_logits"].steps == 6


def test_pruning_by_hand_removes_faint_splats_and_training_goes_on() -> None:
    trainer = make_trainer(**CALM, prune_size=10.0)
    step_until(trainer, 3)
    with torch.no_grad():
        trainer.model.opacity_logits[:4] = -8.0
    counts, notices = trainer.prune_now()
    assert (counts.pruned, counts.splats) == (4, 26)
    assert notices == ()
    assert trainer.step_once().splats == 26


def test_pruning_by_hand_spares_huge_splats_until_the_step_is_past_the_first_reset() -> None:
    trainer = make_trainer(densify_stop=0, opacity_reset_interval=4)
    with torch.no_grad():
        trainer.model.log_scales[:4] = 2.0
    step_until(trainer, 4)
    assert trainer.prune_now()[0].pruned == 0
    trainer.step_once()
    assert trainer.prune_now()[0].pruned >= 4


def test_densifying_by_hand_grows_and_uses_up_the_statistics() -> None:
    trainer = make_trainer(gradient_threshold=1e-6)
    step_until(trainer, 3)
    counts, _ = trainer.densify_now()
    assert counts.splats == len(trainer.model) > 30
    assert counts.pruned == 0
    again, _ = trainer.densify_now()
    assert (again.cloned, again.split) == (0, 0)
    trainer.step_once()
