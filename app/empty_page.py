"""What the window shows while no scene is open: what to do, and the scenes opened lately."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.actions import Actions
from app.flow_layout import FlowLayout
from app.theme import set_role

MOST_RECENT = 6
WIDTH_PX = 520
WHAT_TO_DO = (
    "Open a folder with photos and the cameras that took them: a COLMAP model "
    "(sparse/0) or a transforms.json. Training starts at once, and every setting "
    "may be changed while it runs."
)


class EmptyPage(QWidget):
    """Open, demo, recent scenes; folders can be dropped anywhere in the window."""

    scene_chosen = Signal(object)  # Path

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "panel")
        self.setAccessibleName("No scene is open")
        block = QWidget(self)
        block.setMaximumWidth(WIDTH_PX)
        column = QVBoxLayout(block)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for words, role in (("Train Gaussian splats, and steer them", "heading"), (WHAT_TO_DO, "")):
            label = QLabel(words, block)
            label.setWordWrap(True)
            set_role(label, role)
            column.addWidget(label)
        self.open_button = QPushButton("Open folder…", block)
        set_role(self.open_button, "primary")
        self.demo_button = QPushButton("Open the demo scene", block)
        buttons = FlowLayout()
        buttons.setSpacing(8)
        for button, key in ((self.open_button, "open"), (self.demo_button, "demo")):
            button.setToolTip(actions[key].toolTip())
            button.setAccessibleName(button.text())
            button.clicked.connect(actions[key].trigger)
            buttons.addWidget(button)
        column.addLayout(buttons)
        drop = QLabel("or drop a folder anywhere in this window", block)
        drop.setWordWrap(True)
        set_role(drop, "muted")
        column.addWidget(drop)
        self.recent_title = QLabel("OPENED LATELY", block)
        set_role(self.recent_title, "title")
        column.addSpacing(12)
        column.addWidget(self.recent_title)
        self._recent = QVBoxLayout()
        self._recent.setSpacing(2)
        column.addLayout(self._recent)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(block, 100)
        row.addStretch(1)
        content = QWidget()
        around = QVBoxLayout(content)
        around.setContentsMargins(16, 16, 16, 16)
        around.addStretch(2)
        around.addLayout(row)
        around.addStretch(3)
        area = QScrollArea(self)  # below an error in a low window there is not room for all
        area.setWidget(content)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 1, 1, 1)
        outer.addWidget(area)
        self.set_recent([])

    def set_recent(self, scenes: list[Path]) -> None:
        """The scenes to offer, newest first; those that are gone are left out."""
        while (item := self._recent.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.deleteLater()
        there = [path for path in scenes if path.exists()][:MOST_RECENT]
        self.recent_title.setVisible(bool(there))
        for path in there:
            button = QPushButton((path.name or str(path)).replace("&", "&&"), self)
            button.setProperty("path", str(path))
            button.setToolTip(str(path))
            button.setAccessibleName(f"Open {path.name}")
            button.setStyleSheet("text-align: left;")
            set_role(button, "quiet")
            button.clicked.connect(self._choose)
            self._recent.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)

    def _choose(self) -> None:
        sender = self.sender()
        if sender is not None:
            self.scene_chosen.emit(Path(sender.property("path")))
