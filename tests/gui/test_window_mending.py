"""What the window does by itself once a trouble is over, and at Enter where a button waits."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.diagnostics import Problem
from engine.messages import (
    CommandRefused,
    ContinueFor,
    Export,
    Exported,
    Failed,
    Finished,
    OpenScene,
    Saved,
    State,
)
from tests.engine.driving import full_disk
from tests.gui.journey import make_journey
from tests.gui.window_room import Room, enter, tell

pytestmark = pytest.mark.gl

FOLDER = Path("/somewhere/runs/demo-1")
CHECKPOINTS = FOLDER / "checkpoints"


def failed(room: Room, path: Path) -> Failed:
    reason = f"{path} could not be written: No space left on device. Free some space."
    return Failed(room.session.run_id, reason, "", path, 100)


def messages(room: Room) -> list[str]:
    return [card.problem.message for card in room.window.error_cards.cards]


def test_a_save_that_succeeds_puts_the_cards_of_those_before_away(painted_room: Room) -> None:
    room = painted_room
    room.open()
    run = room.session.run_id
    first = failed(room, CHECKPOINTS / "step-000100.safetensors")
    refused = f"The open run could not be saved, so it stays open: {first.message} Then try again."
    tell(
        room,
        first,
        first,
        failed(room, FOLDER / "run.toml"),
        CommandRefused(run, OpenScene(Path("there")), refused, first.path),
    )
    assert len(messages(room)) == 3
    tell(room, Saved(run, 200, CHECKPOINTS / "step-000200.safetensors", 0.1))
    assert messages(room) == []
    assert not room.window.error_cards.isVisible()
    assert "step 200" in room.window.status.notice.text()


def test_a_save_leaves_the_cards_of_other_troubles(painted_room: Room) -> None:
    room = painted_room
    room.open()
    run = room.session.run_id
    others = [
        failed(room, FOLDER / "exports" / "step-000100.ply"),
        failed(room, Path("/elsewhere/runs/demo-2/checkpoints/step-000100.safetensors")),
        failed(room, Path(f"/media/copy{CHECKPOINTS}/step-000100.safetensors")),
        Failed(run, "Memory ran out; lower the resolution.", "", None, 100),
    ]
    refused = CommandRefused(run, OpenScene(Path("a")), f"Not {CHECKPOINTS}.", Path("a"))
    tell(room, *others, refused)
    told = [*(other.message for other in others), refused.reason]
    warning = "The preferences cannot be used."
    room.window.error_cards.show_problem(Problem(warning))
    tell(room, Saved(run, 200, CHECKPOINTS / "step-000200.safetensors", 0.1))
    assert set(messages(room)) == {*told, warning}


def test_an_export_that_succeeds_puts_its_own_card_away(painted_room: Room) -> None:
    room = painted_room
    room.open()
    here, there = FOLDER / "exports" / "step-000100.ply", FOLDER / "exports" / "mine.ply"
    tell(room, failed(room, here), failed(room, there))
    tell(room, Exported(room.session.run_id, 100, here, 5))
    assert messages(room) == [failed(room, there).message]


def test_the_card_of_a_full_disk_goes_with_the_first_save_that_succeeds(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journey = make_journey(qapp, "painted")
    try:
        journey.open()
        save, cards = journey.window.toolbar.buttons["save"], journey.window.error_cards
        with monkeypatch.context() as full:
            full.setattr("os.fsync", full_disk)
            journey.answer(lambda: journey.click(save), Failed)
            export = Export(tmp_path / "mine.ply")
            journey.answer(lambda: journey.session.post(export), Failed)
        journey.until(lambda: len(cards.cards) == 2, "two cards")
        journey.answer(lambda: journey.click(save), Saved)
        assert [card.problem.path for card in cards.cards] == [export.path]
        journey.answer(lambda: journey.session.post(export), Exported)
        assert not cards.isVisible()
    finally:
        journey.close()


def test_enter_in_the_field_of_a_finished_run_goes_on_as_its_button_does(
    painted_room: Room,
) -> None:
    room = painted_room
    room.open()
    checkpoint, export = CHECKPOINTS / "step-000100.safetensors", FOLDER / "step-000100.ply"
    tell(room, Finished(room.session.run_id, 100, checkpoint, export))
    enter(room, State.FINISHED)
    box = room.window.finished_strip.count_box
    box.setFocus()
    box.selectAll()
    known = len(room.engine.commands)
    QTest.keyClicks(box, "1250")
    assert room.engine.commands[known:] == []
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert room.engine.commands[known:] == [ContinueFor(1250)]
