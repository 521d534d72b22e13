import math

from hypothesis import given
from hypothesis import strategies as st

from app.panels.axis_ticks import (
    grown_end,
    linear_ticks,
    log_ticks,
    padded_range,
    range_from_zero,
    tick_text,
)


def test_ticks_are_written_with_k_and_m_and_the_digits_their_neighbours_need() -> None:
    assert [text for _, text in linear_ticks(0, 170_000, 5)] == ["0", "50k", "100k", "150k"]
    assert [text for _, text in linear_ticks(0, 0.25, 5)] == [
        "0.00",
        "0.05",
        "0.10",
        "0.15",
        "0.20",
        "0.25",
    ]
    assert [text for _, text in linear_ticks(16, 30, 7)][:2] == ["16", "18"]
    assert tick_text(1_500_000, 500_000) == "1.5M"
    assert tick_text(1_000, 500) == "1.0k"


@given(
    low=st.floats(-1e6, 1e6),
    span=st.floats(1e-6, 1e7),
    count=st.integers(2, 12),
)
def test_ticks_lie_in_the_range_evenly_and_not_too_close(
    low: float, span: float, count: int
) -> None:
    high = low + span
    ticks = [position for position, _ in linear_ticks(low, high, count)]
    assert len(ticks) <= count + 1
    slack = span * 1e-6 + abs(low) * 1e-9
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert len(ticks) >= 1 or count < 5


def test_a_logarithmic_axis_has_round_values() -> None:
    ticks = log_ticks(math.log10(0.02), math.log10(0.3), 8)
    assert [text for _, text in ticks] == ["0.02", "0.05", "0.1", "0.2"]
    many = log_ticks(-6, 2, 9)
    assert next(text for _, text in many) == "1e-06"
    assert len(many) == 9


@given(low=st.floats(-6, 2), span=st.floats(1e-4, 8), count=st.integers(0, 12))
def test_a_logarithmic_axis_has_two_ticks_or_more_however_small_it_is(
    low: float, span: float, count: int
) -> None:
    ticks = log_ticks(low, low + span, count)
    assert 2 <= len(ticks) <= max(count, 2)
    assert all(low - 1e-9 <= place <= low + span + 1e-9 for place, _ in ticks)  # rounding of 10**
    assert len({text for _, text in ticks}) == len(ticks)


def test_a_small_logarithmic_axis_has_round_values_too() -> None:
    short = log_ticks(math.log10(0.031), math.log10(0.052), 2)
    assert [text for _, text in short] == ["0.04", "0.05"]
    decade = log_ticks(math.log10(0.025), math.log10(0.6), 3)
    assert [text for _, text in decade] == ["0.03", "0.1", "0.3"]


def test_an_empty_range_has_no_ticks_and_is_widened() -> None:
    assert linear_ticks(3, 3, 5) == []
    assert log_ticks(math.nan, 2, 5) == []
    low, high = padded_range(5, 5)
    assert low < 5 < high


@given(last=st.floats(1, 1e7))
def test_the_step_axis_ends_a_little_beyond_the_last_step(last: float) -> None:
    end = grown_end(last)
    assert last <= end <= max(10.0, last * 1.25)


@given(low=st.floats(-1e5, 1e5), span=st.floats(1e-3, 1e5))
def test_a_range_holds_its_values_with_a_little_air(low: float, span: float) -> None:
    high = low + span
    bottom, top = padded_range(low, high)
    assert bottom < low
    assert high < top
    assert top - bottom <= 1.4 * span  # 6 % of air and a jump of at most 1/10 at either end
    assert 0 < span < range_from_zero(span)[1] <= 1.25 * span


def test_a_range_moves_in_jumps() -> None:
    """Were it another at each refresh, its axis would be laid out and painted at each."""
    values = [1.0 + step / 1000 for step in range(1000)]  # doubles in a thousand refreshes
    assert len({padded_range(0.0, value) for value in values}) < 40
    assert len({range_from_zero(value) for value in values}) < 40
