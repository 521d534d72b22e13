"""The picture drawn by OpenGL: a texture on a QOpenGLWindow inside a container widget.

A window of its own costs a quarter of what a QOpenGLWidget costs, because the rest of the main
window is not recomposed through OpenGL. Only Qt's own GL functions are used, so that no second
library can look for a context of another platform. The overlay is painted by QPainter's raster
engine into an image and drawn as a second texture: the same pixels as in the painted view,
whatever the driver makes of lines and glyphs.
"""

from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QCursor,
    QExposeEvent,
    QGuiApplication,
    QImage,
    QOpenGLContext,
    QOpenGLFunctions,
    QPainter,
    QResizeEvent,
    QSurfaceFormat,
    QWindow,
)
from PySide6.QtOpenGL import (
    QOpenGLBuffer,
    QOpenGLShader,
    QOpenGLShaderProgram,
    QOpenGLWindow,
)
from PySide6.QtWidgets import QWidget
from shiboken6 import Shiboken

from app.viewport.surface import (
    OverlayPainter,
    Picture,
    SurfaceSignals,
    color_around,
)

SHADERS = Path(__file__).resolve().parent.parent.parent / "resources" / "shaders"

# OpenGL's own numbers; Qt's functions take them as they are
GL_FLOAT = 0x1406
GL_UNSIGNED_BYTE = 0x1401
GL_RGBA = 0x1908
GL_RGBA8 = 0x8058
GL_TEXTURE_2D = 0x0DE1
GL_TEXTURE0 = 0x84C0
GL_TEXTURE_MAG_FILTER, GL_TEXTURE_MIN_FILTER = 0x2800, 0x2801
GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T = 0x2802, 0x2803
GL_CLAMP_TO_EDGE = 0x812F
GL_NEAREST, GL_LINEAR = 0x2600, 0x2601
GL_UNPACK_ALIGNMENT = 0x0CF5
GL_TRIANGLE_STRIP = 0x0005
GL_COLOR_BUFFER_BIT = 0x4000
GL_DEPTH_TEST, GL_BLEND, GL_SCISSOR_TEST = 0x0B71, 0x0BE2, 0x0C11
GL_ONE, GL_ONE_MINUS_SRC_ALPHA = 1, 0x0303
WHOLE = (-1.0, 1.0, 1.0, -1.0)  # the window in clip coordinates


def surface_format() -> QSurfaceFormat:
    """A plain format whose swaps wait for no screen."""
    wanted = QSurfaceFormat()
    wanted.setSwapInterval(0)
    wanted.setDepthBufferSize(0)
    return wanted


