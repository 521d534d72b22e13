"""The line under a setting's row, whose text changes while a training needs the processor."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.panels.setting_note import SettingNote
from tests.settling import settle, show, wait_for_layout

LONG = "Below the count of 120,000: growth has stopped. Raise it for more splats. " * 3


class Layouts(QObject):
    """Counts how often what it watches is laid out."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


def shown_note(qtbot: QtBot) -> tuple[SettingNote, QWidget]:
    window = QWidget()
    qtbot.addWidget(window)
    note = SettingNote(window)
    column = QVBoxLayout(window)
    column.addWidget(note)
    column.addStretch(1)
    note.say("in force now: 1.60e-4", "muted", "")
    window.resize(240, 200)
    show(qtbot, window)
    return note, window


def test_another_number_has_nothing_laid_out(qtbot: QtBot) -> None:
    note, window = shown_note(qtbot)
    layouts = Layouts()
    for part in (window, note):
        part.installEventFilter(layouts)
    for number in range(10, 60, 10):
        note.say(f"in force now: 1.{number}e-4", "muted", "")
        settle()
    assert note.text == "in force now: 1.50e-4"
    assert layouts.count == 0


def test_a_sentence_of_several_lines_gets_the_height_it_needs_and_gives_it_back(
    qtbot: QtBot,
) -> None:
    note, _ = shown_note(qtbot)
    one_line = note.height()
    assert one_line >= note.fontMetrics().height()
    note.say(LONG, "changed", "Prune")
    wait_for_layout(qtbot, lambda: _assert(note.height() >= 3 * note.fontMetrics().height()))
    note.say("in force now: 1.60e-4", "muted", "")
    wait_for_layout(qtbot, lambda: _assert(note.height() == one_line))


def _assert(holds: bool) -> None:
    assert holds
