"""The CPU kernels on torch tensors: allocates, fills the parameter structures, calls.

Tensors come checked and contiguous (`rasterize` does that). What a call needs in passing dies with
it; what its backward needs is returned. Nothing here knows of autograd.
"""

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_rasterizer import native
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.native import pointer
from cuda_rasterizer.native_structs import (
    AdamParams,
    BinParams,
    BlendBackwardParams,
    BlendParams,
    CutoffParams,
    LossParams,
    ProjectBackwardParams,
    ProjectParams,
    Rgba8Params,
    SplatParams,
    TileParams,
)
from cuda_rasterizer.projected import Projected

CACHE_LINE_NUMBERS = 16


@dataclass(frozen=True)
class SplatInputs:
    """Splats and camera of one projection; colours are SH (`sh_dc`, `sh_rest`) or `features`."""

    means: Tensor
    quaternions: Tensor
    scales: Tensor
    opacities: Tensor
    sh_dc: Tensor | None
    sh_rest: Tensor | None
    features: Tensor | None
    world_to_camera: Tensor
    intrinsics: Tensor


@dataclass(frozen=True)
class View:
    """What is not a tensor: the size of the picture and how to draw."""

    width: int
    height: int
    sh_degree: int
    antialiased: bool
    cutoffs: Cutoffs


@dataclass(frozen=True)
class TileLists:
    """Instances (a splat in a tile) tile by tile, near to far."""

    records: Tensor
    splat_offsets: Tensor
    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor | None


@dataclass(frozen=True)
class BlendSaved:
    """What the backward of compositing needs of its forward, beside the inputs."""

    lists: TileLists
    transmittance: Tensor
    stops: Tensor


@dataclass(frozen=True)
class BlendGradients:
    """Gradients of what compositing read; None where nobody asked."""

    means_2d: Tensor | None
    conics: Tensor | None
    depths: Tensor | None
    opacities: Tensor | None
    colors: Tensor | None
    background: Tensor | None


@dataclass(frozen=True)
class SplatGradients:
    """Gradients of what projection read; None where nobody asked."""

    means: Tensor | None
    quaternions: Tensor | None
    scales: Tensor | None
    opacities: Tensor | None
    sh_dc: Tensor | None
    sh_rest: Tensor | None
    world_to_camera: Tensor | None


def _cutoff_params(cutoffs: Cutoffs) -> CutoffParams:
    return CutoffParams(
        near=cutoffs.near,
        alpha_floor=cutoffs.alpha_floor,
        alpha_ceiling=cutoffs.alpha_ceiling,
        stop_transmittance=cutoffs.stop_transmittance,
        dilation=cutoffs.dilation,
        j_clamp=cutoffs.j_clamp,
        footprint_cap=cutoffs.footprint_cap,
        stop_inclusive=int(cutoffs.stop_inclusive),
    )


def _splat_params(inputs: SplatInputs, view: View) -> SplatParams:
    dc, rest, features = inputs.sh_dc, inputs.sh_rest, inputs.features
    return SplatParams(
        means=pointer(inputs.means),
        quaternions=pointer(inputs.quaternions),
        scales=pointer(inputs.scales),
        opacities=pointer(inputs.opacities),
        sh_dc=pointer(dc),
        sh_rest=pointer(rest),
        features=pointer(features),
        world_to_camera=pointer(inputs.world_to_camera),
        intrinsics=pointer(inputs.intrinsics),
        sh_dc_stride=0 if dc is None else dc.stride(0),
        sh_rest_stride=0 if rest is None else rest.stride(0),
        count=inputs.means.shape[0],
        channels=3 if features is None else features.shape[1],
        sh_degree=view.sh_degree,
        width=view.width,
        height=view.height,
        antialiased=int(view.antialiased),
        cutoffs=_cutoff_params(view.cutoffs),
    )


def project(inputs: SplatInputs, view: View) -> Projected:
    """Splats onto the image plane; see `projected.py` for the rules."""
    means = inputs.means
    count = means.shape[0]
    colors = inputs.features if inputs.features is not None else means.new_empty(count, 3)
    projected = Projected(
        means_2d=means.new_empty(count, 2),
        conics=means.new_empty(count, 3),
        depths=means.new_empty(count),
        opacities=means.new_empty(count),
        colors=colors,
        radii=means.new_empty(count, 2, dtype=torch.int32),
    )
    params = ProjectParams(
        splats=_splat_params(inputs, view),
        means_2d=pointer(projected.means_2d),
        conics=pointer(projected.conics),
        depths=pointer(projected.depths),
        effective_opacities=pointer(projected.opacities),
        colors=pointer(colors) if inputs.features is None else None,
        radii=pointer(projected.radii),
    )
    native.call("project", means.dtype, params)
    return projected


