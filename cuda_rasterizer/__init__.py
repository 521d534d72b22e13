"""Draws 3D Gaussian splats, differentiably: tensors in, pictures out, no scenes and no files.

`rasterize` is the whole of it; three backends stand behind it with identical behaviour: `reference`
(plain torch), `cpu` (C++) and `cuda` (compiled for the GPU when it is first used).
"""

from cuda_rasterizer.attention import Attention
from cuda_rasterizer.backends import (
    backend_status,
    describe,
    prepare,
    resolve_backend,
    set_threads,
)
from cuda_rasterizer.cpu_step import StepMemory
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from cuda_rasterizer.determinism import set_deterministic
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import AdamGroup, SplatInputs, View
from cuda_rasterizer.rasterize import Rendering, rasterize
from cuda_rasterizer.reference_projection import rotation_matrices
from cuda_rasterizer.screen_gradients import add_screen_gradients
from cuda_rasterizer.step_guard import StepGuard, not_finite
from cuda_rasterizer.training_pass import (
    TrainingPicture,
    draw_for_training,
    l1_ssim_with_gradient,
)
from cuda_rasterizer.training_steps import LossTerms, adam_step, l1_ssim, to_rgba8

__all__ = [
    "CLASSIC",
    "GSPLAT",
    "AdamGroup",
    "Attention",
    "Cutoffs",
    "LossTerms",
    "RasterizerError",
    "Rendering",
    "SplatInputs",
    "StepGuard",
    "StepMemory",
    "TrainingPicture",
    "View",
    "adam_step",
    "add_screen_gradients",
    "backend_status",
    "describe",
    "draw_for_training",
    "l1_ssim",
    "l1_ssim_with_gradient",
    "not_finite",
    "prepare",
    "rasterize",
    "resolve_backend",
    "rotation_matrices",
    "set_deterministic",
    "set_threads",
    "to_rgba8",
]
