"""What the view shows at a moment: which picture, where it lies, and what is written over it.

The marks in the scene are projected with the camera of the picture that is shown, never with a
newer one. Nothing here asks for anything; `Viewport` does, and says what is wanted.
"""

import dataclasses

import numpy as np

from app.palette import DARK, Palette, rgb
from app.viewport.camera_controls import lens_rectangle
from app.viewport.overlays import FRUSTUM_SIZE, Overlay, Pill, frustum_corners
from app.viewport.sparse_points import points_picture
from app.viewport.surface import Picture
from app.wording import counted
from engine.cameras import Camera
from engine.messages import Frame, SceneOpened
from engine.training.photos import Color

HINT = "drag to orbit  ·  double-click to focus  ·  ? for keys"


def frame_target(frame: Camera, wanted: Camera) -> tuple[float, float, float, float]:
    """Where a frame lies on a view of another size: its lens laid on the view's, in px."""
    sx, sy = wanted.fx / frame.fx, wanted.fy / frame.fy
    values = (
        wanted.cx - frame.cx * sx,
        wanted.cy - frame.cy * sy,
        frame.width * sx,
        frame.height * sy,
    )
    x, y, width, height = (round(v) if abs(v - round(v)) < 1e-6 else v for v in values)
    return x, y, width, height


def same_picture(one: Camera | None, other: Camera) -> bool:
    """Whether two cameras make the same picture."""
    return (
        one is not None
        and (one.fx, one.fy, one.cx, one.cy) == (other.fx, other.fy, other.cx, other.cy)
        and (one.width, one.height) == (other.width, other.height)
        and np.array_equal(one.world_to_camera, other.world_to_camera)
    )


class Composition:
    """The scene's marks and the words over it; makes a picture and an overlay on demand."""

    def __init__(self) -> None:
        self.colors: Palette = DARK
        self.cameras_shown = True
        self.pivot_shown = True
        self.labels_shown = True
        self.held_out: tuple[float, int] | None = None  # mean PSNR, and of which step
        self.preview = "live"
        self._scene: SceneOpened | None = None
        self._frusta: np.ndarray | None = None
        self._points: tuple[Camera, np.ndarray] | None = None

    def set_scene(self, scene: SceneOpened | None) -> None:
        """Another scene, or none."""
        self._scene, self._frusta, self._points = scene, None, None
        self.held_out = None
        if scene is not None and scene.photos:
            cameras = [photo.camera for photo in scene.photos]
            self._frusta = frustum_corners(cameras, FRUSTUM_SIZE * scene.extent)

    def set_colors(self, colors: Palette) -> None:
        """Another theme."""
        self.colors = colors
        self._points = None

    # --- pictures ---

    def of_photo(
        self, index: int, pixels: np.ndarray, wanted: Camera, background: Color
    ) -> Picture:
        """A photo where the render of its camera would be, with the render's background beside."""
        assert self._scene is not None
        lens = self._scene.photos[index].camera
        place = lens_rectangle(lens, wanted.width, wanted.height)
        return Picture(pixels, place, around=background)

    def of_frame(self, frame: Frame, wanted: Camera) -> tuple[Picture, Camera]:
        """The frame in its place, and its own camera at the size of the view."""
        camera = dataclasses.replace(wanted, world_to_camera=frame.camera.world_to_camera)
        return Picture(frame.pixels, frame_target(frame.camera, wanted)), camera

    def of_points(self, wanted: Camera, ratio: float) -> Picture:
        """The sparse points, drawn anew when the camera is another."""
        assert self._scene is not None
        if self._points is None or not same_picture(self._points[0], wanted):
            pixels = points_picture(
                wanted,
                self._scene.points,
                self._scene.point_colors,
                rgb(self.colors.stage),
                max(2, round(2 * ratio)),
            )
            self._points = (wanted, pixels)
        return Picture(self._points[1], (0, 0, wanted.width, wanted.height))

    # --- words ---

    def photo_pills(self, index: int) -> tuple[Pill, ...]:
        """Said over a photo that is shown in place of the render."""
        assert self._scene is not None
        return Pill("photo", "changed"), Pill(self._scene.photos[index].name)

    def awaited_pills(self, index: int) -> tuple[Pill, ...]:
        """Said over the render while the photo that is wanted in its place is being decoded."""
        assert self._scene is not None
        return Pill("loading the photo …", "changed"), Pill(self._scene.photos[index].name)

    def points_pills(self) -> tuple[Pill, ...]:
        """Said over the sparse points."""
        assert self._scene is not None
        count = len(self._scene.points)
        return (Pill(counted(count, "sparse point") if count else "no sparse points"),)

    def frame_pills(
        self, frame: Frame, is_late: bool, answer_seconds: float | None = None
    ) -> tuple[Pill, ...]:
        """Said over a render: how old, how coarse, how slow to come and how good it is."""
        pills = [Pill(f"step {frame.step:,}")]
        size = "full size" if frame.scale >= 1 else f"{frame.scale:.0%} of full size"
        pills.append(Pill(size))
        if answer_seconds is not None:
            pills.append(Pill(f"{1000 * answer_seconds:.0f} ms behind", "changed"))
        if self.preview == "off":
            pills.append(Pill("preview off", "changed"))
        elif is_late:
            pills.append(Pill("earlier view", "changed"))
        if self.held_out is not None and np.isfinite(self.held_out[0]):
            psnr, step = self.held_out
            at = "" if step == frame.step else f" at step {step:,}"
            pills.append(Pill(f"held-out {psnr:.2f} dB{at}", "good"))
        return tuple(pills)

    def camera_pills(self, index: int) -> tuple[Pill, ...]:
        """Through which photo's camera the view looks, if through any."""
        if index < 0 or self._scene is None:
            return ()
        photo = self._scene.photos[index]
        return (Pill(photo.name + (" · held out" if photo.held_out else "")),)

    # --- the overlay ---

    def overlay(
        self,
        camera: Camera | None,
        pills: tuple[Pill, ...],
        right: tuple[Pill, ...],
        photo: int,
        pivot: np.ndarray | None,
        *,
        flipped: bool,
    ) -> Overlay:
        """All that is painted over a picture of `camera`; font and focus are added by the view."""
        labels = self.labels_shown
        return Overlay(
            camera=camera,
            frusta=self._frusta if self.cameras_shown and not flipped else None,
            hidden_frustum=photo if photo >= 0 else None,
            pivot=pivot if self.pivot_shown else None,
            pills=pills if labels else (),
            right_pills=right if labels else (),
            hint=HINT if labels and self._scene is not None else "",
            colors=self.colors,
        )
