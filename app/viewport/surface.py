"""What both ways of painting have in common: a picture below, an overlay above, input events.

A surface knows nothing of cameras or engines. `Viewport` hands it the two and listens to the
events of `sources`.
"""

import dataclasses
from typing import Protocol

import numpy as np
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QWidget


@dataclasses.dataclass(frozen=True, eq=False)
class Picture:
    """RGBA8 pixels (height, width, 4), never written again, and where they go.

    `target` is x, y, width, height in device pixels of the surface. Pixels that keep their size
    are shown unchanged; others are scaled, `smooth` or as blocks. `around` is the colour beside
    it, in [0, 1]; None: the stage's.
    """

    pixels: np.ndarray
    target: tuple[float, float, float, float]
    smooth: bool = True
    around: tuple[float, float, float] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether each pixel of the picture is one pixel of the screen."""
        x, y, width, height = self.target
        size_kept = (width, height) == (self.pixels.shape[1], self.pixels.shape[0])
        return size_kept and x == round(x) and y == round(y)


def color_around(picture: Picture | None, stage: QColor) -> QColor:
    """What to fill the surface with before the picture is laid on it."""
    if picture is None or picture.around is None:
        return stage
    return QColor.fromRgbF(*picture.around)


class OverlayPainter(Protocol):
    """Paints over a picture; the painter's units are logical pixels."""

    def paint(self, painter: QPainter, width: float, height: float, ratio: float) -> None:
        """Paint on a surface of `width` x `height` logical pixels of `ratio` device pixels."""


class SurfaceSignals(QObject):
    """What a surface has to tell."""

    resized = Signal()  # the size in device pixels may be another
    exposed = Signal()  # it came into view, or left it


class Surface(Protocol):
    """A place where pictures are shown; `PaintedSurface` and `GlSurface` are its two kinds."""

    signals: SurfaceSignals

    @property
    def widget(self) -> QWidget:
        """The widget to lay out; it has the focus when the view has it."""

    @property
    def sources(self) -> tuple[QObject, ...]:
        """The objects that receive mouse, key and focus events, for an event filter."""

    def present(self, picture: Picture | None, overlay: OverlayPainter | None) -> None:
        """Show a picture (None: the empty stage) with an overlay, soon."""

    def pixel_size(self) -> tuple[int, int]:
        """Width and height in device pixels; 0 when there is nothing to paint on."""

    def is_exposed(self) -> bool:
        """Whether anybody could see it."""

    def set_stage_color(self, color: str) -> None:
        """The colour around and without a picture."""

    def set_cursor(self, shape: Qt.CursorShape) -> None:
        """The mouse pointer's shape over the surface."""

    def release(self) -> None:
        """Give graphics memory back; nothing is painted afterwards."""
