"""All keys and mouse gestures on one page, from the action table."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.actions import ACTIONS, MOUSE_AND_KEYS
from app.theme import set_role


def key_rows(group: str) -> list[tuple[str, str]]:
    """Keys and meaning of the actions of one group."""
    rows = []
    for info in ACTIONS:
        if info.group == group and (info.shortcut or info.view_key):
            native = QKeySequence.SequenceFormat.NativeText
            shortcut = QKeySequence(info.shortcut).toString(native)
            keys = ", ".join(key for key in (shortcut, info.view_key) if key)
            rows.append((keys, info.tooltip))
    return rows


class KeySheet(QDialog):
    """Closes with Esc or a click on its frame's button."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys – Splatscope")  # noqa: RUF001 - a dash in a title
        self.setModal(False)
        columns = QHBoxLayout()
        columns.setSpacing(32)
        columns.addLayout(self._column([("In the view", list(MOUSE_AND_KEYS))]))
        groups = [(name, key_rows(name)) for name in ("Run", "View", "Settings", "Window")]
        columns.addLayout(self._column(groups))
        note = QLabel("Single keys act only while the view has the focus.", self)
        set_role(note, "muted")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 20)
        layout.setSpacing(16)
        layout.addLayout(columns)
        layout.addWidget(note)

    def _column(self, groups: list[tuple[str, list[tuple[str, str]]]]) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(8)
        for title, rows in groups:
            label = QLabel(title.upper(), self)
            set_role(label, "title")
            column.addWidget(label)
            grid = QGridLayout()
            grid.setHorizontalSpacing(16)
            grid.setVerticalSpacing(4)
            for i, (keys, meaning) in enumerate(rows):
                key_label = QLabel(keys, self)
                set_role(key_label, "strong")
                grid.addWidget(key_label, i, 0, Qt.AlignmentFlag.AlignLeft)
                grid.addWidget(QLabel(meaning, self), i, 1)
            grid.setColumnStretch(1, 1)
            column.addLayout(grid)
            column.addSpacing(8)
        column.addStretch(1)
        return column
