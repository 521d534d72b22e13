import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.panels.metrics_history import (
    MARK_LIMIT,
    Mark,
    MarkKind,
    MetricsHistory,
    Table,
    nearest,
    reduced,
)


@settings(max_examples=50)
@given(blocks=st.lists(st.integers(0, 90), max_size=30))
def test_a_table_of_any_length_stays_bounded_and_keeps_the_mean(blocks: list[int]) -> None:
    table = Table(("step", "value"), capacity=64)
    total = 0
    for count in blocks:
        steps = np.arange(total + 1, total + count + 1)
        table.append((steps, steps * 2.0))
        total += count
    steps = table.column("step")
    assert len(table) <= 64
    assert np.all(np.diff(steps) > 0)
    # Each stored point is the mean of `stride` consecutive steps, the first of them step 1.
    expected = (np.arange(len(table)) + 0.5) * table.stride + 0.5
    np.testing.assert_allclose(steps, expected, rtol=1e-12)
    np.testing.assert_allclose(table.column("value"), steps * 2.0, rtol=1e-12)
    assert total - len(table) * table.stride < 2 * table.stride


def test_a_million_steps_cost_no_more_memory_than_the_capacity() -> None:
    history = MetricsHistory(capacity=2_000)
    for first in range(1, 100_001, 500):
        steps = np.arange(first, first + 500)
        ones = np.ones(500)
        history.add_steps(steps, ones, ones, ones, ones, steps, 20.0)
    assert len(history.steps) <= 2_000
    stored = history.steps.column("step").base  # the array behind the points
    assert stored is not None
    assert stored.nbytes <= 6 * 8 * 2_000
    assert history.last_step == 100_000


def test_a_curve_is_reduced_to_the_columns_there_are() -> None:
    x = np.arange(1.0, 10_001.0)
    y = np.sin(x / 500)
    few_x, few_y = reduced(x, y, -1, 20_000, 200)
    assert len(few_x) <= 200
    assert np.all(np.diff(few_x) > 0)
    # The mean of 50 neighbours of a sine of period 3142 lies within (50/500)^2 / 24 of its value.
    np.testing.assert_allclose(few_y, np.sin(few_x / 500), atol=5e-4)


def test_a_short_curve_is_drawn_point_by_point() -> None:
    x = np.arange(5.0)
    same_x, same_y = reduced(x, x * 2, -1, 10, 200)
    np.testing.assert_array_equal(same_x, x)
    np.testing.assert_array_equal(same_y, x * 2)


def test_a_zoomed_curve_reaches_both_borders() -> None:
    x = np.arange(1.0, 1_001.0)
    few_x, _ = reduced(x, x, 400.5, 500.5, 1_000)
    assert few_x[0] == 400
    assert few_x[-1] == 501


def test_small_groups_are_asked_for_where_a_curve_jumps_from_photo_to_photo() -> None:
    x = np.arange(1.0, 101.0)
    few_x, _ = reduced(x, x, 0, 200, 500, smallest=8)
    assert len(few_x) == 13


def test_the_nearest_point_is_found_and_none_in_an_empty_curve() -> None:
    x = np.array([1.0, 5.0, 10.0])
    assert [nearest(x, at) for at in (-3, 2.9, 3.1, 7.4, 99)] == [0, 0, 1, 1, 2]
    assert nearest(np.empty(0), 3) is None


def test_the_marks_of_one_drag_become_one_with_first_and_last_value() -> None:
    history = MetricsHistory()
    for step, before, after in ((10, "1", "2"), (14, "2", "3"), (15, "3", "4")):
        history.add_mark(Mark(step, MarkKind.CHANGE, "opacity", before, after))
    assert [mark.text for mark in history.marks] == ["opacity: 1 → 4"]
    history.add_mark(Mark(500, MarkKind.CHANGE, "opacity", "4", "5"))
    assert len(history.marks) == 2


def test_marks_of_other_things_stay_apart_and_are_bounded() -> None:
    history = MetricsHistory()
    history.add_mark(Mark(1, MarkKind.RESET, "reset"))
    history.add_mark(Mark(1, MarkKind.RESET, "reset"))
    assert len(history.marks) == 2
    for step in range(MARK_LIMIT + 10):
        history.add_mark(Mark(step, MarkKind.RESET, "reset"))
    assert len(history.marks) == MARK_LIMIT


def test_an_evaluation_told_twice_is_one_dot() -> None:
    history = MetricsHistory()
    for psnr in (25.0, 25.0):
        history.add_evaluation(1_000, psnr)
    assert len(history.evaluations) == 1


def test_dissimilarity_is_kept_for_the_loss_plot() -> None:
    history = MetricsHistory()
    one = np.ones(1)
    history.add_steps(one, one, one, np.array([0.8]), one, one, 1.0)
    assert history.steps.column("dssim")[0] == pytest.approx(0.2)


def test_the_columns_given_out_cannot_be_written() -> None:
    history = MetricsHistory()
    one = np.ones(3)
    history.add_steps(np.arange(3), one, one, one, one, one, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        history.steps.column("step")[0] = 5
