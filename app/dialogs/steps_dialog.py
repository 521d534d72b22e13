"""Asks for a number of steps: until which step to run, or for how many more."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.theme import set_role


def parse_steps(text: str) -> int | None:
    """A whole number as people type it (`3,000`, `3 000`, `3_000`, `3k`); None for none."""
    plain = text.strip().lower().removesuffix("steps").strip()
    factor = 1
    for suffix, value in (("k", 1_000), ("m", 1_000_000)):
        if plain.endswith(suffix):
            plain, factor = plain.removesuffix(suffix), value
    plain = plain.replace(",", "").replace("_", "").replace(" ", "")
    try:
        number = float(plain) * factor
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


class StepsDialog(QDialog):
    """A question, a field that takes `3,000`, and what is wrong with it."""

    chosen = Signal(int)

    def __init__(
        self,
        title: str,
        question: str,
        suggestion: int,
        lowest: int,
        highest: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self._lowest, self._highest = lowest, highest
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 16, 16, 16)
        layout.setSpacing(8)
        label = QLabel(question, self)
        label.setWordWrap(True)
        self.field = QLineEdit(f"{suggestion:,}", self)
        self.field.setAccessibleName(question)
        self.field.setToolTip(f"{lowest:,} to {highest:,}")
        self.field.selectAll()
        self.problem = QLabel(" ", self)
        set_role(self.problem, "bad")
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel, self
        )
        self.ok_button = buttons.button(QDialogButtonBox.StandardButton.Ok)
        self.ok_button.setText(title)
        set_role(self.ok_button, "primary")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        for widget in (label, self.field, self.problem, buttons):
            layout.addWidget(widget)
        self.field.textChanged.connect(self._check)
        self.setMinimumWidth(320)
        self._check()

    @property
    def steps(self) -> int | None:
        """The number typed, when it is one that can be taken."""
        number = parse_steps(self.field.text())
        if number is None or not self._lowest <= number <= self._highest:
            return None
        return number

    def accept(self) -> None:
        """Tell the number and close; nothing happens while it is wrong."""
        number = self.steps
        if number is not None:
            super().accept()
            self.chosen.emit(number)

    def _check(self) -> None:
        number = parse_steps(self.field.text())
        message = " "
        if number is None:
            message = "Type a whole number, such as 3,000."
        elif self.steps is None:
            message = f"Expected {self._lowest:,} to {self._highest:,}."
        self.problem.setText(message)
        set_role(self.field, "bad" if message.strip() else "")
        self.ok_button.setEnabled(self.steps is not None)


def run_until_dialog(step: int, iterations: int, parent: QWidget) -> StepsDialog:
    """Until which step to train before pausing; `step` are done."""
    suggestion = min((step // 100 + 1) * 100, max(iterations, step + 1))
    return StepsDialog(
        "Run until",
        f"Train until this step, then pause (now at {step:,}):",
        suggestion,
        step + 1,
        max(iterations, step + 1),
        parent,
    )
