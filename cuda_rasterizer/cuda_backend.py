"""The CUDA kernels on torch tensors: allocates, fills the parameter structures, launches.

The same functions as `cpu_backend`, on tensors of a GPU, float32 only. Everything is queued on
torch's current stream and the host waits once, for the number of instances (`binning`). Which
kernels there are, and over how many blocks, stands in `include/cuda_params.h`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.compositing import blend, blend_backward
from cuda_rasterizer.cuda.launches import blocks, launch, use_launcher
from cuda_rasterizer.cuda.structures import LossPassParams
from cuda_rasterizer.debug import check_written, debug_is_on, empty, empty_like
from cuda_rasterizer.kernel_arguments import (
    AdamGroup,
    SplatGradients,
    SplatInputs,
    View,
    adam_calls,
    empty_projected,
    loss_params,
    pointer,
    project_backward_params,
    project_params,
)
from cuda_rasterizer.native_structs import Rgba8Params
from cuda_rasterizer.projected import Projected

__all__ = [
    "adam_step",
    "blend",
    "blend_backward",
    "l1_ssim",
    "l1_ssim_backward",
    "project",
    "project_backward",
    "to_rgba8",
    "use_launcher",
]


def project(inputs: SplatInputs, view: View) -> Projected:
    """Splats onto the image plane; see `projected.py` for the rules."""
    projected = empty_projected(inputs)
    params = project_params(inputs, view, projected)
    count, device = inputs.means.shape[0], inputs.means.device
    launch(
        *("project", params, device, blocks(count, sources.constants()["splat_block"])),
        means_2d=projected.means_2d,
        conics=projected.conics,
        depths=projected.depths,
        opacities=projected.opacities,
        colors=None if inputs.features is not None else projected.colors,
        radii=projected.radii,
    )
    return projected


def project_backward(
    inputs: SplatInputs,
    view: View,
    radii: Tensor,
    gradients: Sequence[Tensor | None],
    wanted: SplatGradients,
    flags: Tensor | None = None,
) -> None:
    """Fills `wanted` from the gradients of (means_2d, conics, depths, opacities, colors).

    Adds to `flags` (2) int32 what was found on the way (`step_guard`), unless it is None.
    """
    incoming = [None if g is None else g.contiguous() for g in gradients]
    means = inputs.means
    grid = blocks(means.shape[0], sources.constants()["splat_block"])
    partials = None
    if wanted.world_to_camera is not None:
        partials = empty(grid, 12, dtype=means.dtype, device=means.device)
    params = project_backward_params(inputs, view, radii, incoming, wanted, partials, flags)
    launch(
        *("project_backward", params, means.device, grid),
        grad_means=wanted.means,
        grad_quaternions=wanted.quaternions,
        grad_scales=wanted.scales,
        grad_opacities=wanted.opacities,
        grad_sh_dc=wanted.sh_dc,
        grad_sh_rest=wanted.sh_rest,
        camera_partials=partials,
    )
    if wanted.world_to_camera is not None:
        launch(
            *("sum_camera_gradient", params, means.device, 1),
            grad_world_to_camera=wanted.world_to_camera,
        )


def l1_ssim(
    render: Tensor,
    target: Tensor,
    ssim_weight: float,
    *,
    for_backward: bool,
    flags: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, ...] | None]:
    """The terms of the loss (4), in the order of `LossTerms`, and what backward needs.

    Adds to `flags` (2) int32 whether the loss is finite (`step_guard`), unless it is None.
    """
    device = render.device
    maps = empty(3, *render.shape, dtype=render.dtype, device=device) if for_backward else None
    terms = empty(4, dtype=torch.float64, device=device)
    grid = _loss_blocks(render)
    partials = empty(grid, 3, dtype=torch.float64, device=device)
    params = loss_params(render, target, ssim_weight)
    params.maps = pointer(maps)
    params.partials = pointer(partials)
    params.terms = pointer(terms)
    launch("measure_loss", params, device, grid, partials=partials, maps=maps)
    summing = LossPassParams(loss=params, blocks=grid, flags=pointer(flags))
    launch("sum_loss", summing, device, 1, terms=terms)
    return terms.to(render.dtype), None if maps is None else (render, target, maps)


def l1_ssim_backward(saved: Sequence[Tensor], ssim_weight: float, grad_loss: Tensor) -> Tensor:
    """The gradient by the render."""
    render, target, maps = saved
    gradient = empty_like(render)
    params = loss_params(render, target, ssim_weight)
    params.maps = pointer(maps)
    params.gradient = pointer(gradient)
    grid = _loss_blocks(render)
    differentiating = LossPassParams(loss=params, grad_loss=pointer(grad_loss), blocks=grid)
    launch("differentiate_loss", differentiating, render.device, grid, gradient=gradient)
    return gradient


def _loss_blocks(render: Tensor) -> int:
    height, width, channels = render.shape
    sizes = sources.constants()
    chunk = sizes["loss_channels"]
    columns = blocks(width * min(channels, chunk), sizes["loss_columns"])
    return blocks(channels, chunk) * columns * blocks(height, sizes["loss_strip"])


def adam_step(
    groups: Sequence[AdamGroup],
    *,
    beta1: float,
    beta2: float,
    eps: float,
    radii: Tensor | None,
    flags: Tensor | None = None,
) -> None:
    """One step of Adam in place on contiguous tensors of one type; `radii` (n, 2) or None.

    Nothing moves where `flags` (2) say that something was not finite or nothing was seen.
    """
    per_block = sources.constants()["adam_block"]
    for chosen, params in adam_calls(groups, beta1, beta2, eps, radii, flags):
        grid = sum(blocks(group.parameter.numel(), per_block) for group in chosen)
        launch("adam", params, chosen[0].parameter.device, grid)
        if debug_is_on():
            check_written("adam", {f"parameter {i}": g.parameter for i, g in enumerate(chosen)})


def to_rgba8(color: Tensor) -> Tensor:
    """Bytes (h, w, 4) of a contiguous picture (h, w, 3)."""
    height, width, _ = color.shape
    rgba = torch.empty(height, width, 4, dtype=torch.uint8, device=color.device)
    params = Rgba8Params(color=pointer(color), rgba=pointer(rgba), pixels=height * width)
    grid = blocks(height * width, sources.constants()["rgba8_block"])
    launch("to_rgba8", params, color.device, grid)
    return rgba
