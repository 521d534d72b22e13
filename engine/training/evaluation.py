"""PSNR and SSIM of a model on held-out photos, one photo at a time.

Serves a running training as well as a splat file from disk; draws no random number and records
nothing for autograd.
"""

import functools
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from engine.dataset.scene import Scene
from engine.photo_score import PhotoScore
from engine.settings import Settings
from engine.training.device_photos import photos_on
from engine.training.gaussians import Gaussians
from engine.training.metrics import psnr_and_ssim
from engine.training.photos import BLACK, WHITE, Color, PhotoSource, target_picture
from engine.training.render import RenderMode, render
from engine.transfers import to_device


def evaluation_background(settings: Settings) -> Color:
    """What lies behind renders and transparent photos in evaluation; black when it is random."""
    return WHITE if settings.loss.background == "white" else BLACK


def training_background(settings: Settings, random: torch.Generator) -> Float[Tensor, "3"]:
    """What lies behind them in one training step, on the CPU; draws only when it is random."""
    if settings.loss.background == "random":
        return torch.rand(3, generator=random)
    return _constant(evaluation_background(settings))


@functools.cache
def _constant(color: Color) -> Float[Tensor, "3"]:
    """One tensor for all steps; not to be written."""
    return torch.tensor(color)


def evaluate(
    model: Gaussians,
    scene: Scene,
    photos: PhotoSource,
    *,
    background: Color,
    sh_degree: int,
    mode: RenderMode,
) -> Iterator[PhotoScore]:
    """The score of each held-out photo, in the order of their names."""
    device = model.means.device
    color = to_device(torch.tensor(background), device)
    photos = photos_on(device, photos)
    for index, photo in enumerate(scene.photos):
        if not photo.held_out:
            continue
        target = target_picture(photos, index, photo, color)
        with torch.no_grad():
            picture = render(model, photo.camera, color, sh_degree, mode).color
        psnr, ssim = psnr_and_ssim(picture, target, mode.backend)
        yield PhotoScore(name=photo.name, psnr=psnr, ssim=ssim)


def mean_score(scores: Sequence[PhotoScore]) -> tuple[float, float]:
    """Mean PSNR (of per-photo PSNR) and mean SSIM; raises ValueError when there is no score."""
    if not scores:
        raise ValueError("no photo was evaluated")
    count = len(scores)
    return sum(score.psnr for score in scores) / count, sum(score.ssim for score in scores) / count
