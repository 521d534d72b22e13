import math

import numpy as np
import pytest
import torch

from engine.errors import TrainingError
from engine.training.gaussians import Gaussians, all_finite, from_points, neighbour_spacing

GREY = np.full((1, 3), 128, np.uint8)


def grey(count: int) -> np.ndarray:
    return np.repeat(GREY, count, axis=0)


def test_spacing_is_the_root_mean_square_distance_to_the_three_nearest() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3], [9, 9, 9]])
    # squared distances of the origin to its three nearest: 1, 4, 9
    assert neighbour_spacing(points)[0] == pytest.approx(math.sqrt(14 / 3), rel=1e-12)


def test_a_splat_starts_round_faint_unrotated_and_in_the_colour_of_its_point() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])
    colors = np.array([[255, 0, 51]] * 4, np.uint8)
    splats = from_points(points, colors)
    expected = 0.5 * math.log(14 / 3)
    torch.testing.assert_close(splats.log_scales[0].detach(), torch.full((3,), expected))
    assert splats.rotations.tolist() == [[1.0, 0.0, 0.0, 0.0]] * 4
    torch.testing.assert_close(splats.opacities(), torch.full((4,), 0.1))
    shown = splats.sh_dc[0, 0].detach() * 0.28209479177387814 + 0.5
    torch.testing.assert_close(shown, torch.tensor([1.0, 0.0, 0.2]))
    assert not splats.sh_rest.any()


def test_a_thousand_points_in_a_millimetre_stay_finite_and_keep_the_smallest_size() -> None:
    points = np.random.default_rng(0).uniform(0.0, 1e-3, (1000, 3))
    splats = from_points(points, grey(1000))
    assert splats.non_finite() is None
    smallest = splats.largest_scales().min().item()
    assert smallest == pytest.approx(math.sqrt(1e-7), rel=1e-5)  # float32 of the stated floor


def test_points_on_top_of_each_other_get_the_smallest_size() -> None:
    splats = from_points(np.zeros((5, 3)), grey(5))
    assert splats.largest_scales().tolist() == pytest.approx([math.sqrt(1e-7)] * 5, rel=1e-5)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_points_than_neighbours_are_enough(count: int) -> None:
    points = np.arange(3.0 * count).reshape(count, 3)
    splats = from_points(points, grey(count))
    assert len(splats) == count
    assert splats.non_finite() is None


def test_no_points_are_refused_with_a_sentence() -> None:
    with pytest.raises(TrainingError, match="no points"):
        from_points(np.zeros((0, 3)), grey(0))


def test_points_that_are_not_finite_are_counted_and_refused() -> None:
    points = np.zeros((4, 3))
    points[2, 1] = np.nan
    with pytest.raises(TrainingError, match="1 of 4 starting points"):
        from_points(points, grey(4))


def test_a_parameter_of_the_wrong_shape_is_named() -> None:
    values = from_points(np.eye(3), grey(3)).gathered(torch.arange(3))
    values["rotations"] = torch.zeros(3, 3)
    with pytest.raises(TrainingError, match=r"rotations has the shape \(3, 3\)"):
        Gaussians(values)


def test_gathered_rows_are_copies_outside_the_graph() -> None:
    splats = from_points(np.eye(3), grey(3))
    rows = splats.gathered(torch.tensor([2, 0]))
    rows["means"].zero_()
    assert splats.means[2].tolist() == [0.0, 0.0, 1.0]
    assert not rows["means"].requires_grad


def test_lowering_opacities_leaves_lower_ones_to_the_bit() -> None:
    splats = from_points(np.eye(3), grey(3))
    splats.opacity_logits = torch.tensor([-7.0, 0.0, 3.0], requires_grad=True)
    splats.lower_opacities(0.01)
    assert splats.opacity_logits[0].item() == -7.0
    torch.testing.assert_close(splats.opacities()[1:], torch.full((2,), 0.01))
    assert splats.opacity_logits.is_leaf
    assert splats.opacity_logits.grad is None


def test_a_sum_that_overflows_is_not_taken_for_a_broken_value() -> None:
    assert all_finite(torch.full((4,), 3e38))
    assert not all_finite(torch.tensor([1.0, math.nan]))
    assert not all_finite(torch.tensor([math.inf, -math.inf]))
