"""What goes wrong is told on cards, and what is refused in a quiet line."""

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.diagnostics import Problem
from app.error_card import MOST_CARDS
from engine.messages import CommandRefused, Failed, Noticed, Save, Warned
from tests.gui.scripted_engine import stepped
from tests.gui.window_room import Room, tell
from tests.settling import LIMIT_MS, settle

pytestmark = pytest.mark.gl


def test_an_error_makes_one_card_that_counts_its_repeats(painted_room: Room) -> None:
    room = painted_room
    room.open()
    run = room.session.run_id
    failed = Failed(
        run,
        "still.jpg is 3x4, expected 4x3; export it anew.",
        "Traceback …",
        Path("photos/still.jpg"),
        12,
    )
    tell(room, failed, failed, Failed(run, "Something else.", "", None, 12))
    cards = room.window.error_cards.cards
    assert [(card.problem.message[:5], card.count) for card in cards] == [
        ("Somet", 1),
        ("still", 2),
    ]
    assert cards[1].isVisible()
    assert cards[1].count_label.text() == "2 times"
    cards[1].copy_button.click()
    copied = QGuiApplication.clipboard().text()
    for part in ("expected 4x3", "photos/still.jpg", "Traceback …", "PySide6", "2 times"):
        assert part in copied
    cards[1].log_button.click()
    assert room.window.log_panel.isVisible()
    room.window.actions_table["log"].trigger()
    assert not room.window.log_panel.isVisible()
    for card in list(cards):
        card.dismiss_button.click()
    assert not room.window.error_cards.isVisible()


def test_a_warning_stays_on_a_card_of_its_own_kind(painted_room: Room) -> None:
    room = painted_room
    room.open()
    run = room.session.run_id
    tell(room, Warned(run, "The run had come to step 12,500."), stepped(run, 1, 2))
    (card,) = room.window.error_cards.cards
    assert card.accessibleName() == "Warning: The run had come to step 12,500."
    assert card.isVisible()
    assert "12,500" not in room.window.status.notice.text()
    card.dismiss_button.click()


def test_an_error_of_a_scene_goes_when_another_opens(painted_room: Room) -> None:
    room = painted_room
    room.open()
    room.window.error_cards.show_problem(Problem("The preferences cannot be used."))
    run = room.session.run_id
    tell(room, Failed(run, "transforms.json is cut short.", "", Path("transforms.json")))
    room.open("other")
    messages = [card.problem.message for card in room.window.error_cards.cards]
    assert messages == ["The preferences cannot be used."]


def test_many_errors_leave_room_for_the_view(painted_room: Room) -> None:
    room = painted_room
    room.window.resize(1400, 950)
    for number in range(20):
        room.window.error_cards.show_problem(Problem(f"problem {number}"))
    shown = [card for card in room.window.error_cards.cards if card.isVisible()]
    assert [card.problem.message for card in shown] == [
        f"problem {number}" for number in (19, 18, 17)
    ]
    assert len(shown) == MOST_CARDS
    room.window.resize(1280, 720)  # where three would be squeezed
    settle()
    (card,) = [card for card in room.window.error_cards.cards if card.isVisible()]
    assert card.message_label.text() == "problem 19"
    assert card.more_label.text() == "19 more"


@pytest.mark.parametrize(("size", "closing"), [((800, 490), True), ((640, 400), False)])
def test_a_low_window_shows_the_cause_of_the_newest_error_and_its_buttons(
    painted_room: Room, size: tuple[int, int], closing: bool
) -> None:
    room = painted_room
    room.open()
    room.window.resize(*size)
    cards = room.window.error_cards
    folder = Path("/somewhere/far/away/splatscope/runs/demo-1")
    for path in (folder / "exports/step-001000.ply", folder / "checkpoints/step-001000"):
        reason = f"{path} could not be written: No space left on device."
        cards.show_problem(Problem(reason, "", path))
    room.window.closing_strip.say_not_saved()
    room.window.closing_strip.setVisible(closing)
    settle()
    try:
        (card,) = [card for card in cards.cards if card.isVisible()]
        assert card.problem.path == folder / "checkpoints/step-001000"
        assert card.more_label.text() == "1 more"
        assert card.message_label.text() == "step-001000 could not be written: " + (
            "No space left on device."
        )
        label = card.message_label
        for part in (label, card.copy_button, card.log_button, card.dismiss_button):
            assert part.visibleRegion().boundingRect() == part.rect()  # nothing of it is cut off
        assert label.height() >= label.heightForWidth(label.width())
        assert card.dismiss_button.height() >= card.dismiss_button.minimumSizeHint().height()
        line = room.window.closing_strip.label
        assert not closing or line.text() == line.full_text
        room.window.resize(1280, 800)
        room.qtbot.waitUntil(lambda: cards.cards[1].isVisible(), timeout=LIMIT_MS)
        assert str(folder) in label.text()
        assert not card.more_label.isVisible()
    finally:
        room.window.closing_strip.hide()


@pytest.mark.parametrize("size", [(640, 400), (800, 500)])
def test_the_ways_out_of_a_failed_closing_are_whole_beside_two_errors(
    painted_room: Room, size: tuple[int, int]
) -> None:
    room = painted_room
    room.open()
    room.window.resize(*size)
    for name in ("exports/step-001000.ply", "checkpoints/step-001000"):
        path = Path("/somewhere/far/away/splatscope/runs/demo-1") / name
        room.window.error_cards.show_problem(Problem(f"{path} could not be written.", "", path))
    strip = room.window.closing_strip
    strip.say_not_saved()
    strip.show()
    settle()
    try:
        assert strip.label.text() == strip.label.full_text
        for part in (strip.elsewhere_button, strip.leave_button):
            assert part.visibleRegion().boundingRect() == part.rect()
            assert part.width() >= part.sizeHint().width()
    finally:
        strip.hide()


def test_refusals_and_notices_are_quiet_lines(painted_room: Room) -> None:
    room = painted_room
    room.open()
    run = room.session.run_id
    tell(room, CommandRefused(run, Save(), "There is nothing to save: no step was done."))
    assert "nothing to save" in room.window.status.notice.text()
    tell(room, Noticed(run, "The splat cap is reached."))
    assert room.window.status.notice.toolTip() == "The splat cap is reached."
    assert not room.window.error_cards.cards
    assert len(QApplication.topLevelWidgets()) == len(
        [w for w in QApplication.topLevelWidgets() if not (w.isVisible() and w.isModal())]
    )
