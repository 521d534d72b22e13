"""The head of a plot: title, small controls, and the legend as coloured words."""

import dataclasses
from collections.abc import Sequence

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.palette import DARK, Palette
from app.theme import set_role

LINE_HEIGHT_PX = 20


@dataclasses.dataclass(frozen=True)
class Curve:
    """One curve: its key, its word in the legend, its colour's name in the palette."""

    key: str
    word: str
    color: str
    dots: bool = False
    digits: int = 4  # significant, under the pointer; 0 for whole numbers


class PlotHeader(QWidget):
    """One line, or two where the legend does not fit beside the title."""

    def __init__(self, title: str, curves: Sequence[Curve], parent: QWidget) -> None:
        super().__init__(parent)
        self._curves = tuple(curves)
        self._colors = DARK
        self._words = {curve.key: curve.word for curve in curves}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._line = QHBoxLayout()
        self._line.setSpacing(8)
        self._line.addStrut(LINE_HEIGHT_PX)
        label = QLabel(title.upper(), self)
        set_role(label, "title")
        self._beside: list[QWidget] = [label]
        self._line.addWidget(label)
        self._line.addStretch(1)
        self._column.addLayout(self._line)
        self._legend = QWidget(self)
        words = QHBoxLayout(self._legend)
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(8)
        words.addStretch(1)
        self._labels = {curve.key: QLabel(self._legend) for curve in curves}
        for word in self._labels.values():
            words.addWidget(word)
        self._line.addWidget(self._legend)
        self._corner: QWidget | None = None
        self._is_one_line = True
        self._write()

    def add_control(self, control: QWidget) -> None:
        """Put a small control beside the title."""
        self._line.insertWidget(self._line.indexOf(self._beside[-1]) + 1, control)
        self._beside.append(control)

    def add_corner(self, control: QWidget) -> None:
        """Put a control at the right end, which is at the same place in every plot there."""
        self._line.addWidget(control)
        self._corner = control
        self._arrange()

    def set_word(self, key: str, word: str, tooltip: str) -> None:
        """Change a curve's word."""
        self._words[key] = word
        self._labels[key].setToolTip(tooltip)
        self._write()

    def set_colors(self, colors: Palette) -> None:
        """Take the colours of a theme."""
        self._colors = colors
        self._write()

    def text(self, key: str) -> str:
        """A curve's word as it stands in the legend."""
        return self._labels[key].text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take a second line where one is too narrow."""
        super().resizeEvent(event)
        self._arrange()

    def _write(self) -> None:
        for curve in self._curves:
            label = self._labels[curve.key]
            label.setText(f"● {self._words[curve.key]}")
            color = getattr(self._colors, curve.color)
            label.setStyleSheet(f"color: {color}; font-size: 8.5pt")
        self._arrange()

    def _arrange(self) -> None:
        needed = self._legend.sizeHint().width()
        for widget in (*self._beside, self._corner):
            if widget is not None and widget.isVisibleTo(self):
                needed += widget.sizeHint().width() + self._line.spacing()
        fits = needed <= self.width()
        if fits == self._is_one_line:
            return
        self._is_one_line = fits
        if fits:
            self._column.removeWidget(self._legend)
            end = self._line.count() - (self._corner is not None)
            self._line.insertWidget(end, self._legend)
        else:
            self._line.removeWidget(self._legend)
            self._column.addWidget(self._legend)