def project_backward(
    inputs: SplatInputs,
    view: View,
    radii: Tensor,
    gradients: tuple[Tensor | None, ...],
    wanted: SplatGradients,
) -> None:
    """Fills `wanted` from the gradients of (means_2d, conics, depths, opacities, colors)."""
    incoming = [None if g is None else g.contiguous() for g in gradients]
    blocks = -(-inputs.means.shape[0] // native.constants()["splat_block"])
    partials = inputs.means.new_empty(blocks, 12) if wanted.world_to_camera is not None else None
    params = ProjectBackwardParams(
        splats=_splat_params(inputs, view),
        radii=pointer(radii),
        grad_means_2d=pointer(incoming[0]),
        grad_conics=pointer(incoming[1]),
        grad_depths=pointer(incoming[2]),
        grad_effective_opacities=pointer(incoming[3]),
        grad_colors=pointer(incoming[4]),
        grad_means=pointer(wanted.means),
        grad_quaternions=pointer(wanted.quaternions),
        grad_scales=pointer(wanted.scales),
        grad_opacities=pointer(wanted.opacities),
        grad_sh_dc=pointer(wanted.sh_dc),
        grad_sh_rest=pointer(wanted.sh_rest),
        grad_world_to_camera=pointer(wanted.world_to_camera),
        camera_partials=pointer(partials),
        sh_rest_coefficients=0 if inputs.sh_rest is None else inputs.sh_rest.shape[1],
    )
    native.call("project_backward", inputs.means.dtype, params)


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
        cutoffs=_cutoff_params(cutoffs),
        records=pointer(records),
        sort_keys=pointer(sort_keys),
        order=pointer(order),
        tile_counts=pointer(tile_counts),
        splat_offsets=pointer(splat_offsets),
        tile_offsets=pointer(tile_offsets),
        totals=ctypes.addressof(totals),
    )
    native.call("bin_count", means_2d.dtype, params)
    instances = totals[1]
    tile_order = allocate(tiles, dtype=torch.int32)
    instance_splats = allocate(instances, dtype=torch.int32)
    instance_slots = allocate(instances, dtype=torch.int64) if for_backward else None
    params.tile_order = pointer(tile_order)
    params.instance_splats = pointer(instance_splats)
    params.instance_slots = pointer(instance_slots)
    native.call("bin_fill", means_2d.dtype, params)
    return TileLists(
        records, splat_offsets, tile_offsets, tile_order, instance_splats, instance_slots
    )


def _tile_params(
    colors: Tensor,
    background: Tensor | None,
    lists: TileLists,
    workspace: Tensor,
    size: tuple[int, int],
    cutoffs: Cutoffs,
) -> TileParams:
    return TileParams(
        colors=pointer(colors),
        background=pointer(background),
        records=pointer(lists.records),
        tile_offsets=pointer(lists.tile_offsets),
        tile_order=pointer(lists.tile_order),
        instance_splats=pointer(lists.instance_splats),
        workspace=pointer(workspace),
        workspace_stride=workspace.stride(0),
        count=lists.records.shape[0],
        workers=workspace.shape[0],
        channels=colors.shape[1],
        width=size[0],
        height=size[1],
        background_per_pixel=int(background is not None and background.dim() == 3),
        cutoffs=_cutoff_params(cutoffs),
    )


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
    for_backward: bool,
) -> tuple[Tensor, Tensor, Tensor, BlendSaved | None]:
    """Composites: colour (h, w, c), alpha (h, w), depth (h, w), and what backward needs."""
    means_2d, colors = projected.means_2d, projected.colors
    lists = build_tile_lists(projected, width, height, cutoffs, for_backward=for_backward)
    workspace = _tile_workspace(means_2d, colors.shape[1])
    color = means_2d.new_empty(height, width, colors.shape[1])
    alpha, depth = means_2d.new_empty(2, height, width).unbind(0)
    transmittance = means_2d.new_empty(height, width) if for_backward else None
    stops = (
        means_2d.new_empty(height, width, dtype=torch.int32) if transmittance is not None else None
    )
    params = BlendParams(
        tiles=_tile_params(colors, background, lists, workspace, (width, height), cutoffs),
        color=pointer(color),
        alpha=pointer(alpha),
        depth=pointer(depth),
        transmittance=pointer(transmittance),
        stops=pointer(stops),
    )
    native.call("blend", means_2d.dtype, params)
    if transmittance is None or stops is None:
        return color, alpha, depth, None
    return color, alpha, depth, BlendSaved(lists, transmittance, stops)


