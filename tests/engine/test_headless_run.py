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

    def take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def listened(*events: Event) -> HeadlessRun:
    woken = threading.Event()
    woken.set()
    run = HeadlessRun(_Told(*events), woken)
    run.listen()
    run.close()
    return run


FAILED = m.Failed(1, "The disk is full.", "", None, 5)


def test_an_error_that_stops_nothing_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    run = listened(FAILED)
    assert "error: The disk is full." in capsys.readouterr().err
    assert not run.has_failed


def test_an_error_that_ends_the_run_is_left_to_the_last_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = listened(FAILED, m.StateChanged(1, State.TRAINING, State.FAILED, 5))
    assert "The disk is full." not in capsys.readouterr().err
    assert run.has_failed
    assert run.error == "The disk is full."
