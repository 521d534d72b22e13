"""From the parameters of the splats to a picture; the rasteriser takes them raw."""

import dataclasses
import functools

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
    StepMemory,
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
    memory: StepMemory,
) -> TrainingPicture:
    """Draw the splats for a step of training; the picture knows the way back to their gradients.

    At degree 0 the higher coefficients get no gradient; above it they get none unless
    `rest_learns`, which saves making it.
    """
    device = model.means.device
    world_to_camera, intrinsics = _matrices(camera)
    splats = SplatInputs(
        means=model.means,
        quaternions=model.rotations,
        scales=model.log_scales,
        opacities=model.opacity_logits,
        sh_dc=model.sh_dc,
        sh_rest=None if sh_degree == 0 else model.sh_rest,
        features=None,
        world_to_camera=to_device(world_to_camera, device),
        intrinsics=to_device(intrinsics, device),
    )
    view = View(*(camera.width, camera.height, sh_degree, mode.antialiased, mode.cutoffs), raw=True)
    return draw_for_training(
        *(splats, view, background),
        rest_learns=rest_learns,
        guard=guard,
        backend=mode.backend,
        memory=memory,
    )


@functools.lru_cache(maxsize=512)
def _matrices(camera: Camera) -> tuple[Float[Tensor, "4 4"], Float[Tensor, "3 3"]]:
    """Pose and lens in main memory, float32; not to be written."""
    return _numbers(camera.world_to_camera), _numbers(camera.intrinsics)


def _numbers(values: Float[np.ndarray, "rows columns"]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _matrix(values: Float[np.ndarray, "rows columns"], device: torch.device) -> Tensor:
    return to_device(_numbers(values), device)
