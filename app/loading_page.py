"""What the window shows while a scene is read and nothing of it is known yet."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.actions import Actions
from app.elided_label import ElidedLabel
from app.theme import set_role
from engine.messages import LoadingProgressed

WIDTH_PX = 420


class LoadingPage(QWidget):
    """In place of the empty page: the scene's name, the file that is read, and a way out."""

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "panel")
        self.setAccessibleName("A scene is being opened")
        self.heading = ElidedLabel("", self, Qt.TextElideMode.ElideMiddle)
        set_role(self.heading, "heading")
        self.stage = QLabel(self)
        self.stage.setWordWrap(True)
        self.file = ElidedLabel("", self, Qt.TextElideMode.ElideMiddle)
        set_role(self.file, "muted")
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Loading progress")
        cancel = actions["cancel_loading"]
        self.cancel_button = QPushButton(cancel.text(), self)
        self.cancel_button.setToolTip(cancel.toolTip())
        self.cancel_button.clicked.connect(cancel.trigger)
        block = QWidget(self)
        block.setMaximumWidth(WIDTH_PX)
        column = QVBoxLayout(block)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        for widget in (self.heading, self.stage, self.bar, self.file):
            column.addWidget(widget)
        column.addSpacing(4)
        column.addWidget(self.cancel_button, 0, Qt.AlignmentFlag.AlignLeft)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(block, 100)
        row.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(16, 16, 16, 16)
        outer.addStretch(2)
        outer.addLayout(row)
        outer.addStretch(3)
        self.start("")

    def start(self, what: str) -> None:
        """A loading has begun."""
        self.heading.set_full_text(f"Opening {what} …" if what else "Opening …")
        self.stage.setText("Looking at the files")
        self.file.set_full_text("")
        self.bar.setRange(0, 0)

    def show_progress(self, event: LoadingProgressed) -> None:
        """How far the loading is."""
        count = f"  ·  {event.done:,} of {event.total:,}" if event.total > 1 else ""
        self.stage.setText(event.stage + count)
        self.file.set_full_text(event.file)
        self.bar.setRange(0, max(0, event.total))
        self.bar.setValue(event.done)
