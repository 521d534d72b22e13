"""How often parts of the window show new numbers, and that they do so together."""

import itertools
import time

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.pace import EARLY_SHARE, Pace
from tests.settling import LIMIT_MS, settle, show


class Repaints(QObject):
    """Counts how often a window is painted, whatever part of it."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.UpdateRequest
        return False


@pytest.fixture
def owner(qapp: QApplication) -> QObject:
    return QObject()


def test_parts_that_are_due_at_once_are_painted_together(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    parts = [QWidget(window) for _ in range(3)]
    paces = [Pace(interval, window) for interval in (500, 1_000, 2_000)]
    for part, pace in zip(parts, paces, strict=True):
        layout.addWidget(part)
        pace.due.connect(part.update)
    window.resize(200, 200)
    show(qtbot, window)
    repaints = Repaints()
    window.installEventFilter(repaints)
    parts[0].update()  # as the news itself may do, before what it makes due
    for pace in paces:
        pace.ask()
    settle()
    assert repaints.count == 1


def test_what_comes_first_is_shown_at_once(qtbot: QtBot, owner: QObject) -> None:
    pace = Pace(LIMIT_MS, owner)
    with qtbot.waitSignal(pace.due, timeout=LIMIT_MS // 2):
        pace.ask()


def test_nothing_is_due_more_often_than_the_interval(qtbot: QtBot, owner: QObject) -> None:
    pace, times = Pace(200, owner), list[float]()
    pace.due.connect(lambda: times.append(time.monotonic()))
    while len(times) < 4:
        pace.ask()
        qtbot.wait(5)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    # a clock read in the slot after one read before it differs by far less than 10 ms at rest;
    # the shortest gap is the interval less the share by which it may be early
    assert min(gaps) > 0.2 * (1 - EARLY_SHARE) - 0.01


def test_the_last_of_many_is_shown_though_nothing_follows(qtbot: QtBot, owner: QObject) -> None:
    pace, shown = Pace(50, owner), list[int]()
    newest = 0
    pace.due.connect(lambda: shown.append(newest))
    for newest in range(1, 6):  # noqa: B007  read by the slot
        pace.ask()
        qtbot.wait(1)
    qtbot.waitUntil(lambda: shown[-1:] == [5], timeout=LIMIT_MS)


def test_hurry_does_not_wait_for_the_interval(qtbot: QtBot, owner: QObject) -> None:
    pace = Pace(LIMIT_MS, owner)
    with qtbot.waitSignal(pace.due, timeout=LIMIT_MS // 2):
        pace.ask()
    with qtbot.waitSignal(pace.due, timeout=LIMIT_MS // 2):
        pace.hurry()
