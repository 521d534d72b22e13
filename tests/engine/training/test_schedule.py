import math

import pytest

from engine.settings import Settings
from engine.training.schedule import (
    is_refine_step,
    is_reset_step,
    learning_rates,
    next_occurrence,
    position_rate,
    prunes_by_size,
    raises_sh,
    remaining_steps,
)

CLASSIC = Settings()


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 1.6e-4), (15_000, 1.6e-5), (30_000, 1.6e-6), (45_000, 1.6e-6)],
)
def test_the_position_rate_falls_on_a_straight_line_of_its_logarithm(
    step: int, expected: float
) -> None:
    assert position_rate(step, CLASSIC, 1.0) == pytest.approx(expected, rel=1e-12)
    assert position_rate(step, CLASSIC, 2.5) == pytest.approx(2.5 * expected, rel=1e-12)


def test_the_position_rate_equals_the_published_formula() -> None:
    u = 7_000 / 30_000
    expected = math.exp((1 - u) * math.log(1.6e-4) + u * math.log(1.6e-6))
    assert position_rate(7_000, CLASSIC, 1.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("end", ["position_lr_start", "position_lr_end"])
def test_a_rate_of_zero_at_one_end_holds_the_splats_still(end: str) -> None:
    assert position_rate(100, CLASSIC.changed(end, 0.0), 1.0) == 0.0


def test_other_rates_are_the_settings_and_not_scaled_by_the_extent() -> None:
    rates = learning_rates(1, CLASSIC, 50.0)
    rates.pop("means")
    assert rates == {
        "sh_dc": 2.5e-3,
        "sh_rest": 1.25e-4,
        "log_scales": 5e-3,
        "rotations": 1e-3,
        "opacity_logits": 0.025,
    }


def test_the_classic_refines_from_600_to_14900_every_hundred() -> None:
    steps = [step for step in range(1, 30_001) if is_refine_step(step, CLASSIC)]
    assert steps == list(range(600, 15_000, 100))


def test_the_classic_resets_at_3000_6000_9000_and_12000() -> None:
    steps = [step for step in range(1, 30_001) if is_reset_step(step, CLASSIC)]
    assert steps == [3_000, 6_000, 9_000, 12_000]


def test_a_white_background_adds_one_reset_where_densifying_begins() -> None:
    white = CLASSIC.changed("background", "white")
    steps = [step for step in range(1, 30_001) if is_reset_step(step, white)]
    assert steps == [500, 3_000, 6_000, 9_000, 12_000]


def test_an_interval_of_zero_switches_every_reset_off() -> None:
    none = CLASSIC.updated({"opacity_reset_interval": 0, "background": "white"})
    assert not any(is_reset_step(step, none) for step in range(1, 15_000))
    assert not prunes_by_size(14_000, none)
    assert next_occurrence("opacity_reset_interval", 0, none, 0) is None


def test_pruning_by_size_begins_after_the_first_reset() -> None:
    assert not prunes_by_size(3_000, CLASSIC)
    assert prunes_by_size(3_001, CLASSIC)


def test_the_sh_degree_rises_every_thousand_steps_to_its_maximum() -> None:
    reached, rises = 0, []
    for step in range(1, 6_001):
        if raises_sh(step, CLASSIC, reached):
            reached += 1
            rises.append(step)
    assert rises == [1_000, 2_000, 3_000]


@pytest.mark.parametrize(
    ("name", "step", "expected"),
    [
        ("densify_interval", 0, 600),
        ("densify_interval", 600, 700),
        ("gradient_threshold", 1_234, 1_300),
        ("prune_opacity", 14_899, 14_900),
        ("prune_opacity", 14_900, None),
        ("opacity_reset_interval", 0, 3_000),
        ("opacity_reset_value", 12_000, None),
        ("sh_interval", 1_500, 2_000),
        ("evaluation_interval", 1_000, 2_000),
        ("checkpoint_interval", 1, 5_000),
        ("checkpoint_interval", 30_000, None),
        ("opacity_lr", 10, None),
    ],
)
def test_the_badge_of_a_setting_names_its_next_occurrence(
    name: str, step: int, expected: int | None
) -> None:
    assert next_occurrence(name, step, CLASSIC, reached=1) == expected


def test_the_next_reset_on_white_is_the_one_at_the_start_of_densifying() -> None:
    white = CLASSIC.changed("background", "white")
    assert next_occurrence("opacity_reset_interval", 0, white, 0) == 500
    assert next_occurrence("opacity_reset_interval", 500, white, 0) == 3_000


def test_there_is_no_next_degree_once_the_maximum_is_reached() -> None:
    assert next_occurrence("sh_interval", 100, CLASSIC, reached=3) is None


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, 250 + 250 * 2 + 500 * 4),
        (250, 250 + 500 * 2),  # the next step is the first of the larger size
        (499, 1 + 500 * 2),
        (500, 500),
        (1_000, 0),
        (1_200, 0),
    ],
)
def test_steps_to_come_count_by_the_time_that_they_will_take(step: int, expected: float) -> None:
    coarse = CLASSIC.updated({"iterations": 1_000, "coarse_halvings": 2, "coarse_steps": 250})
    assert remaining_steps(step, coarse) == expected


def test_a_run_that_ends_with_small_photos_has_no_larger_ones_to_come() -> None:
    coarse = CLASSIC.updated({"iterations": 300, "coarse_halvings": 2, "coarse_steps": 250})
    assert remaining_steps(100, coarse) == 150 + 50 * 2
