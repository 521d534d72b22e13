"""The picture painted by QPainter: no OpenGL, 3 % of a core at 30 frames a second.

At fractional display scales a widget may start between two device pixels. The picture is then
laid on the nearest whole one, so that its pixels are never blended with their neighbours.
"""

import numpy as np
from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QHideEvent,
    QImage,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QTransform,
)
from PySide6.QtWidgets import QWidget

from app.viewport.surface import (
    OverlayPainter,
    Picture,
    SurfaceSignals,
    color_around,
)


def image_of(pixels: np.ndarray) -> QImage:
    """A QImage with its own copy of RGBA8 pixels (height, width, 4); alpha is ignored."""
    packed = np.ascontiguousarray(pixels)
    height, width = packed.shape[:2]
    borrowed = QImage(packed.data, width, height, 4 * width, QImage.Format.Format_RGBX8888)
    return borrowed.convertToFormat(QImage.Format.Format_RGB32)  # copies into Qt's own memory


def device_size(widget: QWidget) -> tuple[int, int]:
    """A widget's size in device pixels."""
    ratio = widget.devicePixelRatioF()
    return round(widget.width() * ratio), round(widget.height() * ratio)


class PaintedSurface(QWidget):
    """A `Surface` that paints with QPainter's raster engine."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.signals = SurfaceSignals(self)
        self._stage = QColor(0, 0, 0)
        self._picture: Picture | None = None
        self._image: QImage | None = None
        self._overlay: OverlayPainter | None = None

    @property
    def widget(self) -> QWidget:
        """The surface itself."""
        return self

    @property
    def sources(self) -> tuple[QObject, ...]:
        """The surface itself."""
        return (self,)

    def present(self, picture: Picture | None, overlay: OverlayPainter | None) -> None:
        """Show a picture with an overlay at the next repaint."""
        if picture is None:
            self._image = None
        elif self._picture is None or picture.pixels is not self._picture.pixels:
            self._image = image_of(picture.pixels)
        self._picture, self._overlay = picture, overlay
        self.update()

    def pixel_size(self) -> tuple[int, int]:
        """Width and height in device pixels."""
        return device_size(self)

    def is_exposed(self) -> bool:
        """Whether anybody could see it."""
        handle = self.window().windowHandle()
        return self.isVisible() and handle is not None and handle.isExposed()

    def set_stage_color(self, color: str) -> None:
        """The colour around and without a picture."""
        self._stage = QColor(color)
        self.update()

    def set_cursor(self, shape: Qt.CursorShape) -> None:
        """The mouse pointer's shape over the surface."""
        self.setCursor(shape)

    def release(self) -> None:
        """Let the picture go."""
        self.present(None, None)

    def event(self, event: QEvent) -> bool:
        """Take Tab as any widget does; tell of a change of the device pixel ratio."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.signals.resized.emit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Tell of the new size."""
        super().resizeEvent(event)
        self.signals.resized.emit()

    def showEvent(self, event: QShowEvent) -> None:
        """Tell of coming into view."""
        self.signals.exposed.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        """Tell of leaving the view."""
        self.signals.exposed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint stage, picture and overlay."""
        painter = QPainter(self)
        ratio = self.devicePixelRatioF()
        painter.fillRect(self.rect(), color_around(self._picture, self._stage))
        if self._picture is not None and self._image is not None:
            painter.save()
            _to_device_pixels(painter)
            x, y, width, height = self._picture.target
            if self._picture.is_exact:
                painter.drawImage(round(x), round(y), self._image)
            else:
                painter.setRenderHint(
                    QPainter.RenderHint.SmoothPixmapTransform, self._picture.smooth
                )
                painter.drawImage(QRectF(x, y, width, height), self._image)
            painter.restore()
        if self._overlay is not None:
            self._overlay.paint(painter, self.width(), self.height(), ratio)
        painter.end()


def _to_device_pixels(painter: QPainter) -> None:
    """Make the painter's unit one device pixel, its origin the widget's first whole pixel."""
    here = painter.deviceTransform()
    whole = QTransform.fromTranslate(round(here.dx()), round(here.dy()))
    inverse, _ = here.inverted()
    painter.setWorldTransform(whole * inverse * painter.worldTransform())
