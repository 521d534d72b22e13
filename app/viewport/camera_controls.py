"""Orbit, pan, zoom, fly and focus as plain geometry; no widgets here.

The camera turns about a pivot that keeps its place in the picture. Distances are measured in the
scene's extent, so that a fly through a matchbox feels like one through a valley. Mouse movements
come in pixels of the picture, y down.
"""

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from engine.cameras import Camera

RADIANS_PER_PICTURE = math.pi  # a drag across the whole height turns half way round
ZOOM_PER_NOTCH = 0.88
NEAREST_PIVOT = 0.01  # of the extent; nearer than this, zooming pushes the pivot ahead
FLY_SPEED = 0.4  # of the extent per second
FAST = 4.0
STEEPEST = math.radians(3.0)  # how near the view may come to straight up or down

Vector = Float[np.ndarray, "3"]


@dataclasses.dataclass(frozen=True, eq=False)
class Viewpoint:
    """Where the view stands: pose, pivot, and the lens as a camera of some other size."""

    world_to_camera: Float[np.ndarray, "4 4"]
    pivot: Vector
    lens: Camera


def fitted_lens(lens: Camera, width: int, height: int) -> Camera:
    """`lens` on a picture of `width` x `height` px: all that it sees stays in, centred."""
    scale = min(width / lens.width, height / lens.height)
    return dataclasses.replace(
        lens,
        fx=lens.fx * scale,
        fy=lens.fy * scale,
        cx=(width - lens.width * scale) / 2 + lens.cx * scale,
        cy=(height - lens.height * scale) / 2 + lens.cy * scale,
        width=width,
        height=height,
    )


def lens_rectangle(lens: Camera, width: int, height: int) -> tuple[float, float, float, float]:
    """Where the picture of `lens` itself lies in `fitted_lens`: x, y, width, height in px."""
    scale = min(width / lens.width, height / lens.height)
    return (
        (width - lens.width * scale) / 2,
        (height - lens.height * scale) / 2,
        lens.width * scale,
        lens.height * scale,
    )


