import numpy as np
import pytest
import torch

from cuda_rasterizer import rotation_matrices
from engine.settings import Settings
from engine.training.classic import FEWEST_SPLATS, ClassicStrategy
from engine.training.densification import DensifyStatistics
from engine.training.gaussians import Gaussians, from_points

EXTENT = 1.0
SMALL, LARGE = 0.005, 0.05  # below and above split_boundary * extent = 0.01
STRONG, WEAK = 3e-4, 1e-4  # above and below gradient_threshold = 2e-4
LATE = 20_000  # past the first opacity reset


def splats(sizes: list[float], opacities: list[float] | None = None) -> Gaussians:
    count = len(sizes)
    points = np.arange(3.0 * count).reshape(count, 3)
    values = from_points(points, np.full((count, 3), 90, np.uint8)).gathered(torch.arange(count))
    values["log_scales"] = torch.tensor(sizes).log()[:, None].repeat(1, 3)
    shown = torch.tensor(opacities or [0.5] * count)
    values["opacity_logits"] = torch.logit(shown)
    values["rotations"] = torch.randn(count, 4, generator=torch.Generator().manual_seed(4))
    return Gaussians(values)


def strategy_with(gradients: list[float]) -> ClassicStrategy:
    strategy = ClassicStrategy(len(gradients))
    strategy.load_state(
        {
            "gradient_sum": 2.0 * torch.tensor(gradients),
            "visits": torch.full((len(gradients),), 2.0),
        }
    )
    return strategy


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_the_gradient_is_in_ndc_and_averaged_over_the_views_that_saw_the_splat() -> None:
    strategy = ClassicStrategy(3)
    radii = torch.tensor([[3, 2], [1, 1], [0, 0]], dtype=torch.int32)
    gradient = torch.tensor([[3e-3, 0.0], [0.0, 1e-3], [0.0, 0.0]])
    strategy.observe(gradient, radii, 200, 100)
    strategy.observe(torch.zeros(3, 2), radii * torch.tensor([[1], [0], [0]]).int(), 200, 100)
    # pixels times (W/2, H/2) = (100, 50): 0.3 over two views, 0.05 over one, never seen
    expected = torch.tensor([0.15, 0.05, 0.0])
    torch.testing.assert_close(strategy.statistics.mean_gradient(), expected)


def test_a_small_splat_is_cloned_exactly_and_a_large_one_split_in_two() -> None:
    model = splats([SMALL, LARGE, SMALL, LARGE])
    edit = strategy_with([STRONG, STRONG, WEAK, WEAK]).grow(model, Settings(), EXTENT, seeded())
    assert (edit.counts.cloned, edit.counts.split, edit.counts.splats) == (1, 1, 6)
    assert edit.kept.tolist() == [0, 2, 3]  # the parent of a split is gone
    assert edit.sources.tolist() == [0, 1, 1]  # clones come before children
    after = edit.parameters(model)
    for name, tensor in model.items():
        assert torch.equal(after[name][3], tensor[0])
    for child in (4, 5):
        torch.testing.assert_close(after["log_scales"][child].exp(), torch.full((3,), LARGE / 1.6))
        assert not torch.equal(after["means"][child], model.means[1])
        for name in ("rotations", "opacity_logits", "sh_dc", "sh_rest"):
            assert torch.equal(after[name][child], getattr(model, name)[1])
    assert not torch.equal(after["means"][4], after["means"][5])


def test_children_are_drawn_from_the_gaussian_of_their_parent() -> None:
    count = 4000
    model = splats([LARGE] * count)
    stretched = torch.tensor([0.3, 0.02, 0.05])
    model.log_scales = stretched.log().repeat(count, 1).requires_grad_()
    model.rotations = torch.tensor([0.9, 0.1, 0.3, -0.2]).repeat(count, 1).requires_grad_()
    edit = strategy_with([STRONG] * count).grow(model, Settings(), EXTENT, seeded())
    offsets = edit.parameters(model)["means"] - model.means.detach().repeat(2, 1)
    turned = rotation_matrices(model.rotations.detach()[:1])[0]
    covariance = turned @ torch.diag(stretched**2) @ turned.T
    # 8000 samples: relative error of a variance about sqrt(2/8000) = 1.6 %, three of those
    torch.testing.assert_close(torch.cov(offsets.T), covariance, rtol=0.05, atol=0.05 * 0.09)


