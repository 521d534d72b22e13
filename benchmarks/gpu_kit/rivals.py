"""The same training step by gsplat, where that happens to be installed."""

import importlib
import importlib.util
from typing import Any

import torch

from benchmarks.gpu_kit.clocks import Clock, median_ms
from benchmarks.gpu_kit.scenes import BETAS, EPSILON, RATES, SSIM_WEIGHT, TrainingScene
from cuda_rasterizer import l1_ssim


def gsplat_step_ms(scene: TrainingScene, clock: Clock, repeats: int) -> dict[str, Any]:
    """Median milliseconds of its step on the scene's splats, and what its parts are.

    gsplat brings no loss and no optimiser for all parameters: those are fused_ssim (or our loss,
    where that is not installed) and torch's own fused Adam.
    """
    gsplat: Any = importlib.import_module("gsplat")
    fused: Any = None
    if importlib.util.find_spec("fused_ssim") is not None:
        fused = importlib.import_module("fused_ssim")
    leaves = scene.leaves()
    groups = [{"params": [leaf], "lr": RATES[name]} for name, leaf in leaves.items()]
    optimizer = torch.optim.Adam(groups, betas=BETAS, eps=EPSILON, fused=True)
    device = scene.means.device
    view = scene.world_to_camera.to(device)[None]
    intrinsics = scene.intrinsics.to(device)[None]
    width, height = scene.size

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        picture, _, _ = gsplat.rasterization(
            scene.means,
            scene.quaternions,
            scene.log_scales.exp(),
            scene.logits.sigmoid(),
            torch.cat([scene.sh_dc, scene.sh_rest], dim=1),
            view,
            intrinsics,
            width,
            height,
            sh_degree=3,
            packed=False,
            backgrounds=scene.background[None],
        )
        if fused is None:
            loss = l1_ssim(picture[0], scene.target, SSIM_WEIGHT, backend=scene.backend).loss
        else:
            as_channels = (picture.permute(0, 3, 1, 2), scene.target.permute(2, 0, 1)[None])
            ssim = fused.fused_ssim(*as_channels)
            l1 = (picture[0] - scene.target).abs().mean()
            loss = (1 - SSIM_WEIGHT) * l1 + SSIM_WEIGHT * (1 - ssim)
        torch.autograd.backward(loss)
        optimizer.step()

    return {
        "ms": median_ms(step, clock, repeats),
        "version": str(getattr(gsplat, "__version__", "unknown")),
        "loss": "our own" if fused is None else "fused_ssim",
        "optimizer": "torch.optim.Adam(fused=True)",
    }
