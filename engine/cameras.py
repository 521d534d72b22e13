"""A pinhole camera and its geometry.

Axes are OpenCV's: x right, y down, z forward. Pixel (column i, row j) has its centre at
(i + 0.5, j + 0.5). Poses are world-to-camera matrices in float64 numpy; tensors are made by
whoever renders. Other conventions are converted where a file is read, by the functions below.
"""

import dataclasses
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation


@dataclasses.dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera: pose, focal lengths and principal point in pixels, size in pixels."""

    world_to_camera: Float[np.ndarray, "4 4"]
    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int

    @cached_property
    def camera_to_world(self) -> Float[np.ndarray, "4 4"]:
        """The inverse pose, exact for a rigid one."""
        rotation = self.world_to_camera[:3, :3]
        pose = np.eye(4)
        pose[:3, :3] = rotation.T
        pose[:3, 3] = -rotation.T @ self.world_to_camera[:3, 3]
        return pose

    @property
    def center(self) -> Float[np.ndarray, "3"]:
        """Where the camera stands, in world coordinates."""
        return np.asarray(self.camera_to_world[:3, 3])

    @property
    def forward(self) -> Float[np.ndarray, "3"]:
        """The unit vector along which the camera looks, in world coordinates."""
        return np.asarray(self.camera_to_world[:3, 2])

    @property
    def up(self) -> Float[np.ndarray, "3"]:
        """The unit vector of the picture's upward direction, in world coordinates."""
        return np.asarray(-self.camera_to_world[:3, 1])

    @property
    def intrinsics(self) -> Float[np.ndarray, "3 3"]:
        """The matrix K that takes camera coordinates to homogeneous pixels."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def resized(self, width: int, height: int) -> "Camera":
        """The same view on a picture of another size in pixels."""
        sx, sy = width / self.width, height / self.height
        return dataclasses.replace(
            self,
            fx=self.fx * sx,
            fy=self.fy * sy,
            cx=self.cx * sx,
            cy=self.cy * sy,
            width=width,
            height=height,
        )

    def moved(self, world_to_camera: Float[np.ndarray, "4 4"]) -> "Camera":
        """The same lens at another pose."""
        return dataclasses.replace(self, world_to_camera=world_to_camera)

    def to_camera(self, points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
        """World points in camera coordinates."""
        moved = points @ self.world_to_camera[:3, :3].T + self.world_to_camera[:3, 3]
        return np.asarray(moved)

    def project(
        self, points: Float[np.ndarray, "n 3"]
    ) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, "n"]]:
        """Pixel positions (n, 2) and depths (n,); pixels mean nothing where depth <= 0."""
        in_camera = self.to_camera(points)
        depth = in_camera[:, 2]
        safe = np.where(np.abs(depth) < 1e-12, 1e-12, depth)
        pixels = np.stack(
            [
                self.fx * in_camera[:, 0] / safe + self.cx,
                self.fy * in_camera[:, 1] / safe + self.cy,
            ],
            axis=1,
        )
        return pixels, depth


def pose_from_quaternion(
    quaternion: Float[np.ndarray, "4"], translation: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "4 4"]:
    """A 4x4 pose from a (w, x, y, z) quaternion of any norm but zero and a translation."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()  # scipy's w comes last
    pose[:3, 3] = translation
    return pose


def invert_pose(pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "4 4"]:
    """The inverse of a rigid 4x4 pose."""
    inverse = np.eye(4)
    inverse[:3, :3] = pose[:3, :3].T
    inverse[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return inverse


def opengl_to_opencv(camera_to_world: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "4 4"]:
    """A camera-to-world pose with OpenGL axes (y up, z backward) as one with OpenCV axes."""
    flip = np.diag([1.0, -1.0, -1.0, 1.0])
    return np.asarray(np.asarray(camera_to_world, dtype=np.float64) @ flip)
