"""The small controls in a setting's row: slider, value field, choice, label, elided text.

They differ from Qt's own in what suits a long scrolled list of live settings: the wheel scrolls
the list unless a control has the focus, a click on a slider's groove goes there at once, and
undo keys reach the window when there is no half-typed text to undo.
"""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QComboBox,
    QLineEdit,
    QSlider,
    QStyle,
    QToolButton,
    QWidget,
)

from app.theme import set_role


class Slider(QSlider):
    """A horizontal slider that jumps to where it is clicked."""

    def __init__(self, last: int, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setRange(0, last)
        self.setSingleStep(max(1, last // 200))
        self.setPageStep(max(1, last // 20))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumWidth(40)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Put the knob under the pointer, then let Qt drag it from there."""
        if event.button() == Qt.MouseButton.LeftButton:
            knob = self.style().pixelMetric(QStyle.PixelMetric.PM_SliderLength, None, self)
            span = max(self.width() - knob, 1)
            offset = round(event.position().x()) - knob // 2
            target = QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), offset, span)
            self.setSliderDown(True)
            self.setSliderPosition(target)
        super().mousePressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the list, unless this slider was chosen with a click or Tab."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Choice(QComboBox):
    """A choice of words that leaves the wheel to the list."""

    def __init__(self, words: tuple[str, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.addItems(list(words))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the list."""
        event.ignore()


STAYS = (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason)


class TypedLine(QLineEdit):
    """A line whose undo keys are the window's, unless something typed here waits."""

    def event(self, event: QEvent) -> bool:
        """Let undo and redo keys pass to the window's shortcuts."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self._is_for_window(event)
        ):
            event.ignore()
            return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave undo and redo alone also where the window has nothing to undo."""
        if self._is_for_window(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _is_for_window(self, event: QKeyEvent) -> bool:
        keys = (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo)
        return not self.isModified() and any(event.matches(key) for key in keys)


class ValueField(TypedLine):
    """A line for one value; Escape takes back what was typed."""

    abandoned = Signal()
    left = Signal()  # for another part of the window

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape abandons the text."""
        if event.key() == Qt.Key.Key_Escape and self.isModified():
            self.abandoned.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select the text when the focus comes by a key, ready to be replaced."""
        super().focusInEvent(event)
        if event.reason() != Qt.FocusReason.MouseFocusReason:
            self.selectAll()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Say that the user went elsewhere; a menu or another window is no such place."""
        super().focusOutEvent(event)
        if event.reason() not in STAYS:
            self.left.emit()


class ResetDot(QToolButton):
    """The amber dot before a changed setting's name: a button that takes the change back."""

    DOT = "●"
    BACK = "↺"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(self.DOT)
        self.setFixedSize(16, 18)
        set_role(self, "dot")

    def offer(self, offered: bool) -> None:
        """Show the arrow of a reset in place of the dot, as the pointer or the focus comes."""
        self.setText(self.BACK if offered or self.hasFocus() else self.DOT)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the arrow."""
        super().focusInEvent(event)
        self.offer(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show the dot again."""
        super().focusOutEvent(event)
        self.offer(False)
