"""From raw parameters to a picture: activations here, the rest in the rasteriser."""

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor

from cuda_rasterizer import CLASSIC, GSPLAT, Rendering, rasterize
from engine.cameras import Camera
from engine.settings import Settings
from engine.training.gaussians import Gaussians


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
) -> Rendering:
    """Draw the splats, recording for autograd where that is switched on.

    At degree 0 the higher coefficients are not handed over at all and get no gradient.
    """
    sh = model.sh_dc if sh_degree == 0 else (model.sh_dc, model.sh_rest)
    return rasterize(
        model.means,
        model.rotations,
        torch.exp(model.log_scales),
        torch.sigmoid(model.opacity_logits),
        world_to_camera=torch.as_tensor(camera.world_to_camera, dtype=torch.float32),
        intrinsics=torch.as_tensor(camera.intrinsics, dtype=torch.float32),
        width=camera.width,
        height=camera.height,
        sh=sh,
        sh_degree=sh_degree,
        background=background,
        cutoffs=GSPLAT if mode.gsplat_cutoffs else CLASSIC,
        antialiased=mode.antialiased,
        backend=mode.backend,
    )
