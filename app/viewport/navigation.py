"""Mouse and keys over the view, turned into movements of the camera.

An event filter on whatever the surface receives its events with. It moves `CameraControls` and
says so; single keys that mean a command are passed on by name, for the action table to look up.
"""

import time

import numpy as np
from PySide6.QtCore import QEvent, QObject, QPointF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QDropEvent, QFocusEvent, QKeyEvent, QMouseEvent, QWheelEvent, QWindow

from app.viewport.camera_controls import CameraControls
from app.viewport.held_keys import HeldKeys

FLY_KEYS = {
    Qt.Key.Key_W: (0.0, 0.0, 1.0),
    Qt.Key.Key_S: (0.0, 0.0, -1.0),
    Qt.Key.Key_A: (-1.0, 0.0, 0.0),
    Qt.Key.Key_D: (1.0, 0.0, 0.0),
    Qt.Key.Key_Q: (0.0, 1.0, 0.0),
    Qt.Key.Key_E: (0.0, -1.0, 0.0),
}
FLIP_KEY = Qt.Key.Key_F
NOTCH = 120.0  # Qt's angle delta of one wheel step
PIXELS_PER_NOTCH = 60.0  # of a right drag
FLY_INTERVAL_MS = 16
MODIFIERS = (
    Qt.KeyboardModifier.ControlModifier
    | Qt.KeyboardModifier.AltModifier
    | Qt.KeyboardModifier.MetaModifier
)


