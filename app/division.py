"""How the parts of a splitter share its room, as the user wants it."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QSplitter, QWidget

HANDLE_PX = 8


class Division(QObject):
    """A splitter's wanted sizes, kept through times when a small window has no room for them.

    A drag changes what is wanted of the two parts beside the handle; a smaller window, which
    squeezes parts, changes nothing.
    """

    def __init__(
        self,
        parent: QWidget,
        direction: Qt.Orientation,
        widgets: Sequence[QWidget],
        stretches: Sequence[int],
        sizes: Sequence[int],
    ) -> None:
        super().__init__(parent)
        self.splitter = QSplitter(direction, parent)
        self.splitter.setHandleWidth(HANDLE_PX)
        self.splitter.setChildrenCollapsible(False)
        for i, (widget, stretch) in enumerate(zip(widgets, stretches, strict=True)):
            self.splitter.addWidget(widget)
            self.splitter.setStretchFactor(i, stretch)
        self._wanted = list(sizes)
        self.share_out()
        self.splitter.splitterMoved.connect(self._note)

    @property
    def wanted(self) -> list[int]:
        """The parts' sizes in px where there is room for them."""
        return list(self._wanted)

    def want(self, sizes: Sequence[int]) -> None:
        """Share the room by these sizes; none that a splitter of other parts had."""
        if len(sizes) == self.splitter.count() and all(size > 0 for size in sizes):
            self._wanted = list(sizes)
            self.share_out()

    def share_out(self) -> None:
        """Give each part what is wanted, as far as there is room."""
        self.splitter.setSizes(self._wanted)

    def _note(self, _place: int, handle: int) -> None:
        now = self.splitter.sizes()
        for part in (handle - 1, handle):
            self._wanted[part] = now[part]
