"""Poses for tests."""

import numpy as np
from jaxtyping import Float


def look_at(
    eye: Float[np.ndarray, "3"], target: Float[np.ndarray, "3"], up: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "4 4"]:
    """The world-to-camera pose at `eye` that looks at `target` with `up` upward in the picture."""
    forward = np.asarray(target, dtype=np.float64) - eye
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, up)
    length = np.linalg.norm(right)
    if length < 1e-9:  # looking along `up`: any right vector will do
        axis = np.eye(3)[int(np.argmin(np.abs(forward)))]
        right = np.cross(forward, axis)
        length = np.linalg.norm(right)
    right = right / length
    rotation = np.stack([right, np.cross(forward, right), forward])
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = -rotation @ eye
    return pose
