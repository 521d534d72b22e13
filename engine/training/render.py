"""From the parameters of the splats to a picture; the rasteriser takes them raw."""

import dataclasses

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cuda_rasterizer import (
    CLASSIC,
    GSPLAT,
    Cutoffs,
    Rendering,
    SplatInputs,
    StepGuard,
    TrainingPicture,
    View,
    draw_for_training,
    rasterize,
)
from engine.cameras import Camera
from engine.settings import Settings
from engine.training.gaussians import Gaussians
from engine.transfers import to_device


@dataclasses.dataclass(frozen=True)
class RenderMode:
    """How pictures are drawn all through a run."""

    backend: str
    gsplat_cutoffs: bool = False
    antialiased: bool = False

    @classmethod
    def of(cls, settings: Settings, backend: str) -> "RenderMode":
        """The mode that the settings ask for, on a resolved backend."""
        rasterizer = settings.rasterizer
        return cls(backend, rasterizer.cutoffs == "gsplat", rasterizer.antialiased)

    @property
    def cutoffs(self) -> Cutoffs:
        """Where a splat stops to count."""
        return GSPLAT if self.gsplat_cutoffs else CLASSIC


def render(
    model: Gaussians,
    camera: Camera,
    background: Float[Tensor, "3"],
    sh_degree: int,
    mode: RenderMode,
) -> Rendering:
    """Draw the splats, without depth, recording for autograd where that is switched on.

    At degree 0 the higher coefficients are not handed over at all.
    """
    sh = model.sh_dc if sh_degree == 0 else (model.sh_dc, model.sh_rest)
    device = model.means.device
    return rasterize(
        model.means,
        model.rotations,
        model.log_scales,
        model.opacity_logits,
        world_to_camera=_matrix(camera.world_to_camera, device),
        intrinsics=_matrix(camera.intrinsics, device),
        width=camera.width,
        height=camera.height,
        sh=sh,
        sh_degree=sh_degree,
        background=background,
        cutoffs=mode.cutoffs,
        antialiased=mode.antialiased,
        raw=True,
        depth=False,
        backend=mode.backend,
    )


def draw_step(
    model: Gaussians,
    camera: Camera,
    background: Float[Tensor, "3"],
    sh_degree: int,
    mode: RenderMode,
    *,
    rest_learns: bool,
    guard: StepGuard,
) -> TrainingPicture:
    """Draw the splats for a step of training; the picture knows the way back to their gradients.

    At degree 0 the higher coefficients get no gradient; above it they get none unless
    `rest_learns`, which saves making it.
    """
    device = model.means.device
    splats = SplatInputs(
        means=model.means,
        quaternions=model.rotations,
        scales=model.log_scales,
        opacities=model.opacity_logits,
        sh_dc=model.sh_dc,
        sh_rest=None if sh_degree == 0 else model.sh_rest,
        features=None,
        world_to_camera=_matrix(camera.world_to_camera, device),
        intrinsics=_matrix(camera.intrinsics, device),
    )
    view = View(*(camera.width, camera.height, sh_degree, mode.antialiased, mode.cutoffs), raw=True)
    return draw_for_training(
        *(splats, view, background), rest_learns=rest_learns, guard=guard, backend=mode.backend
    )


def _matrix(values: Float[np.ndarray, "rows columns"], device: torch.device) -> Tensor:
    return to_device(torch.from_numpy(values.astype(np.float32)), device)
