"""What every panel of the window shares: a title row, a body, events in, commands out.

A panel holds no engine. The main window connects `posted` to the session and calls `handle` with
each event, `set_state` with each change of state and `set_colors` with each change of theme.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.palette import DARK, Palette
from app.theme import set_role
from engine.messages import Event, State


class Panel(QWidget):
    """A surface with a quiet title; subclasses fill `body` and may add controls to `header`."""

    posted = Signal(object)  # a Command

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "panel")
        self.setAccessibleName(title)
        self.colors: Palette = DARK
        self.state = State.EMPTY
        outer = QVBoxLayout(self)
        outer.setContentsMargins(12, 10, 12, 10)
        outer.setSpacing(8)
        self.header = QHBoxLayout()
        self.header.setSpacing(8)
        self.title_label = QLabel(title.upper(), self)
        set_role(self.title_label, "title")
        self.header.addWidget(self.title_label)
        self.header.addStretch(1)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        outer.addLayout(self.header)
        outer.addLayout(self.body, 1)

    def handle(self, event: Event) -> None:
        """Show what an event tells; the default shows nothing."""

    def set_state(self, state: State) -> None:
        """Enable what can be used in `state`."""
        self.state = state

    def set_colors(self, colors: Palette) -> None:
        """Repaint what the style sheet does not reach (plots, painted rows)."""
        self.colors = colors