def test_a_splat_without_a_direction_is_split_as_if_it_were_not_turned() -> None:
    model = splats([LARGE, LARGE])
    model.log_scales = torch.tensor([0.3, 1e-9, 1e-9]).log().repeat(2, 1).requires_grad_()
    model.rotations = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]).requires_grad_()
    edit = strategy_with([STRONG, STRONG]).grow(model, Settings(), EXTENT, seeded())
    children = edit.parameters(model)["means"]
    offsets = children - model.means.detach()[edit.sources]
    assert torch.isfinite(children).all()
    assert (offsets[:, 0].abs() > 1e-3).all()  # along the long axis, which is the x axis
    torch.testing.assert_close(offsets[:, 1:], torch.zeros(4, 2), rtol=0, atol=1e-6)  # float32


def test_the_size_on_the_boundary_is_cloned_and_the_gradient_on_the_threshold_counts() -> None:
    model = splats([0.01])
    boundary = model.largest_scales().item()
    settings = Settings().updated({"split_boundary": boundary, "gradient_threshold": 2.0**-12})
    edit = strategy_with([2.0**-12]).grow(model, settings, EXTENT, seeded())
    assert (edit.counts.cloned, edit.counts.split) == (1, 0)


def test_faint_splats_are_pruned_new_ones_included() -> None:
    model = splats([SMALL] * 20, [0.004, *[0.5] * 19])
    strategy = strategy_with([STRONG, STRONG, *[WEAK] * 18])
    edit = strategy.refine(model, Settings(), EXTENT, 600, seeded())
    assert (edit.counts.cloned, edit.counts.pruned, edit.counts.splats) == (2, 2, 20)
    assert edit.kept.tolist() == list(range(1, 20))
    assert edit.sources.tolist() == [1]


def test_a_splat_exactly_as_opaque_as_the_threshold_stays() -> None:
    model = splats([SMALL] * 20)
    settings = Settings().changed("prune_opacity", model.opacities()[0].item())
    assert strategy_with([WEAK] * 20).prune(model, settings, EXTENT, LATE).counts.pruned == 0


@pytest.mark.parametrize(("step", "pruned"), [(2_900, 0), (3_000, 0), (3_100, 1)])
def test_huge_splats_are_pruned_only_after_the_first_reset(step: int, pruned: int) -> None:
    model = splats([0.11 * EXTENT, *[SMALL] * 19])
    edit = strategy_with([WEAK] * 20).refine(model, Settings(), EXTENT, step, seeded())
    assert edit.counts.pruned == pruned


def test_children_are_judged_by_their_own_size() -> None:
    # the parent is above prune_size * extent = 0.1, a child of 0.12 / 1.6 = 0.075 is not
    model = splats([0.12, *[SMALL] * 19])
    strategy = strategy_with([STRONG, *[WEAK] * 19])
    edit = strategy.refine(model, Settings(), EXTENT, 3_100, seeded())
    assert (edit.counts.split, edit.counts.pruned, edit.counts.splats) == (1, 0, 21)


@pytest.mark.parametrize("step", [0, 508, 3_000, 3_001, 20_000])
@pytest.mark.parametrize("changes", [{}, {"opacity_reset_interval": 0}], ids=["resets", "none"])
def test_pruning_by_hand_removes_exactly_what_a_refine_at_that_step_would(
    step: int, changes: dict[str, int]
) -> None:
    model = splats([1.0, *[SMALL] * 19], [0.5] * 19 + [0.001])
    settings = Settings().updated(changes)
    refine = strategy_with([WEAK] * 20).refine(model, settings, EXTENT, step, seeded())
    edit = strategy_with([STRONG] * 20).prune(model, settings, EXTENT, step)
    assert edit.kept.tolist() == refine.kept.tolist()
    assert edit.counts == refine.counts
    assert (0 in edit.kept.tolist()) == (step <= 3_000 or bool(changes))  # the huge one


