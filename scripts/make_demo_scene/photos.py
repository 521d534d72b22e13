"""One photo of the still life: its picture and its depth map."""

import numpy as np
import torch
from torch import Tensor

from scripts.make_demo_scene.still_life import still_life
from scripts.make_demo_scene.tracer import depth_map, render
from scripts.make_demo_scene.viewpoints import FOCAL, HEIGHT, WIDTH, viewpoints


def photo_name(number: int) -> str:
    """The file name of a photo."""
    return f"still_life_{number:02d}.jpg"


def trace(number: int, samples_per_side: int = 3) -> tuple[np.ndarray, Tensor]:
    """Photo `number` as 8-bit RGB (height, width, 3) and its depth map."""
    torch.set_num_threads(1)
    world, pose = still_life(), viewpoints()[number].float()
    generator = torch.Generator().manual_seed(number)
    picture = render(
        world, pose, FOCAL, WIDTH, HEIGHT, samples_per_side=samples_per_side, generator=generator
    )
    return (picture * 255).round().byte().numpy(), depth_map(world, pose, FOCAL, WIDTH, HEIGHT)
