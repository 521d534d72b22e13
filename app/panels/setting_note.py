"""The line under a setting's row: what is wrong, or what there is to know, and a button."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.elided_label import LabelPlace
from app.theme import set_role


class SettingNote(QWidget):
    """A wrapped sentence that can be selected, with a small button where something can be done."""

    pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 2)
        self._label = QLabel()
        self._label.setWordWrap(True)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = QPushButton(self)
        set_role(self.button, "small")
        self.button.clicked.connect(self.pressed)
        line.addWidget(LabelPlace(self._label, self), 1)
        line.addWidget(self.button)

    @property
    def text(self) -> str:
        """The sentence."""
        return self._label.text()

    def say(self, text: str, role: str, action: str) -> None:
        """Show a sentence, and a button when `action` names one; "" hides the whole line."""
        if self._label.text() != text:
            self._label.setText(text)
        set_role(self._label, role)
        self.button.setText(action)
        self.button.setVisible(bool(action))
        self.setVisible(bool(text))