def test_growth_stops_exactly_at_the_cap_with_the_highest_gradients() -> None:
    model = splats([SMALL, LARGE] * 500)
    gradients = [STRONG + 1e-6 * place for place in range(1000)]
    settings = Settings().changed("max_splats", 1003)
    edit = strategy_with(gradients).grow(model, settings, EXTENT, seeded())
    assert (edit.counts.splats, edit.counts.refused) == (1003, 997)
    assert sorted(set(edit.sources.tolist())) == [997, 998, 999]


def test_among_equal_gradients_the_lower_rows_grow() -> None:
    model = splats([SMALL] * 1000)
    settings = Settings().changed("max_splats", 1002)
    edit = strategy_with([STRONG] * 1000).grow(model, settings, EXTENT, seeded())
    assert edit.sources.tolist() == [0, 1]


def test_a_cap_below_the_count_stops_growth_and_deletes_nothing() -> None:
    model = splats([SMALL] * 1200)
    settings = Settings().changed("max_splats", 1000)
    edit = strategy_with([STRONG] * 1200).refine(model, settings, EXTENT, 600, seeded())
    assert (edit.counts.splats, edit.counts.refused) == (1200, 1200)
    assert len(edit.sources) == 0


def test_with_room_under_the_cap_nothing_is_refused() -> None:
    model = splats([SMALL, LARGE] * 500)
    settings = Settings().changed("max_splats", 1100)
    edit = strategy_with([STRONG] * 100 + [WEAK] * 900).refine(
        model, settings, EXTENT, 600, seeded()
    )
    assert (edit.counts.cloned + edit.counts.split, edit.counts.refused) == (100, 0)


def test_a_prune_of_everything_keeps_the_most_opaque_and_says_so() -> None:
    opacities = [0.0001 * (place + 1) for place in range(40)]
    model = splats([SMALL] * 40, opacities)
    edit = strategy_with([WEAK] * 40).prune(model, Settings(), EXTENT, LATE)
    assert edit.kept.tolist() == list(range(40 - FEWEST_SPLATS, 40))
    assert edit.counts.splats == FEWEST_SPLATS
    assert "0 of 40" in edit.notices[0]


def test_splats_that_no_rule_removes_are_kept_before_more_opaque_ones_that_are_too_big() -> None:
    sizes = [9.0] * 30 + [SMALL] * 2
    model = splats(sizes, [0.9] * 30 + [0.1] * 2)
    edit = strategy_with([WEAK] * 32).prune(model, Settings(), EXTENT, LATE)
    assert edit.kept.tolist()[-2:] == [30, 31]
    assert edit.counts.splats == FEWEST_SPLATS


def test_fewer_splats_than_the_fewest_all_stay() -> None:
    edit = strategy_with([WEAK] * 3).prune(splats([9.0] * 3), Settings(), EXTENT, LATE)
    assert edit.counts.splats == 3


def test_statistics_start_afresh_after_a_refine_and_follow_a_mere_prune() -> None:
    model = splats([9.0, *[SMALL] * 19])
    strategy = strategy_with([1e-5 * place for place in range(20)])
    strategy.follow(strategy.prune(model, Settings(), EXTENT, LATE))
    assert strategy.statistics.mean_gradient()[0].item() == pytest.approx(1e-5)
    assert len(strategy.statistics.visits) == 19
    smaller = splats([SMALL] * 19)
    strategy.follow(strategy.refine(smaller, Settings(), EXTENT, 600, seeded()))
    assert not strategy.statistics.visits.any()
    assert not strategy.statistics.gradient_sum.any()


def test_statistics_never_change_what_was_handed_out() -> None:
    strategy = ClassicStrategy(2)
    before = strategy.export_state()
    strategy.observe(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int32), 10, 10)
    assert not before["visits"].any()
    assert isinstance(strategy.statistics, DensifyStatistics)
