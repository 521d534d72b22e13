import pytest

from app.viewport.answer_time import AnswerTime


def test_a_picture_is_timed_from_the_oldest_view_that_it_answers() -> None:
    times = AnswerTime()
    for view, now in ((1, 10.0), (2, 10.1), (3, 10.5)):
        times.ask(view, now)
    times.answer(2, 10.4)  # views 1 and 2; 3 waits on
    assert times.worth_telling == pytest.approx(0.4)
    times.answer(2, 10.9)  # drawn anew of the same view: nobody waited for it
    assert times.worth_telling == pytest.approx(0.4)
    times.answer(3, 11.3)
    assert times.worth_telling == pytest.approx(0.6)  # the median of 0.4 and 0.8


def test_answers_that_a_hand_does_not_notice_are_not_told() -> None:
    times = AnswerTime()
    assert times.worth_telling is None
    for view in range(20):
        times.ask(view, 0.1 * view)
        times.answer(view, 0.1 * view + 0.05)
    assert times.worth_telling is None


def test_at_rest_nothing_is_timed() -> None:
    times = AnswerTime()
    times.ask(1, 0.0)
    times.answer(1, 0.5)
    times.ask(2, 1.0)
    times.rest()
    times.answer(2, 9.0)
    assert times.worth_telling is None