class PictureTexture:
    """A texture, the shader that draws it and the rectangle it is drawn on."""

    def __init__(self, functions: QOpenGLFunctions) -> None:
        self._gl = functions
        self._program = QOpenGLShaderProgram()
        for kind, name in (
            (QOpenGLShader.ShaderTypeBit.Vertex, "picture.vert.glsl"),
            (QOpenGLShader.ShaderTypeBit.Fragment, "picture.frag.glsl"),
        ):
            source = (SHADERS / name).read_text(encoding="utf-8")
            if not self._program.addShaderFromSourceCode(kind, source):
                raise RuntimeError(f"The shader {name} does not compile: {self._program.log()}")
        self._program.bindAttributeLocation("corner", 0)
        if not self._program.link():
            raise RuntimeError(f"The picture's shaders do not link: {self._program.log()}")
        self._corners = QOpenGLBuffer(QOpenGLBuffer.Type.VertexBuffer)
        self._corners.create()
        self._corners.bind()
        corners = np.array([0, 0, 1, 0, 0, 1, 1, 1], dtype=np.float32).tobytes()
        self._corners.allocate(corners, len(corners))
        self._corners.release()
        # Not a QOpenGLTexture, which complains where its window goes without a word: this one
        # dies with its context. PySide6 writes into a buffer; its annotation says sequence.
        self._names = np.zeros(1, dtype=np.uint32)
        functions.glGenTextures(1, self._names)  # type: ignore[arg-type]
        functions.glBindTexture(GL_TEXTURE_2D, self._name)
        for side in (GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T):
            functions.glTexParameteri(GL_TEXTURE_2D, side, GL_CLAMP_TO_EDGE)
        self._size = (0, 0)

    @property
    def _name(self) -> int:
        return int(self._names[0])

    def upload(self, pixels: np.ndarray) -> None:
        """Take over RGBA8 pixels (height, width, 4)."""
        packed = np.ascontiguousarray(pixels)
        height, width = packed.shape[:2]
        gl = self._gl
        gl.glBindTexture(GL_TEXTURE_2D, self._name)
        gl.glPixelStorei(GL_UNPACK_ALIGNMENT, 1)
        # PySide6 takes any buffer here; its annotation says int
        data: int = packed  # type: ignore[assignment]
        if (width, height) == self._size:
            gl.glTexSubImage2D(
                GL_TEXTURE_2D, 0, 0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, data
            )
        else:
            gl.glTexImage2D(
                GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, data
            )
            self._size = (width, height)

    def draw(
        self, target: tuple[float, float, float, float], *, smooth: bool, see_through: bool = False
    ) -> None:
        """Draw it on `target` = x0, y0, x1, y1 in clip coordinates (y up).

        A picture's alpha is ignored; `see_through` blends premultiplied colours by it.
        """
        gl = self._gl
        if see_through:
            gl.glEnable(GL_BLEND)
            gl.glBlendFunc(GL_ONE, GL_ONE_MINUS_SRC_ALPHA)
        else:
            gl.glDisable(GL_BLEND)
        chosen = GL_LINEAR if smooth else GL_NEAREST
        gl.glActiveTexture(GL_TEXTURE0)
        gl.glBindTexture(GL_TEXTURE_2D, self._name)
        gl.glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, chosen)
        gl.glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, chosen)
        self._program.bind()
        self._program.setUniformValue(self._program.uniformLocation("target"), *target)
        self._program.setUniformValue1i(self._program.uniformLocation("picture"), 0)
        uses_alpha = self._program.uniformLocation("uses_alpha")
        self._program.setUniformValue1f(uses_alpha, 1.0 if see_through else 0.0)
        self._corners.bind()
        self._program.enableAttributeArray(0)
        self._program.setAttributeBuffer(0, GL_FLOAT, 0, 2)
        gl.glDrawArrays(GL_TRIANGLE_STRIP, 0, 4)
        self._program.disableAttributeArray(0)
        self._corners.release()
        self._program.release()
        gl.glBindTexture(GL_TEXTURE_2D, 0)

    def destroy(self) -> None:
        """Free texture and buffers; the context must be current."""
        self._gl.glDeleteTextures(1, self._names)  # type: ignore[arg-type]
        self._corners.destroy()
        self._program.removeAllShaders()


