"""The view of the scene: what is asked of the engine, what is shown, and what is painted over it.

One class serves both surfaces (`painted_viewport`, `gl_viewport`). It owns the camera, asks for
pictures while anybody can see them, and lays overlays on them with each picture's own camera.
"""

import dataclasses
import math
import time

import numpy as np
from PySide6.QtCore import QEvent, QObject, QPointF, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QImage, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.palette import Palette
from app.viewport.answer_time import AnswerTime
from app.viewport.camera_controls import CameraControls, Viewpoint, picked_point
from app.viewport.composition import HINT, Composition, same_picture
from app.viewport.gl_viewport import GlSurface
from app.viewport.navigation import Navigation
from app.viewport.overlays import Overlay, Pill
from app.viewport.painted_viewport import PaintedSurface, image_of
from app.viewport.photo_pictures import Decoder, PhotoPictures
from app.viewport.surface import Surface
from engine.cameras import Camera
from engine.messages import Frame, SceneOpened, View
from engine.training.photos import BLACK, Color

MOVING_MS = 250  # how long after the last input the camera counts as moving
FRAME_INTERVAL_MS = 33  # repaints for new frames come no faster
FRAMES_APART_SECONDS = 4.0  # at most, where one follows the other (see ViewScheduler)
LATE_MS = 400  # a picture of an older view is called so after this long


