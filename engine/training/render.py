"""From the parameters of the splats to a picture; the rasteriser takes them raw."""

import dataclasses

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cuda_rasterizer import CLASSIC, GSPLAT, Rendering, StepGuard, rasterize
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


def render(
    model: Gaussians,
    camera: Camera,
    background: Float[Tensor, "3"],
    sh_degree: int,
    mode: RenderMode,
    *,
    rest_learns: bool = True,
    guard: StepGuard | None = None,
) -> Rendering:
    """Draw the splats, without depth, recording for autograd where that is switched on.

    At degree 0 the higher coefficients are not handed over at all and get no gradient; above it
    they get none unless `rest_learns`, which saves making it.
    """
    rest = model.sh_rest if rest_learns else model.sh_rest.detach()
    sh = model.sh_dc if sh_degree == 0 else (model.sh_dc, rest)
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
        cutoffs=GSPLAT if mode.gsplat_cutoffs else CLASSIC,
        antialiased=mode.antialiased,
        raw=True,
        depth=False,
        guard=guard,
        backend=mode.backend,
    )


def _matrix(values: Float[np.ndarray, "rows columns"], device: torch.device) -> Tensor:
    return to_device(torch.as_tensor(values, dtype=torch.float32), device)
