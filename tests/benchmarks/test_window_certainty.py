"""How sure the benchmark of the window is of its median."""

import math

import pytest

from benchmarks.window import median_ranks


def certainty(count: int, low: int, high: int) -> float:
    """That the median of all lies between two of `count` sorted values.

    It is below both where at most `low` values are below it, and above where more than `high` are.
    """
    too_low = sum(math.comb(count, rank) for rank in range(low + 1))
    too_high = sum(math.comb(count, rank) for rank in range(high + 1, count + 1))
    return 1 - (too_low + too_high) / 2**count


@pytest.mark.parametrize(
    ("count", "ranks"),
    [
        (1, (0, 0)),
        (5, (0, 4)),  # of 93.75 % certainty; there is no wider pair
        (6, (0, 5)),  # 96.9 %
        (8, (0, 7)),  # 99.2 %; the pair within has 93 %
        (9, (1, 7)),  # 96.1 %
        (30, (9, 20)),  # the 10th and the 21st, as tables of the sign test have it
    ],
)
def test_the_ranks_are_those_of_the_sign_test(count: int, ranks: tuple[int, int]) -> None:
    assert median_ranks(count) == ranks


@pytest.mark.parametrize("count", range(6, 61))
def test_the_ranks_are_the_closest_of_95_percent_certainty(count: int) -> None:
    low, high = median_ranks(count)
    assert low + high == count - 1
    assert certainty(count, low, high) >= 0.95
    if low + 1 < high - 1:
        assert certainty(count, low + 1, high - 1) < 0.95