class Viewport(QWidget):
    """The middle of the window."""

    view_requested = Signal(object)  # View or None
    worked = Signal(float)  # the seconds of this thread since the frame before
    photo_changed = Signal(int)  # the photo through whose camera the view looks, -1: none
    key_pressed = Signal(str)  # a single key that is not the camera's
    noticed = Signal(str)  # a quiet word for the user
    dropped = Signal(str)  # the path of a scene

    def __init__(
        self, surface: Surface, kind: str, decode: Decoder, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.kind = kind
        self.surface = surface
        self.shown = Composition()
        self.scene: SceneOpened | None = None
        self.frame: Frame | None = None
        self.view: View | None = None  # the newest one asked for
        self.photo = -1
        self.background: Color = BLACK  # behind the splats, and behind photos with transparency
        self._held: CameraControls | None = None  # of a view that moves and asks no more
        self._view_count = 0
        self._answer_time = AnswerTime()
        self._flipped = False
        self._focused = False
        self._moving_until = 0.0
        self._presented_at = 0.0
        self._worked = (-math.inf, 0.0)  # the last frame's time, and this thread's then
        self._dragging = False
        self._run_id = 0
        self.photos = PhotoPictures(decode, self)
        self.navigation = Navigation(surface.sources, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(surface.widget)
        self.setFocusProxy(surface.widget)
        self.setMinimumSize(120, 90)
        for part in (surface.widget, surface.widget.focusProxy()):  # the proxy has the focus
            if part is not None:
                part.setAccessibleName("View of the scene")
                part.setAccessibleDescription(HINT)
        self._rest_timer = self._single_shot(MOVING_MS, self._come_to_rest)
        self._frame_timer = self._single_shot(FRAME_INTERVAL_MS, self.present)
        self._late_timer = self._single_shot(LATE_MS, self.present)
        self._connect()

    def _single_shot(self, milliseconds: int, slot: object) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(milliseconds)
        timer.timeout.connect(slot)
        return timer

    def _connect(self) -> None:
        self.surface.signals.resized.connect(self._resized)
        self.surface.signals.exposed.connect(self.update_request)
        self.navigation.moved.connect(self._moved_by_hand)
        self.navigation.dragging.connect(self._set_dragging)
        self.navigation.picked.connect(self._focus_on)
        self.navigation.flip_held.connect(self.set_flipped)
        self.navigation.key_pressed.connect(self.key_pressed)
        self.navigation.focus_changed.connect(self._set_focused)
        self.navigation.pressed.connect(self.take_focus)
        self.navigation.dropped.connect(self.dropped)
        self.photos.ready.connect(self._photo_ready)
        self.photos.failed.connect(self._photo_failed)

    # --- what the window tells ---

    def set_scene(self, scene: SceneOpened | None) -> None:
        """Another scene, or none; the first view is a photo's camera."""
        self.navigation.let_go()
        self.scene, self.frame = scene, None
        self._run_id = scene.run_id if scene is not None else 0
        self.shown.set_scene(scene)
        self._flipped = False
        self.navigation.controls = self._held = None
        self.photos.set_photos(scene.photos if scene is not None else ())
        self._set_photo(-1)
        if scene is not None and scene.photos:
            cameras = [photo.camera for photo in scene.photos]
            first = next((i for i, p in enumerate(scene.photos) if p.held_out), 0)
            home = Viewpoint(cameras[first].world_to_camera, np.array(scene.pivot), cameras[first])
            self.navigation.controls = CameraControls(home, np.array(scene.up), scene.extent)
            self._set_photo(first)
        self._camera_changed(moving=False)

    def show_frame(self, frame: Frame) -> None:
        """Show a finished picture, unless a newer one is shown already."""
        if self.scene is None or frame.run_id < self._run_id:
            return
        shown = self.frame if frame.run_id == self._run_id else None  # a restart counts anew
        if shown is not None and (frame.view_id, frame.step) < (shown.view_id, shown.step):
            return
        self._run_id = frame.run_id
        self.frame = frame
        self._answer_time.answer(frame.view_id, time.monotonic())
        self._tell_work()
        wait = FRAME_INTERVAL_MS - (time.monotonic() - self._presented_at) * 1000
        if wait <= 0:
            self.present()
        elif not self._frame_timer.isActive():
            self._frame_timer.start(int(wait) + 1)

    def _tell_work(self) -> None:
        before, self._worked = self._worked, (time.monotonic(), time.thread_time())
        if self._worked[0] - before[0] < FRAMES_APART_SECONDS:  # else it was not for pictures
            self.worked.emit(self._worked[1] - before[1])

    def set_held_out_psnr(self, psnr: float, step: int) -> None:
        """The mean PSNR of the held-out photos after a step, for its pill."""
        self.shown.held_out = psnr, step
        self.present()

    def set_preview(self, preview: str) -> None:
        """The preview setting: live, still or off."""
        self.shown.preview = preview
        self.present()

    def set_background(self, background: Color) -> None:
        """What lies behind the splats, and behind photos with transparency; in [0, 1]."""
        if background == self.background:
            return
        self.background = background
        self.photos.set_background(background)
        if self._flipped:
            self.photos.get(self.photo)
        self.update_request()
        self.present()

    def set_colors(self, colors: Palette) -> None:
        """Another theme."""
        self.shown.set_colors(colors)
        self.surface.set_stage_color(colors.stage)
        self.present()

    def set_cameras_shown(self, shown: bool) -> None:
        """Whether the photos' cameras are drawn."""
        self.shown.cameras_shown = shown
        self.present()

    def set_pivot_shown(self, shown: bool) -> None:
        """Whether the point about which the view turns is marked while it moves."""
        self.shown.pivot_shown = shown
        self.present()

    def set_labels_shown(self, shown: bool) -> None:
        """Whether step, size, PSNR and the hint are written over the picture."""
        self.shown.labels_shown = shown
        self.present()

    def hold(self) -> None:
        """Ask for nothing more and move no more; the last picture stays."""
        for timer in (self._rest_timer, self._frame_timer, self._late_timer):
            timer.stop()
        self.navigation.let_go()
        self._held, self.navigation.controls = self.navigation.controls or self._held, None
        self.update_request()

    def close_view(self) -> None:
        """Free graphics memory, behind a photo that is being decoded; nothing is shown any more."""
        self.hold()
        self.scene = None
        self.photos.close()
        self.surface.release()

    # --- what the user asks ---

    def go_home(self) -> None:
        """Back to the first view."""
        controls = self.navigation.controls
        if controls is not None and self.scene is not None:
            controls.home()
            home = controls.home_viewpoint.lens
            self._set_photo([photo.camera for photo in self.scene.photos].index(home))
            self._camera_changed(moving=False)

    def go_to_photo(self, index: int) -> None:
        """Look through a photo's camera."""
        controls = self.navigation.controls
        if controls is None or self.scene is None or not 0 <= index < len(self.scene.photos):
            return
        controls.jump(self.scene.photos[index].camera)
        self._set_photo(index)
        self.photos.get(index)  # a flip to it is likely to come
        self._camera_changed(moving=False)

    def set_flipped(self, flipped: bool) -> None:
        """Show the photo in place of the render, at a photo's camera."""
        if flipped == self._flipped:
            return
        if flipped and self.scene is not None:
            if self.photo < 0:
                self.noticed.emit("Choose a photo first ([ or ]); then hold F to compare with it.")
                return
            if self.photos.get(self.photo) is None and not self.shown.labels_shown:
                self.noticed.emit(f"Decoding {self.scene.photos[self.photo].name} …")
        self._flipped = flipped
        self.present()

    def picture(self) -> QImage | None:
        """The render that is shown, without overlays, with its own pixels."""
        return None if self.frame is None else image_of(self.frame.pixels)

    def take_focus(self) -> None:
        """Give the view the keyboard."""
        self.surface.widget.setFocus(Qt.FocusReason.MouseFocusReason)

    # --- requests ---

    def wanted_camera(self) -> Camera | None:
        """The camera of the view at its present size; None when there is nothing to see."""
        width, height = self.surface.pixel_size()
        controls = self.navigation.controls or self._held
        if controls is None or width < 1 or height < 1:
            return None
        return controls.camera(width, height)

    def update_request(self) -> None:
        """Ask the engine for the present view, or for none where nobody could see it."""
        camera = self.wanted_camera() if self._is_seen() else None
        if camera is None:
            if self.view is not None:
                self.view = None
                self._late_timer.stop()
                self.view_requested.emit(None)
            return
        moving = time.monotonic() < self._moving_until
        if (
            self.view is not None
            and (self.view.moving, self.view.background) == (moving, self.background)
            and same_picture(self.view.camera, camera)
        ):
            return
        self._view_count += 1
        self.view = View(self._view_count, camera, moving, self.background)
        self._late_timer.start()
        if moving:
            self._answer_time.ask(self.view.view_id, time.monotonic())
        self.view_requested.emit(self.view)

    def _is_seen(self) -> bool:
        is_shown = self.isVisible() and not self.window().isMinimized()
        return is_shown and self.surface.is_exposed() and self._held is None

    def _camera_changed(self, *, moving: bool) -> None:
        if moving:
            self._moving_until = time.monotonic() + MOVING_MS / 1000
            self._rest_timer.start()
        else:
            self._moving_until = 0.0
            self._rest_timer.stop()
        self.update_request()
        self.present()

    def _moved_by_hand(self) -> None:
        self._set_photo(-1)
        self._camera_changed(moving=True)

    def _come_to_rest(self) -> None:
        self._moving_until = 0.0
        self._answer_time.rest()
        self.update_request()
        self.present()

    def _resized(self) -> None:
        self.navigation.height = max(1, self.surface.widget.height())
        self.update_request()
        self.present()

    # --- input ---

    def _set_photo(self, index: int) -> None:
        if index != self.photo:
            self.photo = index
            if self._flipped and index >= 0:
                self.photos.get(index)
            self.photo_changed.emit(index)

    def _set_dragging(self, dragging: bool) -> None:
        self._dragging = dragging
        shape = Qt.CursorShape.ClosedHandCursor if dragging else Qt.CursorShape.ArrowCursor
        self.surface.set_cursor(shape)
        self.present()

    def _set_focused(self, focused: bool) -> None:
        self._focused = focused
        self.present()

    def _focus_on(self, place: QPointF) -> None:
        camera, controls = self.wanted_camera(), self.navigation.controls
        if camera is None or controls is None or self.scene is None:
            return
        ratio = self.surface.widget.devicePixelRatioF()
        x, y = place.x() * ratio, place.y() * ratio
        point = picked_point(self.scene.points, camera, x, y)
        if point is None:
            self.noticed.emit("No sparse point lies near there; the pivot stays.")
            return
        controls.focus(point)
        self._moved_by_hand()

    def _photo_ready(self, index: int) -> None:
        if self._flipped and index == self.photo:
            self.present()

    def _photo_failed(self, reason: str) -> None:
        self.noticed.emit(reason)
        if self._flipped:
            self.present()

    # --- painting ---

    def present(self) -> None:
        """Give the surface what is to be seen now."""
        self._frame_timer.stop()
        self._presented_at = time.monotonic()
        shown, wanted = self.shown, self.wanted_camera()
        if wanted is None or self.scene is None:
            self.surface.present(None, self._overlay(None, (), ()))
            return
        photo = self.photos.there(self.photo) if self._flipped else None
        camera, right = wanted, shown.camera_pills(self.photo)
        if photo is not None:
            picture = shown.of_photo(self.photo, photo, wanted, self.background)
            pills, right = shown.photo_pills(self.photo), ()
        elif self.frame is not None:
            picture, camera = shown.of_frame(self.frame, wanted)
            is_late = self._is_late(self.frame)
            pills = shown.frame_pills(self.frame, is_late, self._answer_time.worth_telling)
        else:
            picture = shown.of_points(wanted, self.surface.widget.devicePixelRatioF())
            pills = shown.points_pills()
        if self._flipped and self.photos.is_awaited(self.photo):
            pills, right = shown.awaited_pills(self.photo), ()
        self.surface.present(picture, self._overlay(camera, pills, right))

    def _overlay(
        self, camera: Camera | None, pills: tuple[Pill, ...], right: tuple[Pill, ...]
    ) -> Overlay:
        controls = self.navigation.controls
        moving = self._dragging or time.monotonic() < self._moving_until
        pivot = controls.pivot if controls is not None and moving else None
        overlay = self.shown.overlay(camera, pills, right, self.photo, pivot, flipped=self._flipped)
        return dataclasses.replace(overlay, focused=self._focused, font=self.font())

    def _is_late(self, frame: Frame) -> bool:
        """Whether the newest view was asked for long ago and this picture is not of it."""
        if self.view is None or frame.view_id >= self.view.view_id:
            return False
        return not self._late_timer.isActive()

    # --- Qt ---

    def showEvent(self, event: QShowEvent) -> None:
        """Ask for pictures again."""
        super().showEvent(event)
        handle = self.window().windowHandle()
        if handle is not None:
            handle.removeEventFilter(self)
            handle.installEventFilter(self)
        self.update_request()

    def hideEvent(self, event: QHideEvent) -> None:
        """Ask for no pictures: hidden costs nothing."""
        super().hideEvent(event)
        self.update_request()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the main window as it is covered, minimised and shown again."""
        kinds = (QEvent.Type.Expose, QEvent.Type.WindowStateChange, QEvent.Type.Show)
        if event.type() in kinds:
            QTimer.singleShot(0, self.update_request)
        return False


def make_viewport(kind: str, decode: Decoder, parent: QWidget | None = None) -> Viewport:
    """A viewport of kind `painted` or `gl`; what `auto` means, `display_probe` decides."""
    surface: Surface
    if kind == "gl":
        surface = GlSurface(parent)
    elif kind == "painted":
        surface = PaintedSurface(parent)
    else:
        raise ValueError(f"there is no viewport {kind!r}; there are painted and gl")
    return Viewport(surface, kind, decode, parent)
