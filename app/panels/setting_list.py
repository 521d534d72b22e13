"""The rows of all settings in their groups, scrolled, with a search over them."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.panels.setting_controls import TypedLine
from app.panels.setting_group import SettingGroup
from app.panels.setting_row import SettingRow
from app.panels.setting_values import matches
from app.theme import set_role
from engine.settings import all_settings

CLOSED_AT_FIRST = ("loss", "spherical_harmonics", "scene", "rasterizer", "preview", "device")


class SettingList(QWidget):
    """A search line over the groups; which settings are changed, the panel says."""

    edited = Signal(str, object, int)  # name, value, gesture
    reset_asked = Signal(str)
    action_asked = Signal(str)  # the button in a row's note

    def __init__(self, is_changed: Callable[[str], bool], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_changed = is_changed
        self.preset = ""  # what "changed" is measured against, by name
        self.rows: dict[str, SettingRow] = {}
        self.groups: dict[str, SettingGroup] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(self._build_search())
        column.addWidget(self._build_area(), 1)

    def closed_groups(self) -> list[str]:
        """The names of the groups the user has closed, to remember them."""
        return [name for name, group in self.groups.items() if not group.is_open]

    def set_closed_groups(self, names: list[str]) -> None:
        """Close these groups and open the others."""
        for name, group in self.groups.items():
            group.set_open(name not in names)

    def focus_search(self) -> None:
        """Go to the search field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def count_changes(self) -> None:
        """Bring the groups up to date, and what is shown where only changes are."""
        for group in self.groups.values():
            group.set_change_count(sum(self._is_changed(row.info.name) for row in group.rows))
        if self.only_changed.isChecked():
            self._filter()

    def _filter(self) -> None:
        query = self.search.text()
        only_changed = self.only_changed.isChecked()
        shown = {
            info.name
            for info in all_settings()
            if matches(info, query) and (not only_changed or self._is_changed(info.name))
        }
        filtering = bool(query.strip()) or only_changed
        for group in self.groups.values():
            group.filter(shown, filtering)
        self.nothing.setVisible(not shown)
        self.nothing.setText(
            f"No setting matches “{query.strip()}”."
            if query.strip()
            else f"Nothing differs from {self.preset}."
        )

    def _build_search(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(8)
        self.search = TypedLine(self)
        self.search.setPlaceholderText("Search settings")
        self.search.setAccessibleName("Search settings")
        self.search.setToolTip("Words of a setting's name or meaning")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.only_changed = QToolButton(self)
        self.only_changed.setText("Changed")
        self.only_changed.setCheckable(True)
        set_role(self.only_changed, "quiet")
        self.only_changed.setAccessibleName("Show only changed settings")
        self.only_changed.setToolTip("Show only what differs from the preset")
        self.only_changed.toggled.connect(self._filter)
        line.addWidget(self.search, 1)
        line.addWidget(self.only_changed)
        return line

    def _build_area(self) -> QScrollArea:
        self.area = QScrollArea(self)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        content = QWidget(self.area)
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(4)
        for info in all_settings():
            if info.group not in self.groups:
                group = SettingGroup(info.group, info.group_label, content)
                group.set_open(info.group not in CLOSED_AT_FIRST)
                self.groups[info.group] = group
                column.addWidget(group)
            row = SettingRow(info, self.groups[info.group])
            row.edited.connect(self.edited)
            row.reset_asked.connect(self.reset_asked)
            row.action_asked.connect(self.action_asked)
            self.groups[info.group].add_row(row)
            self.rows[info.name] = row
        self.nothing = QLabel(content)
        self.nothing.setWordWrap(True)
        set_role(self.nothing, "muted")
        self.nothing.setVisible(False)
        column.addWidget(self.nothing)
        column.addStretch(1)
        self.area.setWidget(content)
        return self.area