def rotation_about(axis: Vector, angle: float) -> Float[np.ndarray, "3 3"]:
    """The rotation matrix about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross)


class CameraControls:
    """The view's camera and what the mouse and the keys do to it."""

    def __init__(self, home: Viewpoint, up: Vector, extent: float) -> None:
        self.home_viewpoint = home
        self.up = np.asarray(up, dtype=np.float64) / np.linalg.norm(up)
        self.extent = max(float(extent), 1e-6)
        self.world_to_camera = home.world_to_camera
        self.pivot = np.asarray(home.pivot, dtype=np.float64)
        self.lens = home.lens

    def camera(self, width: int, height: int) -> Camera:
        """The camera of a picture of `width` x `height` px."""
        return fitted_lens(self.lens, width, height).moved(self.world_to_camera)

    def home(self) -> None:
        """Go back to the first view."""
        self.world_to_camera = self.home_viewpoint.world_to_camera
        self.pivot = np.asarray(self.home_viewpoint.pivot, dtype=np.float64)
        self.lens = self.home_viewpoint.lens

    def jump(self, camera: Camera) -> None:
        """Look through a photo's camera, lens included; the pivot stays."""
        self.world_to_camera = camera.world_to_camera
        self.lens = camera

    def orbit(self, dx: float, dy: float, height: int) -> None:
        """Turn about the pivot: right and down by a drag of (dx, dy) px."""
        per_pixel = RADIANS_PER_PICTURE / max(height, 1)
        pose = self.lens.moved(self.world_to_camera)
        upright = 1.0 if pose.up @ self.up >= 0 else -1.0  # upside down, the scene turns along
        pitch = self._allowed_pitch(pose, -dy * per_pixel)
        right = pose.camera_to_world[:3, 0]
        turn = rotation_about(self.up, -dx * per_pixel * upright) @ rotation_about(right, pitch)
        self._turn_about_pivot(turn)

    def pan(self, dx: float, dy: float, height: int) -> None:
        """Shift the view so that the pivot follows the mouse by (dx, dy) px."""
        width = max(1, round(height * self.lens.width / self.lens.height))
        lens = fitted_lens(self.lens, width, height)
        depth = self._working_depth()
        self._move_in_camera(np.array([-dx * depth / lens.fx, -dy * depth / lens.fy, 0.0]))

    def zoom(self, notches: float) -> None:
        """Go nearer to the pivot (positive) or away from it; one notch of a wheel is 1."""
        to_pivot = self.pivot - self.lens.moved(self.world_to_camera).center
        distance = float(np.linalg.norm(to_pivot))
        least = NEAREST_PIVOT * self.extent
        if distance < 1e-12:
            to_pivot, distance = self.lens.moved(self.world_to_camera).forward * least, least
        wanted = max(distance, least) * ZOOM_PER_NOTCH**notches
        step = to_pivot / distance * (distance - wanted)
        self._translate(step)
        if notches > 0 and wanted < least:
            self.pivot = self.pivot + to_pivot / distance * (least - wanted)

    def fly(self, direction: Vector, seconds: float, *, fast: bool = False) -> None:
        """Move along camera axes (x right, y down, z ahead) for `seconds`; the pivot goes along."""
        length = float(np.linalg.norm(direction))
        if length == 0:
            return
        speed = FLY_SPEED * self.extent * (FAST if fast else 1.0)
        self._move_in_camera(np.asarray(direction, dtype=np.float64) / length * speed * seconds)

    def focus(self, point: Vector) -> None:
        """Make `point` the pivot and turn towards it by the shortest way."""
        pose = self.lens.moved(self.world_to_camera)
        ahead = np.asarray(point, dtype=np.float64) - pose.center
        distance = float(np.linalg.norm(ahead))
        if distance < 1e-12:
            return
        ahead = ahead / distance
        axis = np.cross(pose.forward, ahead)
        sine = float(np.linalg.norm(axis))
        self.pivot = np.asarray(point, dtype=np.float64)
        if sine > 1e-12:
            turn = rotation_about(axis / sine, math.atan2(sine, float(pose.forward @ ahead)))
            self._set_pose(turn @ pose.camera_to_world[:3, :3], pose.center)

    def _allowed_pitch(self, pose: Camera, angle: float) -> float:
        """`angle`, shortened so that the view does not tip over the pole."""
        elevation = math.asin(float(np.clip(pose.forward @ self.up, -1, 1)))
        limit = math.pi / 2 - STEEPEST
        upright = 1.0 if pose.up @ self.up >= 0 else -1.0
        low, high = min(-limit, elevation), max(limit, elevation)
        return upright * (min(max(elevation + upright * angle, low), high) - elevation)

    def _working_depth(self) -> float:
        """How far away the pivot's plane is, or something sensible when it lies behind."""
        depth = float(self.lens.moved(self.world_to_camera).to_camera(self.pivot[None])[0, 2])
        return depth if depth > NEAREST_PIVOT * self.extent else 0.5 * self.extent

    def _move_in_camera(self, offset: Vector) -> None:
        step = self.world_to_camera[:3, :3].T @ offset
        self._translate(step)
        self.pivot = self.pivot + step

    def _translate(self, step: Vector) -> None:
        pose = self.lens.moved(self.world_to_camera)
        self._set_pose(pose.camera_to_world[:3, :3], pose.center + step)

    def _turn_about_pivot(self, turn: Float[np.ndarray, "3 3"]) -> None:
        pose = self.lens.moved(self.world_to_camera)
        center = self.pivot + turn @ (pose.center - self.pivot)
        self._set_pose(turn @ pose.camera_to_world[:3, :3], center)

    def _set_pose(self, axes: Float[np.ndarray, "3 3"], center: Vector) -> None:
        """Set the pose from the camera's axes (columns); they are made orthonormal again."""
        left, _, right = np.linalg.svd(axes)
        rotation = (left @ right).T
        pose = np.eye(4)
        pose[:3, :3] = rotation
        pose[:3, 3] = -rotation @ center
        self.world_to_camera = pose


def picked_point(
    points: Float[np.ndarray, "n 3"], camera: Camera, x: float, y: float
) -> Vector | None:
    """The world point under pixel (x, y): on its ray, as deep as the sparse points near it.

    The nearest circle of 8 to 64 px that holds points in front counts; of their depths the
    front quarter's end is taken, so that one stray point in the air does not catch the click.
    None where no point is near.
    """
    if len(points) == 0:
        return None
    pixels, depths = camera.project(np.asarray(points, dtype=np.float64))
    distance = np.hypot(pixels[:, 0] - x, pixels[:, 1] - y)
    for radius in (8.0, 16.0, 32.0, 64.0):
        near = depths[(distance <= radius) & (depths > 0)]
        if len(near):
            depth = float(np.quantile(near, 0.25))
            ray = np.array([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, 1.0])
            return np.asarray(camera.camera_to_world[:3, :3] @ (ray * depth) + camera.center)
    return None
