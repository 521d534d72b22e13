"""A key that is held stays held while its keyboard repeats it, and comes up once."""

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent

from app.viewport.held_keys import HeldKeys

F, W = int(Qt.Key.Key_F), int(Qt.Key.Key_W)
LIMIT_MS = 5_000  # for what takes 40 ms: the machine may be busy


class Hand:
    """Presses and releases keys at given times, and notes what `HeldKeys` tells."""

    def __init__(self, parent: QObject) -> None:
        self.keys = HeldKeys(parent)
        self.told: list[tuple[str, int]] = []
        self.keys.went_down.connect(lambda key: self.told.append(("down", key)))
        self.keys.came_up.connect(lambda key: self.told.append(("up", key)))

    def press(self, key: int, at: int, repeated: bool = False) -> bool:
        return self.keys.press(event_of(QEvent.Type.KeyPress, key, at, repeated))

    def release(self, key: int, at: int, repeated: bool = False) -> None:
        self.keys.release(event_of(QEvent.Type.KeyRelease, key, at, repeated))


def event_of(kind: QEvent.Type, key: int, at: int, repeated: bool) -> QKeyEvent:
    event = QKeyEvent(kind, key, Qt.KeyboardModifier.NoModifier, "", repeated)
    event.setTimestamp(at)
    return event


@pytest.fixture
def hand(qapp) -> Hand:
    return Hand(qapp)


def test_repeats_that_look_like_a_hands_leave_a_key_held(hand: Hand, qtbot) -> None:
    assert hand.press(F, 1_000)
    for at in range(1_500, 2_500, 40):  # release and press of one time stamp, not marked
        hand.release(F, at)
        assert not hand.press(F, at)
        qtbot.wait(1)
    assert hand.told == [("down", F)]
    hand.release(F, 2_600)
    assert F in hand.keys
    qtbot.waitUntil(lambda: hand.told == [("down", F), ("up", F)], timeout=LIMIT_MS)
    assert F not in hand.keys


def test_marked_repeats_are_passed_over(hand: Hand) -> None:
    hand.press(F, 1_000)
    hand.release(F, 1_500, repeated=True)
    assert not hand.press(F, 1_500, repeated=True)
    assert hand.told == [("down", F)]


def test_a_second_tap_soon_after_the_first_is_one_of_its_own(hand: Hand) -> None:
    hand.press(F, 1_000)
    hand.release(F, 1_020)
    assert hand.press(F, 1_030)
    assert hand.told == [("down", F), ("up", F), ("down", F)]


def test_each_key_comes_up_by_itself(hand: Hand, qtbot) -> None:
    hand.press(F, 1_000)
    hand.press(W, 1_001)
    hand.release(W, 1_100)
    qtbot.waitUntil(lambda: ("up", W) in hand.told, timeout=LIMIT_MS)
    assert F in hand.keys


def test_all_come_up_at_once_where_the_keyboard_goes_elsewhere(hand: Hand) -> None:
    hand.press(F, 1_000)
    hand.press(W, 1_001)
    hand.release(W, 1_100)
    hand.keys.let_go()
    assert sorted(hand.told[2:]) == sorted([("up", F), ("up", W)])
    hand.keys.release(event_of(QEvent.Type.KeyRelease, F, 1_200, repeated=False))
    assert len(hand.told) == 4
