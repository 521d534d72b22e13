"""All keys and mouse gestures on one page, from the action table."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
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
        columns = QHBoxLayout()
        columns.setSpacing(40)
        for groups in COLUMNS:
            columns.addLayout(self._column(page, groups))
        note = QLabel("Single keys act only while the view, or a plot, has the focus.", page)
        set_role(note, "muted")
        layout = QVBoxLayout(page)
        layout.setContentsMargins(24, 20, 24, 20)
        layout.setSpacing(16)
        layout.addLayout(columns)
        layout.addWidget(note)
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(page)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)

    def appear(self) -> None:
        """Come up in front."""
        self.resize(self.sizeHint())  # Qt by itself would take two thirds of the screen at most
        self.show()
        self.raise_()
        self.activateWindow()

    def sizeHint(self) -> QSize:
        """All of the page, or as much as the screen has room for."""
        for label in self._page.findChildren(QLabel):
            label.ensurePolished()  # the style's padding counts
        room = self.screen().availableSize() * 0.95
        return self._page.sizeHint().boundedTo(room)

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
