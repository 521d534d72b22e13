"""What the field has learnt about autograd in a training loop, each lesson as a test of its loss.

The lessons of the rasteriser are in `tests/cuda_rasterizer/test_autograd_lessons`.
"""

import pytest
import torch
from torch import Tensor

from engine.training.gaussians import Gaussians
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import make_trainer


def test_the_trainers_parameters_are_leaves():
    """Adam on a tensor that is no leaf would silently train nothing: it never has a `.grad`."""
    model: Gaussians = make_trainer().model
    assert all(tensor.is_leaf and tensor.requires_grad for _, tensor in model.items())


def gradients_of_next_step(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Tensor]:
    """What the optimiser finds in `.grad` during one step."""
    found: dict[str, Tensor] = {}
    step = trainer.optimizer.step

    def recording(parameters, rates, *rest):
        pairs = list(parameters)
        found.update({n: leaf.grad.clone() for n, leaf in pairs if leaf.grad is not None})
        step(iter(pairs), rates, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(trainer.optimizer, "step", recording)
        trainer.step_once()
    return found


def test_the_loop_clears_gradients_to_none_so_that_a_step_holds_nothing_of_the_last(monkeypatch):
    continued = make_trainer()
    continued.step_once()
    assert all(tensor.grad is None for _, tensor in continued.model.items())
    tensors, header = continued.export_state()
    fresh = Trainer.from_state(
        continued.scene, continued._photos, tensors, header, backend=continued.backend
    )
    of_continued = gradients_of_next_step(continued, monkeypatch)
    of_fresh = gradients_of_next_step(fresh, monkeypatch)
    assert of_continued["means"].any()
    assert of_continued.keys() == of_fresh.keys()
    for name, gradient in of_continued.items():
        assert torch.equal(gradient, of_fresh[name]), name


def test_preview_and_evaluation_leave_no_graph_and_no_gradient():
    trainer = make_trainer()
    picture = trainer.render(trainer.scene.photos[0].camera, (0.0, 0.0, 0.0))
    assert picture.grad_fn is None
    assert not picture.requires_grad
    assert list(trainer.evaluate())
    assert all(tensor.grad is None for _, tensor in trainer.model.items())


def test_a_snapshot_is_a_copy_where_detach_alone_would_share_memory():
    trainer = make_trainer()
    means = trainer.model.means
    assert means.detach().data_ptr() == means.data_ptr()  # the trap
    tensors, _ = trainer.export_state()
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    live = {tensor.data_ptr() for _, tensor in trainer.model.items()}
    live |= {group.exp_avg.data_ptr() for group in trainer.optimizer.groups.values()}
    assert not live & {tensor.data_ptr() for tensor in tensors.values()}
    old = means.detach().clone()
    trainer.step_once()
    assert trainer.model.means.data_ptr() == means.data_ptr()  # moved in place
    assert not torch.equal(means.detach(), old)
    for name, tensor in tensors.items():
        assert torch.equal(tensor, before[name]), name


def test_adam_moments_follow_their_splats_through_clone_split_and_prune():
    # About half of the 30 splats lie above each of the two thresholds.
    trainer = make_trainer(
        densify_start=600, gradient_threshold=5e-3, split_boundary=0.12, prune_size=1.0
    )
    for _ in range(5):
        trainer.step_once()
    marked = trainer.model.means.detach()  # a mean tells a kept splat apart from every other
    moments = trainer.optimizer.groups["means"].exp_avg.clone()
    assert moments.abs().amin(dim=1).max() > 0
    calm = int(trainer.strategy.statistics.mean_gradient().argmin())  # neither cloned nor split
    with torch.no_grad():
        trainer.model.opacity_logits[calm] = -9.0  # to be pruned
    grown, _ = trainer.densify_now()
    pruned, _ = trainer.prune_now()
    assert grown.cloned > 0
    assert grown.split > 0
    assert pruned.pruned == 1
    group = trainer.optimizer.groups["means"]
    assert len(group.exp_avg) == len(trainer.model) == pruned.splats
    old_rows = {tuple(mean.tolist()): row for row, mean in enumerate(marked)}
    kept, new = 0, 0
    claimed: set[int] = set()
    for row, mean in enumerate(trainer.model.means.detach()):
        origin = old_rows.get(tuple(mean.tolist()))
        if origin is None or origin in claimed:  # a child, or the second of a cloned pair
            new += 1
            assert not group.exp_avg[row].any()
            assert not group.exp_avg_sq[row].any()
        else:
            claimed.add(origin)
            kept += 1
            assert torch.equal(group.exp_avg[row], moments[origin])
    assert calm not in claimed
    assert kept == 30 - grown.split - 1
    assert new == grown.cloned + 2 * grown.split


def test_an_opacity_reset_forgets_the_moments_of_opacities_alone():
    trainer = make_trainer()
    for _ in range(5):
        trainer.step_once()
    groups = trainer.optimizer.groups
    means, steps = groups["means"].exp_avg.clone(), groups["opacity_logits"].steps
    assert groups["opacity_logits"].exp_avg.any()
    trainer.reset_opacity()
    assert not groups["opacity_logits"].exp_avg.any()
    assert not groups["opacity_logits"].exp_avg_sq.any()
    assert groups["opacity_logits"].steps == steps
    assert torch.equal(groups["means"].exp_avg, means)