class GlWindow(QOpenGLWindow):
    """The window inside the container."""

    def __init__(self) -> None:
        super().__init__(QOpenGLWindow.UpdateBehavior.NoPartialUpdate)
        self.setFormat(surface_format())
        self.setFlag(Qt.WindowType.WindowDoesNotAcceptFocus)
        self.signals = SurfaceSignals(self)
        self.picture: Picture | None = None
        self.overlay: OverlayPainter | None = None
        self.stage = QColor(0, 0, 0)
        self._texture: PictureTexture | None = None
        self._overlay_texture: PictureTexture | None = None
        self._uploaded: np.ndarray | None = None
        self._painted: tuple[object, int, int] | None = None  # the overlay that was uploaded

    def device_size(self) -> tuple[int, int]:
        """Width and height in device pixels."""
        ratio = self.devicePixelRatio()
        return round(self.width() * ratio), round(self.height() * ratio)

    def initializeGL(self) -> None:
        """Make what drawing needs, once for each context."""
        self._texture = PictureTexture(self.context().functions())
        self._overlay_texture = PictureTexture(self.context().functions())
        self._uploaded, self._painted = None, None
        self.context().aboutToBeDestroyed.connect(self.release)

    def paintGL(self) -> None:
        """Draw stage, picture and overlay."""
        width, height = self.device_size()
        if width < 1 or height < 1:
            return
        gl = self.context().functions()
        for feature in (GL_DEPTH_TEST, GL_BLEND, GL_SCISSOR_TEST):
            gl.glDisable(feature)
        gl.glViewport(0, 0, width, height)
        around = color_around(self.picture, self.stage)
        gl.glClearColor(around.redF(), around.greenF(), around.blueF(), 1.0)
        gl.glClear(GL_COLOR_BUFFER_BIT)
        if self.picture is not None and self._texture is not None:
            self._draw(self.picture, self._texture, width, height)
        if self.overlay is not None and self._overlay_texture is not None:
            self._draw_overlay(self.overlay, self._overlay_texture, width, height)

    def _draw_overlay(
        self, overlay: OverlayPainter, texture: PictureTexture, width: int, height: int
    ) -> None:
        if self._painted != (overlay, width, height):
            ratio = self.devicePixelRatio()
            image = QImage(width, height, QImage.Format.Format_RGBA8888_Premultiplied)
            image.setDevicePixelRatio(ratio)
            image.fill(0)
            painter = QPainter(image)
            overlay.paint(painter, self.width(), self.height(), ratio)
            painter.end()
            rows = np.frombuffer(image.constBits(), dtype=np.uint8)
            texture.upload(rows.reshape(height, width, 4))
            self._painted = (overlay, width, height)
        texture.draw(WHOLE, smooth=False, see_through=True)

    def _draw(self, picture: Picture, texture: PictureTexture, width: int, height: int) -> None:
        if picture.pixels is not self._uploaded:
            texture.upload(picture.pixels)
            self._uploaded = picture.pixels
        x, y, w, h = picture.target
        clip = (
            2 * x / width - 1,
            1 - 2 * y / height,
            2 * (x + w) / width - 1,
            1 - 2 * (y + h) / height,
        )
        texture.draw(clip, smooth=picture.smooth and not picture.is_exact)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Tell of the new size."""
        super().resizeEvent(event)
        self.signals.resized.emit()

    def exposeEvent(self, event: QExposeEvent) -> None:
        """Tell of coming into view or leaving it."""
        super().exposeEvent(event)
        self.signals.exposed.emit()

    def release(self) -> None:
        """Free what lives in the context."""
        self.picture, self.overlay = None, None
        if self._texture is not None and self.context() is not None:
            self.makeCurrent()
            if QOpenGLContext.currentContext() is not None:
                self._texture.destroy()
                if self._overlay_texture is not None:
                    self._overlay_texture.destroy()
            self.doneCurrent()
        self._texture, self._overlay_texture = None, None
        self._uploaded, self._painted = None, None


class GlSurface(QWidget):
    """A `Surface` that holds a `GlWindow`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._window = GlWindow()
        self._container = QWidget.createWindowContainer(self._window, self)
        # Were the window inside to have the focus, no widget could take it back by itself
        self._container.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._container.setMinimumSize(QSize(1, 1))
        self.signals = self._window.signals
        application = QGuiApplication.instance()
        if isinstance(application, QGuiApplication):
            application.focusWindowChanged.connect(self._follow_focus)

    @property
    def widget(self) -> QWidget:
        """The widget around the container."""
        return self

    @property
    def sources(self) -> tuple[QObject, ...]:
        """The window inside gets the mouse, the surface itself the keyboard."""
        return (self._window, self)

    def present(self, picture: Picture | None, overlay: OverlayPainter | None) -> None:
        """Show a picture with an overlay at the next repaint."""
        self._window.picture, self._window.overlay = picture, overlay
        self._window.update()

    def pixel_size(self) -> tuple[int, int]:
        """Width and height in device pixels."""
        return self._window.device_size()

    def is_exposed(self) -> bool:
        """Whether anybody could see it."""
        return self.isVisible() and self._window.isExposed()

    def set_stage_color(self, color: str) -> None:
        """The colour around and without a picture."""
        self._window.stage = QColor(color)
        self._window.update()

    def set_cursor(self, shape: Qt.CursorShape) -> None:
        """The mouse pointer's shape over the surface."""
        self._window.setCursor(shape)

    def release(self) -> None:
        """Free the texture while its context still lives."""
        if Shiboken.isValid(self._window):
            self._window.release()

    def _follow_focus(self, window: QWindow | None) -> None:
        """Take the keyboard back from the main window after a click into this part of it.

        Window managers give it to the main window at every click; keys would then end in the
        container, which passes none on. A click elsewhere moves the focus by itself.
        """
        is_ours = window is not None and window is self.window().windowHandle()
        is_here = self.rect().contains(self.mapFromGlobal(QCursor.pos()))
        if is_ours and is_here and self._container.hasFocus():
            self._window.requestActivate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let the container fill the surface."""
        self._container.setGeometry(self.rect())
        super().resizeEvent(event)
