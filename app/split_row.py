"""Something at the left and controls at the right, or below it where there is little room."""

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QWidget

from app.flow_layout import FlowLayout

SPACING_PX = 8


class SplitRow(QWidget):
    """`controls` is the layout to add controls to; `left` keeps at least `least_px` beside them."""

    def __init__(self, left: QWidget, least_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._least_px = least_px
        right = QWidget(self)
        self.controls = FlowLayout(right)
        self.controls.setSpacing(SPACING_PX)
        self._box = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(SPACING_PX)
        self._left = left
        self._box.addWidget(left, 1)
        self._box.addWidget(right)
        for widget in (right, self):
            rule = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
            rule.setHeightForWidth(True)
            widget.setSizePolicy(rule)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the controls where there is room for them."""
        super().resizeEvent(event)
        self._place_controls()

    def event(self, event: QEvent) -> bool:
        """Do so as well where something in the row has another size."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._place_controls()
        return super().event(event)

    def _place_controls(self) -> None:
        least = max(self._least_px, self._left.minimumSizeHint().width())
        needed = least + SPACING_PX + self.controls.sizeHint().width()
        row, column = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._box.setDirection(row if needed <= self.width() else column)
