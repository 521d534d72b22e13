"""Where the demo's cameras stand: a dome of evenly spread places around the table."""

import math

import numpy as np

WIDTH, HEIGHT, FOCAL = 320, 208, 330.0
COUNT, START = 56, 2
LOWEST_DEGREES, HIGHEST_DEGREES = 23.0, 50.0
TARGET = np.array([0.0, 0.0, 0.16])


def _pose(eye: np.ndarray, target: np.ndarray) -> np.ndarray:
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
    pose[:3, 3] = eye
    return pose


def viewpoints() -> list[np.ndarray]:
    """Camera-to-world poses (4, 4), OpenCV axes, walking once around the table.

    Places are a Fibonacci lattice on the dome, so neighbours are about 11 degrees apart; sorted by
    azimuth, so that every eighth, which is held out, comes from another side. The walk starts
    where those held out lie well inside the dome: a view from its rim would be a guess.
    """
    low, high = (math.sin(math.radians(d)) for d in (LOWEST_DEGREES, HIGHEST_DEGREES))
    golden = math.pi * (3 - math.sqrt(5))
    places = []
    for i in range(COUNT):
        height = low + (high - low) * (i + 0.5) / COUNT
        places.append(((i * golden) % (2 * math.pi), height, 2.75 + 0.25 * math.sin(5.0 * i)))
    poses = []
    places.sort()
    for number, (azimuth, height, distance) in enumerate(places[START:] + places[:START]):
        flat = math.sqrt(1 - height * height)
        direction = np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), height])
        sway = 0.05 * np.array([math.sin(1.7 * number), math.cos(2.3 * number), 0.0])
        poses.append(_pose(TARGET + sway + distance * direction, TARGET + sway))
    return poses
