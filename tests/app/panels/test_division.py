"""The room of splitters: what is wanted outlives windows too small for it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.division import Division
from tests.settling import settle, show

WANTED = [200, 500, 300]


class Board(QWidget):
    """Three parts side by side, of which the one in the middle grows."""

    def __init__(self) -> None:
        super().__init__()
        parts = [QWidget(self) for _ in WANTED]
        for part in parts:
            part.setMinimumWidth(100)
        self.division = Division(self, Qt.Orientation.Horizontal, parts, (0, 1, 0), WANTED)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.division.splitter)

    @property
    def sizes(self) -> list[int]:
        return self.division.splitter.sizes()

    def widen(self, width: int) -> None:
        self.resize(width, 200)
        self.division.share_out()
        settle()


@pytest.fixture
def board(qtbot: QtBot) -> Board:
    board = Board()
    qtbot.addWidget(board)
    board.resize(1016, 200)  # two handles of 8 px
    show(qtbot, board)
    return board


def test_parts_that_a_small_window_squeezes_are_as_wide_as_before_in_a_large_one(
    board: Board,
) -> None:
    assert board.sizes == WANTED
    board.widen(416)
    assert board.sizes[0] < 200
    assert board.division.wanted == WANTED
    board.widen(1216)
    assert board.sizes == [200, 700, 300]


def test_a_drag_in_a_small_window_changes_only_what_lies_beside_the_handle(board: Board) -> None:
    board.widen(416)
    squeezed = board.sizes
    assert squeezed[2] < 300
    board.division.splitter.splitterMoved.emit(0, 1)  # as a drag of the first handle ends
    assert board.division.wanted == [*squeezed[:2], 300]
    board.widen(1216)
    assert (board.sizes[0], board.sizes[2]) == (squeezed[0], 300)


def test_sizes_of_other_parts_are_not_taken(board: Board) -> None:
    for sizes in ([1, 2], [0, 500, 300], []):
        board.division.want(sizes)
    assert board.division.wanted == WANTED
    board.division.want([250, 450, 300])
    assert board.sizes == [250, 450, 300]
