"""A collapsible group of setting rows."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.panels.setting_row import SettingRow
from app.theme import set_role


class SettingGroup(QWidget):
    """A heading that opens and closes, over its rows."""

    toggled = Signal(str, bool)  # group, open; by the user only

    def __init__(self, name: str, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.label = label
        self.rows: list[SettingRow] = []
        self._open = True
        self._forced_open = False
        self._changes = 0
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 4)
        outer.setSpacing(4)
        self.heading = QPushButton(self)
        set_role(self.heading, "group")
        self.heading.clicked.connect(self._toggle)
        outer.addWidget(self.heading)
        self._body = QWidget(self)
        self._layout = QVBoxLayout(self._body)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(8)
        outer.addWidget(self._body)
        self._show()

    def add_row(self, row: SettingRow) -> None:
        """Append a row; its parent becomes this group."""
        self.rows.append(row)
        self._layout.addWidget(row)

    @property
    def is_open(self) -> bool:
        """Whether the user has the group open."""
        return self._open

    def set_open(self, is_open: bool) -> None:
        """Open or close the group."""
        self._open = is_open
        self._show()

    def filter(self, shown_names: set[str], filtering: bool) -> bool:
        """Show only the named rows, opened while filtering; whether any row is left."""
        any_shown = False
        for row in self.rows:
            shown = row.info.name in shown_names
            row.setVisible(shown)
            any_shown = any_shown or shown
        self._forced_open = filtering
        self.setVisible(any_shown)
        self._show()
        return any_shown

    def set_change_count(self, count: int) -> None:
        """How many of the rows differ from the preset; told while the group is closed."""
        if count != self._changes:
            self._changes = count
            self._show()

    def _toggle(self) -> None:
        self.set_open(not self._open)
        self.toggled.emit(self.name, self._open)

    def _show(self) -> None:
        is_open = self._open or self._forced_open
        self._body.setVisible(is_open)
        text = f"{'▾' if is_open else '▸'}  {self.label}"
        if self._changes and not is_open:
            text += f"  ● {self._changes}"
        self.heading.setText(text)
        set_role(self.heading, "group-changed" if self._changes and not is_open else "group")
        state = "open" if is_open else "closed"
        plural = "" if self._changes == 1 else "s"
        changes = f", {self._changes} change{plural}" if self._changes else ""
        self.heading.setAccessibleName(f"{self.label}, {state}{changes}")
        self.heading.setToolTip(
            "Click to close the group" if is_open else "Click to open the group"
        )
