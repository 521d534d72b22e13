"""What each of the faster steps means, in a run."""

import json

import pytest
import torch

from cuda_rasterizer import set_threads
from engine.cameras import Camera
from engine.training import trainer as trainer_module
from engine.training.optimizer import Optimizer
from engine.training.space_order import morton_order
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import (
    BACKEND,
    CALM,
    bits,
    make_trainer,
    step_until,
    tiny_scene,
    with_photos,
)

ALL = {
    "coarse_halvings": 1,
    "coarse_steps": 9,
    "sh_rest_interval": 3,
    "visible_only": True,
    "morton_interval": 10,
    "gradient_threshold": 2e-3,
    "background": "random",
    "opacity_reset_interval": 12,
}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The width of every picture that a step draws, in order."""
    found: list[int] = []
    draw_step = trainer_module.draw_step

    def noted(model: object, camera: Camera, *arguments: object, **options: object) -> object:
        found.append(camera.width)
        return draw_step(model, camera, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(trainer_module, "draw_step", noted)
    return found


def test_photos_begin_small_and_double_until_they_are_full(sizes: list[int]) -> None:
    trainer = make_trainer(**CALM, coarse_halvings=1, coarse_steps=3)
    results = [trainer.step_once() for _ in range(5)]
    assert sizes == [12, 12, 12, 24, 24]
    assert [result.grown for result in results] == [None, None, None, 1, None]
    assert trainer.next_occurrence("coarse_steps") is None


def test_the_size_of_photos_is_live_both_ways(sizes: list[int]) -> None:
    trainer = make_trainer(**CALM)
    step_until(trainer, 2)
    trainer.apply_setting("coarse_halvings", 1)
    assert trainer.next_occurrence("coarse_halvings") == 251
    step_until(trainer, 4)
    trainer.apply_setting("coarse_steps", 4)
    step_until(trainer, 5)
    trainer.apply_setting("coarse_steps", 6)
    step_until(trainer, 6)
    assert sizes == [24, 24, 12, 12, 24, 12]


def test_evaluation_is_at_full_size_whatever_the_steps_are() -> None:
    trainer = make_trainer(coarse_halvings=1)
    trainer.step_once()
    plain = make_trainer()
    plain.model.replace({name: tensor.detach() for name, tensor in trainer.model.items()})
    assert list(trainer.evaluate()) == list(plain.evaluate())


def test_view_dependent_colour_learns_at_multiples_only() -> None:
    trainer = make_trainer(**CALM, sh_interval=1, sh_rest_interval=4)
    moved = []
    for _ in range(12):
        before = trainer.model.sh_rest.detach().clone()
        base = trainer.model.sh_dc.detach().clone()
        trainer.step_once()
        assert not torch.equal(trainer.model.sh_dc, base)
        if not torch.equal(trainer.model.sh_rest, before):
            moved.append(trainer.step)
    assert moved == [4, 8, 12]
    assert trainer.optimizer.groups["sh_rest"].steps == 3
    assert trainer.optimizer.groups["sh_dc"].steps == 12


def test_the_first_step_of_view_dependent_colour_is_as_long_as_its_rate() -> None:
    # So Adam with the right bias correction begins: mean / root of square = the gradient's sign.
    trainer = make_trainer(**CALM, sh_interval=1, sh_rest_interval=5)
    step_until(trainer, 5)
    learnt = trainer.model.sh_rest.detach().abs()
    moved = learnt[learnt > 0]
    assert len(moved) > 0
    # float32, and eps 1e-15 beside gradients that can be as small
    assert torch.allclose(moved, torch.full_like(moved, 1.25e-4), rtol=1e-3)


def test_steps_at_degree_0_count_for_view_dependent_colour_where_it_would_learn() -> None:
    trainer = make_trainer(**CALM, sh_interval=1_000, sh_rest_interval=3)
    step_until(trainer, 7)
    assert trainer.optimizer.groups["sh_rest"].steps == 2


def test_how_often_view_dependent_colour_learns_is_live() -> None:
    trainer = make_trainer(**CALM, sh_interval=1)
    step_until(trainer, 2)
    trainer.apply_setting("sh_rest_interval", 4)
    before = trainer.model.sh_rest.detach().clone()
    trainer.step_once()
    assert torch.equal(trainer.model.sh_rest, before)
    trainer.step_once()
    assert not torch.equal(trainer.model.sh_rest, before)


def with_one_far_away(**values: object) -> Trainer:
    """A trainer whose first splat lies where no camera sees it, with momentum all the same."""
    trainer = make_trainer(**CALM, **values)
    means = trainer.model.means.detach().clone()
    means[0] = torch.tensor([0.0, 500.0, 0.0])
    parameters = {name: tensor.detach() for name, tensor in trainer.model.items()}
    trainer.model.replace({**parameters, "means": means})
    for group in trainer.optimizer.groups.values():
        group.exp_avg[0] = 1e-3
        group.exp_avg_sq[0] = 1e-6
    return trainer


def first_rows(trainer: Trainer) -> list[torch.Tensor]:
    moments = trainer.optimizer.groups.values()
    kept = [tensor.detach()[0].clone() for _, tensor in trainer.model.items()]
    return kept + [
        part[0].clone() for group in moments for part in (group.exp_avg, group.exp_avg_sq)
    ]


def test_unseen_splats_stay_as_they_are_with_their_momentum_when_only_seen_ones_move() -> None:
    trainer = with_one_far_away(visible_only=True, sh_interval=1)
    before, others = first_rows(trainer), trainer.model.means.detach()[1:].clone()
    step_until(trainer, 3)
    assert all(map(torch.equal, first_rows(trainer), before))
    assert not torch.equal(trainer.model.means[1:], others)
    trainer.apply_setting("visible_only", False)
    trainer.step_once()
    assert not any(map(torch.equal, first_rows(trainer), before))


def test_seen_splats_move_as_if_all_did() -> None:
    def one_step(**values: object) -> Trainer:
        trainer = with_one_far_away(**values)
        trainer.step_once()
        return trainer

    seen, everybody = one_step(visible_only=True), one_step()
    assert torch.equal(seen.model.means[1:], everybody.model.means[1:])


def test_the_curve_visits_the_octants_one_after_the_other() -> None:
    places = torch.tensor(
        [[1.0, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
    )
    assert morton_order(places).tolist() == [1, 3, 2, 5, 4, 7, 6, 0]


def test_neighbours_on_the_curve_are_neighbours_in_space() -> None:
    places = torch.rand(4000, 3, generator=torch.Generator().manual_seed(2))
    along = places[morton_order(places)]
    jumps, before = (torch.linalg.norm(rows[1:] - rows[:-1], dim=1) for rows in (along, places))
    assert jumps.mean() < 0.2 * before.mean()  # about 0.12: a cell is 1/16 of the cube wide


@pytest.mark.parametrize("count", [1, 2, 5])
def test_splats_in_one_place_keep_their_order(count: int) -> None:
    assert morton_order(torch.full((count, 3), 0.3)).tolist() == list(range(count))


def test_a_sorting_refine_moves_everything_that_belongs_to_a_splat() -> None:
    values = {"gradient_threshold": 2e-3, "densify_interval": 6}
    plain, sorted_ = make_trainer(**values), make_trainer(**values, morton_interval=10)
    step_until(plain, 12)  # the refine of step 12 is the first at or after 10
    assert sorted_.next_occurrence("morton_interval") == 12
    step_until(sorted_, 12)
    assert len(plain.model) > 30
    order = morton_order(plain.model.means.detach())
    assert not torch.equal(order, torch.arange(len(order)))
    for name, tensor in plain.model.items():
        assert torch.equal(tensor[order], getattr(sorted_.model, name))
        ours, theirs = sorted_.optimizer.groups[name], plain.optimizer.groups[name]
        assert torch.equal(theirs.exp_avg[order], ours.exp_avg)
        assert torch.equal(theirs.exp_avg_sq[order], ours.exp_avg_sq)
    assert plain.optimizer.groups["means"].exp_avg.any()
    step_until(sorted_, 18)
    assert sorted_.next_occurrence("morton_interval") == 24


def test_a_sorting_by_the_statistics_takes_them_along() -> None:
    trainer = make_trainer(**CALM)
    step_until(trainer, 1)
    trainer.apply_setting("densify_stop", 700)
    step_until(trainer, 4)
    before = {name: part.clone() for name, part in trainer.strategy.export_state().items()}
    order = morton_order(trainer.model.means.detach())
    trainer._carry_out(trainer_module.sorted_in_space(trainer.model))
    after = trainer.strategy.export_state()
    assert before["gradient_sum"].unique().numel() > 10
    for name, part in before.items():
        assert torch.equal(part[order], after[name])


@pytest.mark.parametrize("taken_at", [4, 9, 11, 14, 15])
def test_with_all_of_them_a_run_taken_up_again_gives_the_bits_of_one_never_stopped(
    taken_at: int,
) -> None:
    whole, first = make_trainer(**ALL), make_trainer(**ALL)
    step_until(whole, 22)
    step_until(first, taken_at)
    tensors, header = first.export_state()
    second = Trainer.from_state(
        *(tiny_scene(), with_photos(first), tensors, json.loads(json.dumps(header))),
        backend=BACKEND,
    )
    step_until(second, 22)
    assert bits(second) == bits(whole)


def test_with_all_of_them_any_number_of_threads_gives_the_same_bits() -> None:
    found = []
    try:
        for threads in (1, 3):
            set_threads(threads)
            trainer = make_trainer(**ALL)
            step_until(trainer, 22)
            found.append(bits(trainer))
    finally:
        set_threads(1)
    assert found[0] == found[1]


def test_dropping_a_step_that_sorts_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, whole = make_trainer(**ALL), make_trainer(**ALL)
    step_until(trainer, 9)
    before = bits(trainer)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Optimizer, "step", fails)
        with pytest.raises(ZeroDivisionError):
            trainer.step_once()
    assert bits(trainer) == before
    step_until(trainer, 12)
    step_until(whole, 12)
    assert bits(trainer) == bits(whole)
