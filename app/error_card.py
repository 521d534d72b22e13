"""Errors as cards that stay until they are dismissed or over; repeats are counted, not stacked."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.diagnostics import Problem, system_facts
from app.split_row import SplitRow
from app.theme import set_role

MOST_CARDS = 3  # in sight; older ones wait behind


class ErrorCard(QWidget):
    """One problem: what, which file, and what can be done with the report."""

    dismissed = Signal(object)  # the card
    log_wanted = Signal()

    def __init__(self, problem: Problem, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.problem = problem
        self.count = 1
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "error-card")
        kind = "Warning" if problem.is_warning else "Error"
        self.setAccessibleName(f"{kind}: {problem.message}")
        self.message_label = self._text(problem.message, "")
        self.count_label = self._text("", "bad")
        self.count_label.hide()
        self.more_label = self._text("", "muted")
        self.more_label.hide()
        words = QWidget(self)
        line = QHBoxLayout(words)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._text(kind, "bad"))
        line.addWidget(self.count_label)
        line.addWidget(self.more_label)
        line.addStretch(1)
        row = SplitRow(words, 80, self)
        self.copy_button = self._button("Copy details", "Copy message, traceback and versions")
        self.copy_button.clicked.connect(self._copy)
        self.log_button = self._button("Open log", "Show the log")
        self.log_button.clicked.connect(self.log_wanted)
        self.dismiss_button = self._button("Dismiss", "Put this card away")
        self.dismiss_button.clicked.connect(self._dismiss)
        for button in (self.copy_button, self.log_button, self.dismiss_button):
            row.controls.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 8, 10)
        layout.setSpacing(4)
        layout.addWidget(row)
        layout.addWidget(self.message_label)
        self.path_label = self._text("", "muted")
        layout.addWidget(self.path_label)
        self.set_brief(False)

    def set_brief(self, brief: bool, more: int = 0) -> None:
        """Few words in few lines, for a low window; `more` cards wait behind.

        The file is named without its folders there.
        """
        message, path = self.problem.message, self.problem.path
        place = "" if path is None else str(path)
        self.message_label.setText(
            message.replace(place, path.name) if brief and path is not None else message
        )
        self.path_label.setText(place)
        self.path_label.setVisible(bool(place) and place not in message and not brief)
        self.setToolTip(f"{message}\n{place}".strip() if brief else "")
        self.copy_button.setText("Copy" if brief else "Copy details")
        self.log_button.setText("Log" if brief else "Open log")
        self.more_label.setText(f"{more} more")
        self.more_label.setVisible(more > 0)

    def repeat(self) -> None:
        """The same problem came again."""
        self.count += 1
        self.count_label.setText(f"{self.count} times")
        self.count_label.show()

    def report(self) -> str:
        """What is copied: message, file, details, versions."""
        parts = [self.problem.message]
        if self.problem.path is not None:
            parts.append(f"File: {self.problem.path}")
        if self.count > 1:
            parts.append(f"Met {self.count} times")
        if self.problem.details:
            parts.append(self.problem.details)
        return "\n\n".join([*parts, system_facts()])

    def _text(self, text: str, role: str) -> QLabel:
        label = QLabel(text, self)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setWordWrap(len(text) > 20)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        set_role(label, role)
        return label

    def _button(self, text: str, tooltip: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setToolTip(tooltip)
        button.setAccessibleName(text)
        set_role(button, "quiet")
        return button

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.report())

    def _dismiss(self) -> None:
        self.dismissed.emit(self)


class ErrorCards(QWidget):
    """The cards in the window, newest on top."""

    log_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cards: list[ErrorCard] = []
        self._brief, self._most = False, MOST_CARDS
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(6)
        self.hide()

    def show_problem(self, problem: Problem) -> None:
        """A card for the problem, or one more on the counter of its card."""
        for card in self.cards:
            if card.problem.key == problem.key:
                card.repeat()
                return
        card = ErrorCard(problem, self)
        card.dismissed.connect(self._put_away)
        card.log_wanted.connect(self.log_wanted)
        self.cards.insert(0, card)
        self._layout.insertWidget(0, card)
        self._show_newest()

    def set_room(self, most: int, *, brief: bool) -> None:
        """Show no more than the newest cards, and those in few words where the window is low."""
        if (most, brief) != (self._most, self._brief):
            self._most, self._brief = most, brief
            self._show_newest()

    def forget(self, is_over: Callable[[Problem], bool]) -> None:
        """Put the cards away that mean nothing any more."""
        for card in [card for card in self.cards if is_over(card.problem)]:
            self._put_away(card)

    def _put_away(self, card: ErrorCard) -> None:
        self.cards.remove(card)
        self._layout.removeWidget(card)
        card.deleteLater()
        self._show_newest()

    def _show_newest(self) -> None:
        for i, card in enumerate(self.cards):
            card.set_brief(self._brief, len(self.cards) - 1 if self._most == 1 else 0)
            card.setVisible(i < self._most)
        self.setVisible(bool(self.cards))
