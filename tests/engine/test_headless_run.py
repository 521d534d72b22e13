"""What a run without a window tells of errors that do not end it."""

import threading

import pytest

from engine import messages as m
from engine.engine_thread import Engine
from engine.headless_run import HeadlessRun
from engine.messages import Event, State


class _Told(Engine):
    """An engine that is not started and tells what it is given."""

    def __init__(self, *events: Event) -> None:
        super().__init__()
        self._events = list(events)

    def tell(self, *events: Event) -> None:
        self._events += events

    def take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def listened(*events: Event, later: tuple[Event, ...] = ()) -> HeadlessRun:
    """A run that heard these events, and then those that came `later`."""
    woken = threading.Event()
    engine = _Told(*events)
    run = HeadlessRun(engine, woken)
    for more in (later, ()):
        woken.set()
        run.listen()
        engine.tell(*more)
    run.close()
    return run


FAILED = m.Failed(1, "The disk is full.", "", None, 5)
TRAINING = m.StateChanged(1, State.READY, State.TRAINING, 4)


def test_an_error_that_stops_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    run = listened(TRAINING, FAILED)
    assert "error: The disk is full." in capsys.readouterr().err
    assert not run.has_failed


def test_an_error_before_anything_is_open_ends_the_run() -> None:
    assert listened(FAILED).has_failed  # no change of state will follow


@pytest.mark.parametrize("at_once", [True, False])
def test_an_error_that_ends_the_run_is_left_to_the_last_word(
    capsys: pytest.CaptureFixture[str], at_once: bool
) -> None:
    ended = m.StateChanged(1, State.TRAINING, State.FAILED, 5)
    run = listened(FAILED, ended) if at_once else listened(FAILED, later=(ended,))
    assert "The disk is full." not in capsys.readouterr().err
    assert run.has_failed
    assert run.error == "The disk is full."


def test_errors_that_come_again_while_closing_are_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = m.Failed(1, "No splat file.", "", None, 5)
    ended = m.StateChanged(1, State.TRAINING, State.FAILED, 5)
    closing = m.StateChanged(1, State.FAILED, State.CLOSING, 5)
    run = listened(FAILED, other, ended, later=(closing, FAILED, other))
    said = capsys.readouterr().err
    assert said.count("The disk is full.") == 1
    assert "No splat file." not in said  # the last word
    assert run.error == "No splat file."
    assert run.is_unsaved
