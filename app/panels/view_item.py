"""What is drawn over the whole of a plot."""

import pyqtgraph as pg
from PySide6.QtCore import QRectF


class ViewItem(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph is untyped
    """An item that is as large as what is in view, whatever it draws there."""

    def boundingRect(self) -> QRectF:
        """All that is in view."""
        return QRectF(self.viewRect())

    def follow_view(self, *_: object) -> None:
        """The range or the size of the view has changed."""
        self.prepareGeometryChange()
        self.update()
