"""The CPU kernels on torch tensors: allocates, fills the parameter structures, calls.

Tensors come checked and contiguous (`rasterize` does that). What a call needs in passing dies with
it; what its backward needs is returned. Nothing here knows of autograd.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from cuda_rasterizer import native
from cuda_rasterizer.attention import call_in_pieces
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.kernel_arguments import (
    AdamGroup,
    BlendGradients,
    SplatGradients,
    SplatInputs,
    View,
    adam_calls,
    cutoff_params,
    empty_projected,
    loss_params,
    pointer,
    project_backward_params,
    project_params,
    tile_params,
)
from cuda_rasterizer.native_structs import (
    BinParams,
    BlendBackwardParams,
    BlendParams,
    Rgba8Params,
    TileParams,
)
from cuda_rasterizer.projected import Projected
from cuda_rasterizer.step_guard import LOSS_BIT

CACHE_LINE_NUMBERS = 16


@dataclass(frozen=True)
class TileLists:
    """Instances (a splat in a tile) tile by tile, near to far."""

    records: Tensor
    splat_offsets: Tensor
    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor | None


class BlendSaved(NamedTuple):
    """What the backward of compositing needs of its forward, beside the inputs."""

    records: Tensor
    splat_offsets: Tensor
    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor
    transmittance: Tensor
    stops: Tensor


def project(inputs: SplatInputs, view: View) -> Projected:
    """Splats onto the image plane; see `projected.py` for the rules."""
    projected = empty_projected(inputs)
    params = project_params(inputs, view, projected)
    call_in_pieces("project", inputs.means.dtype, params)
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
    blocks = -(-inputs.means.shape[0] // native.constants()["splat_block"])
    partials = inputs.means.new_empty(blocks, 12) if wanted.world_to_camera is not None else None
    params = project_backward_params(inputs, view, radii, incoming, wanted, partials, flags)
    call_in_pieces("project_backward", inputs.means.dtype, params)


def build_tile_lists(
    projected: Projected, width: int, height: int, cutoffs: Cutoffs, *, for_backward: bool
) -> TileLists:
    """Sorts by depth and deals the splats to the tiles that they touch."""
    sizes = native.constants()
    means_2d = projected.means_2d
    count = means_2d.shape[0]
    tiles = -(-width // sizes["tile_size"]) * -(-height // sizes["tile_size"])

    def allocate(*shape: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=means_2d.device)

    records = means_2d.new_empty(count, sizes["record_size"])
    sort_keys = allocate(2, count, dtype=torch.int64)
    order = allocate(2, count, dtype=torch.int32)
    tile_counts = allocate(sizes["bin_blocks"], tiles, dtype=torch.int32)
    splat_offsets = allocate(count + 1, dtype=torch.int64)
    tile_offsets = allocate(tiles + 1, dtype=torch.int64)
    totals = (ctypes.c_int64 * 2)()
    params = BinParams(
        means_2d=pointer(means_2d),
        conics=pointer(projected.conics),
        depths=pointer(projected.depths),
        opacities=pointer(projected.opacities),
        colors=pointer(projected.colors),
        radii=pointer(projected.radii),
        count=count,
        channels=projected.colors.shape[1],
        width=width,
        height=height,
        cutoffs=cutoff_params(cutoffs),
        records=pointer(records),
        sort_keys=pointer(sort_keys),
        order=pointer(order),
        tile_counts=pointer(tile_counts),
        splat_offsets=pointer(splat_offsets),
        tile_offsets=pointer(tile_offsets),
        totals=ctypes.addressof(totals),
    )
    call_in_pieces("bin_count", means_2d.dtype, params)
    instances = totals[1]
    tile_order = allocate(tiles, dtype=torch.int32)
    instance_splats = allocate(instances, dtype=torch.int32)
    instance_slots = allocate(instances, dtype=torch.int64) if for_backward else None
    params.tile_order = pointer(tile_order)
    params.instance_splats = pointer(instance_splats)
    params.instance_slots = pointer(instance_slots)
    call_in_pieces("bin_fill", means_2d.dtype, params)
    return TileLists(
        records, splat_offsets, tile_offsets, tile_order, instance_splats, instance_slots
    )


def _with_workspace(params: TileParams, workspace: Tensor) -> TileParams:
    params.workspace = pointer(workspace)
    params.workspace_stride = workspace.stride(0)
    params.workers = workspace.shape[0]
    return params


def _tile_workspace(like: Tensor, channels: int) -> Tensor:
    pixels = native.constants()["tile_size"] ** 2
    return like.new_empty(native.thread_count(), channels * (pixels + CACHE_LINE_NUMBERS) + pixels)


def blend(
    projected: Projected,
    background: Tensor | None,
    width: int,
    height: int,
    cutoffs: Cutoffs,
    *,
    with_depth: bool,
    for_backward: bool,
) -> tuple[Tensor, Tensor, Tensor | None, BlendSaved | None]:
    """Composites: colour (h, w, c), alpha (h, w), depth (h, w) or None, and what backward needs."""
    means_2d, colors = projected.means_2d, projected.colors
    lists = build_tile_lists(projected, width, height, cutoffs, for_backward=for_backward)
    workspace = _tile_workspace(means_2d, colors.shape[1])
    color = means_2d.new_empty(height, width, colors.shape[1])
    alpha = means_2d.new_empty(height, width)
    depth = means_2d.new_empty(height, width) if with_depth else None
    transmittance = means_2d.new_empty(height, width) if for_backward else None
    stops = (
        means_2d.new_empty(height, width, dtype=torch.int32) if transmittance is not None else None
    )
    tiles = tile_params(
        *(colors, background, lists.records, lists.tile_offsets, lists.tile_order),
        *(lists.instance_splats, (width, height), cutoffs),
    )
    params = BlendParams(
        tiles=_with_workspace(tiles, workspace),
        color=pointer(color),
        alpha=pointer(alpha),
        depth=pointer(depth),
        transmittance=pointer(transmittance),
        stops=pointer(stops),
    )
    call_in_pieces("blend", means_2d.dtype, params)
    if transmittance is None or stops is None or lists.instance_slots is None:
        return color, alpha, depth, None
    saved = BlendSaved(
        records=lists.records,
        splat_offsets=lists.splat_offsets,
        tile_offsets=lists.tile_offsets,
        tile_order=lists.tile_order,
        instance_splats=lists.instance_splats,
        instance_slots=lists.instance_slots,
        transmittance=transmittance,
        stops=stops,
    )
    return color, alpha, depth, saved


def blend_backward(
    saved: Sequence[Tensor | None],
    colors: Tensor,
    background: Tensor | None,
    cutoffs: Cutoffs,
    gradients: tuple[Tensor | None, Tensor | None, Tensor | None],
    wanted: BlendGradients,
    absolute_gradient: Tensor | None,
) -> None:
    """Fills `wanted` from the gradients of (color, alpha, depth)."""
    forward = BlendSaved(*saved)  # type: ignore[arg-type]
    height, width = forward.transmittance.shape
    sizes = native.constants()
    channels = colors.shape[1]
    grad_color, grad_alpha, grad_depth = (None if g is None else g.contiguous() for g in gradients)
    workspace = _tile_workspace(colors, channels)
    instances = forward.instance_splats.shape[0]
    slot_size = sizes["slot_moments"] + channels
    slot_size += 1 if grad_depth is not None else 0
    slot_size += 2 if absolute_gradient is not None else 0
    slots = colors.new_empty(instances, slot_size)
    constant = wanted.background is not None and wanted.background.dim() == 1
    partials = colors.new_empty(forward.tile_order.shape[0], channels) if constant else None
    tiles = tile_params(
        *(colors, background, forward.records, forward.tile_offsets, forward.tile_order),
        *(forward.instance_splats, (width, height), cutoffs),
    )
    params = BlendBackwardParams(
        tiles=_with_workspace(tiles, workspace),
        splat_offsets=pointer(forward.splat_offsets),
        instance_slots=pointer(forward.instance_slots),
        transmittance=pointer(forward.transmittance),
        stops=pointer(forward.stops),
        grad_color=pointer(grad_color),
        grad_alpha=pointer(grad_alpha),
        grad_depth=pointer(grad_depth),
        slots=pointer(slots),
        slot_size=slot_size,
        grad_means_2d=pointer(wanted.means_2d),
        grad_conics=pointer(wanted.conics),
        grad_opacities=pointer(wanted.opacities),
        grad_colors=pointer(wanted.colors),
        grad_depths=pointer(wanted.depths),
        absolute_gradient=pointer(absolute_gradient),
        grad_background=pointer(wanted.background),
        tile_partials=pointer(partials),
    )
    call_in_pieces("blend_backward", colors.dtype, params)


def l1_ssim(
    render: Tensor,
    target: Tensor,
    ssim_weight: float,
    *,
    for_backward: bool,
    flags: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, ...] | None]:
    """The terms of the loss (4), in the order of `LossTerms`, and what backward needs.

    That is the gradient itself: here it comes cheapest with the comparison. Adds to `flags` (2)
    int32 whether the loss is finite (`step_guard`), unless it is None.
    """
    gradient = torch.empty_like(render) if for_backward else None
    height, width, channels = render.shape
    sizes = native.constants()
    strip_width, across = _strips(width, channels)
    workspace = _loss_workspace(render, strip_width * channels, channels)
    down = -(-height // sizes["loss_rows"])
    partials = torch.empty(down * across, 3, dtype=torch.float64)
    terms = (ctypes.c_double * 4)()
    params = loss_params(render, target, ssim_weight)
    params.gradient = pointer(gradient)
    params.partials = pointer(partials)
    params.terms = ctypes.addressof(terms)
    params.workspace = pointer(workspace)
    params.workspace_stride = workspace.stride(0)
    params.workers = workspace.shape[0]
    params.strip_width = strip_width
    call_in_pieces("l1_ssim", render.dtype, params)
    if flags is not None and not math.isfinite(terms[0]):
        flags[0] |= LOSS_BIT
    return render.new_tensor(tuple(terms)), None if gradient is None else (gradient,)


def _strips(width: int, channels: int) -> tuple[int, int]:
    """Strips as wide as each other, and whole vectors: their width in pixels, and how many."""
    strips = -(-width * channels // native.constants()["loss_numbers"])
    strip_width = -(-width // strips // CACHE_LINE_NUMBERS) * CACHE_LINE_NUMBERS
    return strip_width, -(-width // strip_width)


def _loss_workspace(like: Tensor, numbers: int, channels: int) -> Tensor:
    """Rows for strips of so many numbers, or a chunk, with two windows and a vector around them."""
    sizes = native.constants()
    windows = (4 * sizes["ssim_radius"] + 1) * channels
    row = max(numbers, sizes["loss_chunk"]) + windows + 2 * CACHE_LINE_NUMBERS
    # An odd number of cache lines, lest the rows of a column fall into one set of the cache.
    lines = -(-row // CACHE_LINE_NUMBERS) | 1
    stride = sizes["loss_workspace_rows"] * lines * CACHE_LINE_NUMBERS
    return like.new_empty(native.thread_count(), stride)


def l1_ssim_backward(saved: Sequence[Tensor], ssim_weight: float, grad_loss: Tensor) -> Tensor:
    """The gradient by the render; not to be written, where it is the saved one itself."""
    (gradient,) = saved
    return gradient if grad_loss.item() == 1.0 else gradient * grad_loss


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
    for chosen, params in adam_calls(groups, beta1, beta2, eps, radii, flags):
        native.call("adam", chosen[0].parameter.dtype, params)


def to_rgba8(color: Tensor) -> Tensor:
    """Bytes (h, w, 4) of a contiguous picture (h, w, 3)."""
    height, width, _ = color.shape
    rgba = color.new_empty(height, width, 4, dtype=torch.uint8)
    params = Rgba8Params(color=pointer(color), rgba=pointer(rgba), pixels=height * width)
    native.call("to_rgba8", color.dtype, params)
    return rgba
