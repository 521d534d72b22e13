"""Where the demo's cameras stand: a dome of evenly spread places around the table."""

import math

import torch
from torch import Tensor

WIDTH, HEIGHT, FOCAL = 320, 208, 330.0
COUNT = 48
LOWEST_DEGREES, HIGHEST_DEGREES = 17.0, 54.0
TARGET = (0.0, 0.0, 0.16)


def _pose(eye: Tensor, target: Tensor) -> Tensor:
    forward = (target - eye) / (target - eye).norm()
    right = torch.linalg.cross(forward, torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64))
    right = right / right.norm()
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, :3] = torch.stack([right, torch.linalg.cross(forward, right), forward], dim=1)
    pose[:3, 3] = eye
    return pose


def viewpoints() -> list[Tensor]:
    """Camera-to-world poses (4, 4) in float64, OpenCV axes, walking once around the table.

    Places are a Fibonacci lattice on the dome, so neighbours are about 15 degrees apart; sorted by
    azimuth, so that every eighth, which is held out, comes from another side.
    """
    low, high = (math.sin(math.radians(d)) for d in (LOWEST_DEGREES, HIGHEST_DEGREES))
    golden = math.pi * (3 - math.sqrt(5))
    places = []
    for i in range(COUNT):
        height = low + (high - low) * (i + 0.5) / COUNT
        azimuth = (i * golden) % (2 * math.pi)
        places.append((azimuth, height, 2.75 + 0.25 * math.sin(5.0 * i)))
    poses = []
    for number, (azimuth, height, distance) in enumerate(sorted(places)):
        flat = math.sqrt(1 - height * height)
        direction = [flat * math.cos(azimuth), flat * math.sin(azimuth), height]
        target = torch.tensor(TARGET, dtype=torch.float64)
        target = target + 0.05 * torch.tensor(
            [math.sin(1.7 * number), math.cos(2.3 * number), 0.0], dtype=torch.float64
        )
        eye = target + distance * torch.tensor(direction, dtype=torch.float64)
        poses.append(_pose(eye, target))
    return poses
