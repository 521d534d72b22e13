import torch

from engine.training.optimizer import Optimizer
from tests.engine.training.tiny_scene import BACKEND


def leaves(count: int = 6) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {
        "means": torch.randn(count, 3, generator=random).requires_grad_(),
        "opacity_logits": torch.randn(count, generator=random).requires_grad_(),
    }


RATES = {"means": 1e-2, "opacity_logits": 0.05}


def filled(optimizer: Optimizer, parameters: dict[str, torch.Tensor], steps: int) -> None:
    random = torch.Generator().manual_seed(2)
    for _ in range(steps):
        for tensor in parameters.values():
            tensor.grad = torch.randn(tensor.shape, generator=random)
        optimizer.step(iter(parameters.items()), RATES)


def test_it_moves_as_torch_adam_does_even_where_a_group_is_skipped() -> None:
    ours, theirs = leaves(), leaves()
    optimizer = Optimizer(iter(ours.items()), BACKEND)
    adam = torch.optim.Adam(
        [{"params": [tensor], "lr": RATES[name]} for name, tensor in theirs.items()],
        betas=(0.9, 0.999),
        eps=1e-15,
    )
    random = torch.Generator().manual_seed(3)
    for step in range(60):
        for name in ours:
            gradient = torch.randn(ours[name].shape, generator=random) * 1e-3
            skipped = name == "opacity_logits" and step % 7 == 3
            ours[name].grad = None if skipped else gradient.clone()
            theirs[name].grad = None if skipped else gradient.clone()
        optimizer.step(iter(ours.items()), RATES)
        adam.step()
    for name in ours:
        # 60 steps of float32 arithmetic in another order: some units in the last place
        torch.testing.assert_close(ours[name], theirs[name], rtol=2e-5, atol=2e-6)
    assert optimizer.groups["means"].steps == 60
    assert optimizer.groups["opacity_logits"].steps == 60 - 9


def test_moments_follow_their_splats_and_new_rows_start_at_zero() -> None:
    parameters = leaves()
    optimizer = Optimizer(iter(parameters.items()), BACKEND)
    filled(optimizer, parameters, 4)
    before = {name: group.exp_avg_sq.clone() for name, group in optimizer.groups.items()}
    optimizer.replace(optimizer.gathered(torch.tensor([5, 0, 3]), added=2))
    for name, group in optimizer.groups.items():
        assert torch.equal(group.exp_avg_sq[:3], before[name][[5, 0, 3]])
        assert not group.exp_avg[3:].any()
        assert not group.exp_avg_sq[3:].any()
        assert group.exp_avg[:3].any()
        assert len(group.exp_avg) == 5
        assert group.steps == 4


def test_a_reset_zeroes_the_moments_of_one_group_and_keeps_its_count() -> None:
    parameters = leaves()
    optimizer = Optimizer(iter(parameters.items()), BACKEND)
    filled(optimizer, parameters, 3)
    optimizer.reset("opacity_logits")
    assert not optimizer.groups["opacity_logits"].exp_avg.any()
    assert not optimizer.groups["opacity_logits"].exp_avg_sq.any()
    assert optimizer.groups["opacity_logits"].steps == 3
    assert optimizer.groups["means"].exp_avg.any()


def test_an_idle_group_is_counted_and_equals_one_stepped_with_zero_gradient() -> None:
    idle, stepped = leaves(), leaves()
    first = Optimizer(iter(idle.items()), BACKEND)
    second = Optimizer(iter(stepped.items()), BACKEND)
    for _ in range(5):
        stepped["means"].grad = torch.zeros_like(stepped["means"])
        first.step(iter(idle.items()), RATES, idle=("means",))
        second.step(iter(stepped.items()), RATES)
    assert torch.equal(idle["means"], stepped["means"])
    assert first.groups["means"].steps == second.groups["means"].steps == 5
    assert torch.equal(first.groups["means"].exp_avg_sq, second.groups["means"].exp_avg_sq)
