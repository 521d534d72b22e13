"""The page that is shown while no scene is open."""

from pathlib import Path

from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.actions import Actions
from app.empty_page import WHAT_TO_DO, EmptyPage
from tests.settling import show, wait_for_layout


def test_its_words_are_whole_where_there_is_little_height(qtbot: QtBot, tmp_path: Path) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    page = EmptyPage(Actions(window), window)
    scenes = [tmp_path / f"scene {number}" for number in range(4)]
    for folder in scenes:
        folder.mkdir()
    page.set_recent(scenes)
    show(qtbot, window)
    [words] = [label for label in page.findChildren(QLabel) if label.text() == WHAT_TO_DO]
    for height in (600, 160):
        page.resize(600, height)
        page.show()

        def words_are_whole(height: int = height) -> None:
            assert words.height() >= words.heightForWidth(words.width()), height

        wait_for_layout(qtbot, words_are_whole)
