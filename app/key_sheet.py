"""All keys and mouse gestures on one page, from the action table."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.actions import ACTIONS, MOUSE_AND_KEYS, key_names
from app.theme import set_role

Row = tuple[list[str], str]  # keys, any of which will do, and what they do
COLUMNS = (  # of about equal height
    ("In the view", "View", "Settings"),
    ("In the plots", "Run", "Window"),
)


def key_rows(group: str) -> list[Row]:
    """Keys and meaning of the actions, or of the mouse and keys of one place, of a group."""
    if group in MOUSE_AND_KEYS:
        return [(list(keys), meaning) for keys, meaning in MOUSE_AND_KEYS[group]]
    return [
        (key_names(info), info.tooltip)
        for info in ACTIONS
        if info.group == group and key_names(info)
    ]


class KeySheet(QDialog):
    """Closes with Esc or a click on its frame's button; scrolls where the screen is small."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys – Splatscope")  # noqa: RUF001 - a dash in a title
        self.setModal(False)
        self._page = page = QWidget(self)
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._columns.setSpacing(40)
        for groups in COLUMNS:
            self._columns.addLayout(self._column(page, groups))
        note = QLabel("Single keys act only while the view, or a plot, has the focus.", page)
        set_role(note, "muted")
        self._rows = layout = QVBoxLayout(page)
        layout.setContentsMargins(24, 20, 24, 20)
        layout.setSpacing(16)
        layout.addLayout(self._columns)
        layout.addWidget(note)
        self._area = area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(page)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)

    def appear(self) -> None:
        """Come up in front."""
        self.fit(self.screen().availableSize() * 0.95)
        self.show()
        self.raise_()
        self.activateWindow()

    def fit(self, room: QSize) -> None:
        """Take the size of the page, or as much of it as there is room for.

        Columns that do not fit beside each other go one below the other: to scroll sideways for
        what a key does is worse than to scroll down.
        """
        for label in self._page.findChildren(QLabel):
            label.ensurePolished()  # the style's padding counts
        size = self._turned(QBoxLayout.Direction.LeftToRight)
        if size.width() > room.width():
            size = self._turned(QBoxLayout.Direction.TopToBottom)
        if size.height() > room.height():
            size += QSize(self._area.verticalScrollBar().sizeHint().width(), 0)
        self.resize(size.boundedTo(room))

    def _turned(self, direction: QBoxLayout.Direction) -> QSize:
        """The size of the page with its columns in that direction."""
        self._columns.setDirection(direction)
        self._rows.invalidate()  # the columns forget their size when they turn, what holds them not
        self._rows.activate()
        return self._page.sizeHint()

    def _column(self, page: QWidget, groups: tuple[str, ...]) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(6)
        line = 0
        for title in groups:
            label = QLabel(title.upper(), page)
            set_role(label, "title")
            label.setContentsMargins(0, 14 if line else 0, 0, 2)
            grid.addWidget(label, line, 0, 1, 2)
            for keys, meaning in key_rows(title):
                line += 1
                grid.addLayout(self._caps(page, keys), line, 0)
                grid.addWidget(QLabel(meaning, page), line, 1)
            line += 1
        grid.setRowStretch(line, 1)
        grid.setColumnStretch(1, 1)
        return grid

    def _caps(self, page: QWidget, keys: list[str]) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        for key in keys:
            cap = QLabel(key, page)
            cap.setAlignment(Qt.AlignmentFlag.AlignCenter)
            set_role(cap, "key")
            row.addWidget(cap)
        row.addStretch(1)
        return row
