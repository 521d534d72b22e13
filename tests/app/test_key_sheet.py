"""The sheet of keys shows what each key does, however small the screen is."""

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel

from app.key_sheet import KeySheet
from app.theme import Theme
from tests.settling import settle


@pytest.fixture
def sheet(qtbot, qapp) -> KeySheet:
    Theme(qapp)
    sheet = KeySheet()
    qtbot.addWidget(sheet)
    return sheet


@pytest.mark.parametrize("room", [QSize(760, 475), QSize(1216, 640), QSize(3000, 2000)])
def test_no_explanation_lies_beyond_the_right_edge(sheet: KeySheet, room: QSize) -> None:
    sheet.fit(room)
    sheet.show()
    settle()
    assert sheet.width() <= room.width()
    assert sheet.height() <= room.height()
    assert sheet._area.horizontalScrollBar().maximum() == 0


def test_with_room_for_all_nothing_scrolls(sheet: KeySheet) -> None:
    sheet.fit(QSize(3000, 2000))
    sheet.show()
    settle()
    assert sheet._area.verticalScrollBar().maximum() == 0


def test_after_a_small_screen_a_large_one_has_columns_side_by_side_again(sheet: KeySheet) -> None:
    sheet.fit(QSize(3000, 2000))
    wide = sheet.size()
    sheet.fit(QSize(760, 475))
    assert sheet.width() < wide.width()
    sheet.fit(QSize(3000, 2000))
    assert sheet.size() == wide


def test_every_opening_on_a_small_screen_shows_whole_rows(sheet: KeySheet) -> None:
    for _ in range(3):
        sheet.fit(QSize(760, 475))
        sheet.show()
        settle()
        labels = sheet._page.findChildren(QLabel)
        assert all(label.height() >= label.sizeHint().height() for label in labels)
        assert all(label.width() >= label.sizeHint().width() for label in labels)
        assert sheet._area.horizontalScrollBar().maximum() == 0
        sheet.hide()
