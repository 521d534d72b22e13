"""A label that gives way where there is little room."""

from PySide6.QtCore import QEvent, QSize, Qt, Signal
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
    """Holds one label and keeps its new texts to itself, but for those of another height.

    QLabel would have every layout up to the window's done anew, each with a repaint of its own.
    """

    def __init__(self, label: QLabel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = label
        label.setParent(self)
        self._asked_height = 0
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(label.wordWrap())
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        """No width of its own, and as high as the label."""
        return QSize(0, self._label.sizeHint().height())

    def heightForWidth(self, width: int) -> int:
        """That of the label, which knows it only where it wraps its text."""
        height = self._label.heightForWidth(width)
        return height if height >= 0 else self._label.sizeHint().height()

    def event(self, event: QEvent) -> bool:
        """Pass a label's wish for another place on where its text has another height."""
        if event.type() == QEvent.Type.LayoutRequest:
            needed = self.heightForWidth(self.width())
            if needed != self._asked_height:
                self._asked_height = needed
                self.updateGeometry()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the label all there is."""
        super().resizeEvent(event)
        self._asked_height = self.heightForWidth(self.width())
        self._label.setGeometry(self.rect())