def blend_backward(
    saved: BlendSaved,
    colors: Tensor,
    background: Tensor | None,
    cutoffs: Cutoffs,
    gradients: tuple[Tensor | None, Tensor | None, Tensor | None],
    wanted: BlendGradients,
    absolute_gradient: Tensor | None,
) -> None:
    """Fills `wanted` from the gradients of (color, alpha, depth)."""
    height, width = saved.transmittance.shape
    sizes = native.constants()
    channels = colors.shape[1]
    lists = saved.lists
    grad_color, grad_alpha, grad_depth = (None if g is None else g.contiguous() for g in gradients)
    workspace = _tile_workspace(colors, channels)
    instances = lists.instance_splats.shape[0]
    slot_size = sizes["slot_moments"] + channels
    slot_size += 1 if grad_depth is not None else 0
    slot_size += 2 if absolute_gradient is not None else 0
    slots = colors.new_empty(instances, slot_size)
    constant = wanted.background is not None and wanted.background.dim() == 1
    partials = colors.new_empty(lists.tile_order.shape[0], channels) if constant else None
    params = BlendBackwardParams(
        tiles=_tile_params(colors, background, lists, workspace, (width, height), cutoffs),
        splat_offsets=pointer(lists.splat_offsets),
        instance_slots=pointer(lists.instance_slots),
        transmittance=pointer(saved.transmittance),
        stops=pointer(saved.stops),
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
    native.call("blend_backward", colors.dtype, params)


def l1_ssim(
    render: Tensor, target: Tensor, ssim_weight: float, gradient: Tensor | None
) -> tuple[float, float, float]:
    """Loss, mean absolute difference and mean SSIM; fills `gradient` of the loss by `render`."""
    height, width, channels = render.shape
    sizes = native.constants()
    # Four fields, each a ring of blurred rows stored twice, a padded row and a result.
    window = 2 * sizes["ssim_radius"]
    numbers = 4 * ((2 * (window + 1) + 2) * width * channels + window * channels)
    stride = -(-numbers // CACHE_LINE_NUMBERS) * CACHE_LINE_NUMBERS
    workspace = render.new_empty(native.thread_count(), stride)
    maps = None if gradient is None else render.new_empty(3, height, width, channels)
    partials = torch.empty(-(-height // sizes["loss_rows"]), 2, dtype=torch.float64)
    terms = (ctypes.c_double * 3)()
    params = LossParams(
        render=pointer(render),
        target=pointer(target),
        gradient=pointer(gradient),
        maps=pointer(maps),
        workspace=pointer(workspace),
        partials=pointer(partials),
        terms=ctypes.addressof(terms),
        workspace_stride=stride,
        workers=workspace.shape[0],
        channels=channels,
        width=width,
        height=height,
        ssim_weight=ssim_weight,
    )
    native.call("l1_ssim", render.dtype, params)
    return terms[0], terms[1], terms[2]


def adam_step(
    parameter: Tensor,
    gradient: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    *,
    lr: float,
    step: int,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """One step of Adam in place on contiguous tensors of one type."""
    params = AdamParams(
        parameter=pointer(parameter),
        gradient=pointer(gradient),
        exp_avg=pointer(exp_avg),
        exp_avg_sq=pointer(exp_avg_sq),
        count=parameter.numel(),
        step=step,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
    )
    native.call("adam", parameter.dtype, params)


def to_rgba8(color: Tensor) -> Tensor:
    """Bytes (h, w, 4) of a contiguous picture (h, w, 3)."""
    height, width, _ = color.shape
    rgba = color.new_empty(height, width, 4, dtype=torch.uint8)
    params = Rgba8Params(color=pointer(color), rgba=pointer(rgba), pixels=height * width)
    native.call("to_rgba8", color.dtype, params)
    return rgba