class Navigation(QObject):
    """Watches a surface's events and moves the camera."""

    moved = Signal()  # the camera is another
    dragging = Signal(bool)  # a mouse button is held
    picked = Signal(QPointF)  # a double click, in logical pixels
    flip_held = Signal(bool)  # the key that shows the photo instead
    key_pressed = Signal(str)  # a single key with another meaning, such as "H" or "?"
    focus_changed = Signal(bool)
    pressed = Signal()  # a mouse button went down: the view wants the focus
    dropped = Signal(str)  # a local file or folder, on a window of its own that gets no other drops

    def __init__(self, sources: tuple[QObject, ...], parent: QObject) -> None:
        super().__init__(parent)
        self.controls: CameraControls | None = None
        self.height = 1  # of the view, in logical pixels
        self._buttons = Qt.MouseButton.NoButton
        self._last = QPointF()
        self._held = HeldKeys(self)
        self._held.went_down.connect(self._key_went_down)
        self._held.came_up.connect(self._key_came_up)
        self._fast = False
        self._fly_timer = QTimer(self)
        self._fly_timer.setInterval(FLY_INTERVAL_MS)
        self._fly_timer.timeout.connect(self._fly)
        self._flown_at = 0.0
        for source in sources:
            source.installEventFilter(self)

    def let_go(self) -> None:
        """Forget what is held; for when the view loses the scene."""
        self._let_keys_go()
        if self._buttons != Qt.MouseButton.NoButton:
            self._buttons = Qt.MouseButton.NoButton
            self.dragging.emit(False)

    def _let_keys_go(self) -> None:
        """Their release will be told to whoever has the keyboard; a drag's comes here all the same.

        Window managers move the focus about at a click into the window of the OpenGL view.
        """
        self._held.let_go()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle mouse, wheel, key and focus events; leave all others alone."""
        kind = event.type()
        if isinstance(event, QWheelEvent):
            return self._wheel(event)
        if isinstance(event, QMouseEvent):
            if kind == QEvent.Type.MouseButtonPress:
                return self._press(event)
            if kind == QEvent.Type.MouseMove:
                return self._move(event)
            if kind == QEvent.Type.MouseButtonRelease:
                return self._release(event)
            if kind == QEvent.Type.MouseButtonDblClick:
                self.pressed.emit()
                self.picked.emit(event.position())
                return True
        if isinstance(event, QKeyEvent):
            if kind == QEvent.Type.KeyPress:
                return self._key_press(event)
            if kind == QEvent.Type.KeyRelease:
                return self._key_release(event)
        if isinstance(event, QDropEvent) and isinstance(watched, QWindow):
            return self._drop(event)
        if isinstance(event, QFocusEvent):
            if kind == QEvent.Type.FocusOut:
                self._let_keys_go()
            self.focus_changed.emit(kind == QEvent.Type.FocusIn)
        return False

    def _drop(self, event: QDropEvent) -> bool:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            if event.type() == QEvent.Type.Drop:
                self.dropped.emit(paths[0])
        return True

    def _press(self, event: QMouseEvent) -> bool:
        self.pressed.emit()
        if self._buttons == Qt.MouseButton.NoButton and self.controls is not None:
            self._buttons = event.button()
            self._last = event.position()
            self.dragging.emit(True)
        return True

    def _release(self, event: QMouseEvent) -> bool:
        if event.button() == self._buttons:
            self._buttons = Qt.MouseButton.NoButton
            self.dragging.emit(False)
        return True

    def _move(self, event: QMouseEvent) -> bool:
        if self.controls is None or self._buttons == Qt.MouseButton.NoButton:
            return False
        if not event.buttons() & self._buttons:  # its release went to a dialog, say
            self._buttons = Qt.MouseButton.NoButton
            self.dragging.emit(False)
            return True
        step = event.position() - self._last
        self._last = event.position()
        if step.isNull():
            return True
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        left = self._buttons == Qt.MouseButton.LeftButton
        if left and not shift:
            self.controls.orbit(step.x(), step.y(), self.height)
        elif left or self._buttons == Qt.MouseButton.MiddleButton:
            self.controls.pan(step.x(), step.y(), self.height)
        elif self._buttons == Qt.MouseButton.RightButton:
            self.controls.zoom(-step.y() / PIXELS_PER_NOTCH)
        else:
            return False
        self.moved.emit()
        return True

    def _wheel(self, event: QWheelEvent) -> bool:
        if self.controls is not None and event.angleDelta().y():
            self.controls.zoom(event.angleDelta().y() / NOTCH)
            self.moved.emit()
        return True

    def _key_press(self, event: QKeyEvent) -> bool:
        if event.modifiers() & MODIFIERS:
            return False
        self._fast = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        key, is_new = Qt.Key(event.key()), self._held.press(event)
        if key == FLIP_KEY or (key in FLY_KEYS and self.controls is not None):
            return True
        name = {Qt.Key.Key_Space: "Space", Qt.Key.Key_Left: "Left", Qt.Key.Key_Right: "Right"}.get(
            key, event.text().upper().strip()
        )
        if name:
            if is_new or name in ("[", "]", "Left", "Right"):
                self.key_pressed.emit(name)
            return True
        return key == Qt.Key.Key_Shift

    def _key_release(self, event: QKeyEvent) -> bool:
        self._fast = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        was_held = event.key() in self._held
        self._held.release(event)
        return was_held

    @Slot(int)
    def _key_went_down(self, key: int) -> None:
        if key == FLIP_KEY:
            self.flip_held.emit(True)
        elif key in FLY_KEYS and self.controls is not None and not self._fly_timer.isActive():
            self._flown_at = time.monotonic()
            self._fly_timer.start()

    @Slot(int)
    def _key_came_up(self, key: int) -> None:
        if key == FLIP_KEY:
            self.flip_held.emit(False)
        elif key in FLY_KEYS and not self._flying():
            self._fly_timer.stop()

    def _flying(self) -> list[tuple[float, float, float]]:
        return [direction for key, direction in FLY_KEYS.items() if key in self._held]

    def _fly(self) -> None:
        now = time.monotonic()
        seconds, self._flown_at = min(now - self._flown_at, 0.1), now
        if self.controls is None:
            return
        self.controls.fly(np.sum(self._flying(), axis=0), seconds, fast=self._fast)
        self.moved.emit()
