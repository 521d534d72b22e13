"""The time left: steady while the machine is busy now and then, and right again soon."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from app.time_left import TimeLeft
from engine.settings import Settings
from tests.app.panels.engine_events import stepped

ITERATIONS = 30_000
SETTINGS = Settings().updated({"iterations": ITERATIONS})


class Run:
    """A run whose steps are told about twice a second, and the time left after each."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self.step = 0
        self.left = TimeLeft()

    def go(self, speeds: Iterator[float], seconds: float) -> np.ndarray:
        """Train on for so long; the time left as it was told, one a half second."""
        told = []
        for speed in itertools.islice(speeds, round(2 * seconds)):
            steps = range(self.step + 1, self.step + 1 + max(round(speed / 2), 1))
            self.step = steps[-1]
            self.left.add(stepped(steps, speed=speed), self.settings)
            told.append(self.left.seconds(self.step, self.settings))
        return np.array(told)


def test_the_time_left_is_not_known_before_the_first_step() -> None:
    assert np.isnan(TimeLeft().seconds(0, SETTINGS))


def test_a_machine_that_is_busy_now_and_then_does_not_make_the_time_left_jump() -> None:
    generator = np.random.default_rng(0)
    speeds = (float(speed) for speed in generator.choice([10.0, 20.0, 40.0], 10_000))
    told = Run().go(speeds, 120)[60:]  # when there is something to go by
    # by the last speed alone it doubles and halves from one half second to the next
    assert np.abs(np.diff(told) / told[1:]).max() < 0.06


def test_at_an_even_speed_the_time_left_falls_by_a_second_each_second() -> None:
    run = Run()
    told = run.go(itertools.repeat(20.0), 30)
    assert told == pytest.approx((ITERATIONS - 10 * np.arange(1, 61)) / 20)


def test_after_splats_have_grown_the_time_left_is_right_within_a_minute() -> None:
    run = Run()
    run.go(itertools.repeat(40.0), 60)
    told = run.go(itertools.repeat(20.0), 60)
    expected = (ITERATIONS - run.step) / 20
    assert told[-1] == pytest.approx(expected, rel=0.06)  # of the old speed exp(-3) is left
    assert (np.diff(told)[:40] > 0).all()  # it rises once, not up and down


def test_larger_photos_that_were_expected_do_not_move_the_end() -> None:
    changes = {"iterations": 2_000, "coarse_halvings": 1, "coarse_steps": 1_000}
    run = Run(Settings().updated(changes))
    told = run.go(itertools.chain(itertools.repeat(20.0, 100), itertools.repeat(10.0)), 70)
    # 50 s at 20 steps a second, 100 s at 10; told after half a second and so on
    assert told == pytest.approx(150 - np.arange(1, 141) / 2)
