"""Draws 3D Gaussian splats, differentiably: tensors in, pictures out, no scenes and no files.

`rasterize` is the whole of it; three backends stand behind it with identical behaviour: `reference`
(plain torch), `cpu` (C++), and later `cuda`.
"""

from cuda_rasterizer.backends import backend_status, describe, resolve_backend, set_threads
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.rasterize import Rendering, rasterize
from cuda_rasterizer.training_steps import LossTerms, adam_step, l1_ssim, to_rgba8

__all__ = [
    "CLASSIC",
    "GSPLAT",
    "Cutoffs",
    "LossTerms",
    "RasterizerError",
    "Rendering",
    "adam_step",
    "backend_status",
    "describe",
    "l1_ssim",
    "rasterize",
    "resolve_backend",
    "set_threads",
    "to_rgba8",
]
