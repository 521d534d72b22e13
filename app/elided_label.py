"""A label that gives way where there is little room."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget


class ElidedLabel(QLabel):
    """A label whose text gives way in a narrow panel; the whole text is in `full_text`."""

    double_clicked = Signal()

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        super().__init__(parent)
        self._mode = mode
        self.full_text = text
        self._short = ""
        self._elide()

    def set_full_text(self, text: str, short: str = "") -> None:
        """Show `text`, or `short` where only that fits, or as much of it as does."""
        if text != self.full_text:
            self.full_text, self._short = text, short
            self._elide()
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """The size of the whole text."""
        width = self.fontMetrics().horizontalAdvance(self.full_text) + 2
        return QSize(width, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Three letters wide."""
        return QSize(self.fontMetrics().horizontalAdvance("mm…"), super().sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten anew."""
        super().resizeEvent(event)
        self._elide()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Tell of a double click."""
        self.double_clicked.emit()
        event.accept()

    def _elide(self) -> None:
        metrics, room = self.fontMetrics(), max(self.width(), 1)
        fits = not self._short or metrics.horizontalAdvance(self.full_text) <= room
        text = self.full_text if fits else self._short
        super().setText(metrics.elidedText(text, self._mode, room))


class LabelPlace(QWidget):
    """Holds one label and keeps its new texts to itself: QLabel would have the window laid out."""

    def __init__(self, label: QLabel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = label
        label.setParent(self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def sizeHint(self) -> QSize:
        """No width of its own, and as high as the label."""
        return QSize(0, self._label.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the label all there is."""
        super().resizeEvent(event)
        self._label.setGeometry(self.rect())
