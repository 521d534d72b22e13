"""What the kernels of both fast backends are handed: dataclasses, and the structures made of them.

The tensors come checked and contiguous (`rasterize` does that), all on one device. Nothing here
runs anything.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.debug import empty, empty_like
from cuda_rasterizer.native_structs import (
    MAXIMUM_ADAM_GROUPS,
    AdamGroupParams,
    AdamParams,
    CutoffParams,
    LossParams,
    ProjectBackwardParams,
    ProjectParams,
    SplatParams,
    TileParams,
)
from cuda_rasterizer.projected import Projected


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
    raw: bool = False


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


@dataclass(frozen=True)
class AdamGroup:
    """One tensor for a step of Adam: it and its moments are changed in place.

    Attributes:
        parameter: contiguous, as the moments are.
        gradient: of the loss by the parameter.
        exp_avg: running mean of the gradient.
        exp_avg_sq: running mean of its square.
        lr: learning rate.
        step: of this parameter, counted from 1.
    """

    parameter: Tensor
    gradient: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    lr: float
    step: int


def pointer(tensor: Tensor | None) -> int | None:
    """Address of the first number, or None."""
    return None if tensor is None else tensor.data_ptr()


def empty_projected(inputs: SplatInputs) -> Projected:
    """Room for what projection leaves; features are their own colours."""
    means = inputs.means
    count = means.shape[0]

    def numbers(*shape: int) -> Tensor:
        return empty(*shape, dtype=means.dtype, device=means.device)

    return Projected(
        means_2d=numbers(count, 2),
        conics=numbers(count, 3),
        depths=numbers(count),
        opacities=numbers(count),
        colors=inputs.features if inputs.features is not None else numbers(count, 3),
        radii=empty(count, 2, dtype=torch.int32, device=means.device),
    )


def empty_blend_gradients(projected: Projected) -> BlendGradients:
    """Room for what a training step wants of compositing."""
    return BlendGradients(
        means_2d=empty_like(projected.means_2d),
        conics=empty_like(projected.conics),
        depths=None,
        opacities=empty_like(projected.opacities),
        colors=empty_like(projected.colors),
        background=None,
    )


def empty_splat_gradients(inputs: SplatInputs, rest_learns: bool) -> SplatGradients:
    """Room for what a training step wants of splats with spherical harmonics."""
    rest = inputs.sh_rest if rest_learns else None
    return SplatGradients(
        means=empty_like(inputs.means),
        quaternions=empty_like(inputs.quaternions),
        scales=empty_like(inputs.scales),
        opacities=empty_like(inputs.opacities),
        sh_dc=None if inputs.sh_dc is None else empty_like(inputs.sh_dc),
        sh_rest=None if rest is None else empty_like(rest),
        world_to_camera=None,
    )


@functools.lru_cache(maxsize=16)
def cutoff_params(cutoffs: Cutoffs) -> CutoffParams:
    """The cut-offs as kernels read them; not to be written, but copied into a structure."""
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
    params = SplatParams(
        means=pointer(inputs.means),
        quaternions=pointer(inputs.quaternions),
        scales=pointer(inputs.scales),
        opacities=pointer(inputs.opacities),
        sh_dc=pointer(dc),
        sh_rest=pointer(rest),
        features=pointer(features),
        sh_dc_stride=0 if dc is None else dc.stride(0),
        sh_rest_stride=0 if rest is None else rest.stride(0),
        count=inputs.means.shape[0],
        channels=3 if features is None else features.shape[1],
        sh_degree=view.sh_degree,
        antialiased=int(view.antialiased),
        raw=int(view.raw),
        cutoffs=cutoff_params(view.cutoffs),
    )
    write_camera(params, inputs, view)
    return params


def write_camera(params: SplatParams, inputs: SplatInputs, view: View) -> None:
    """The camera, which differs between pictures of the same splats."""
    params.world_to_camera = pointer(inputs.world_to_camera)
    params.intrinsics = pointer(inputs.intrinsics)
    params.width, params.height = view.width, view.height


def project_params(inputs: SplatInputs, view: View, projected: Projected) -> ProjectParams:
    """For projection into `projected`."""
    return ProjectParams(
        splats=_splat_params(inputs, view),
        means_2d=pointer(projected.means_2d),
        conics=pointer(projected.conics),
        depths=pointer(projected.depths),
        effective_opacities=pointer(projected.opacities),
        colors=pointer(projected.colors) if inputs.features is None else None,
        radii=pointer(projected.radii),
    )


def project_backward_params(
    inputs: SplatInputs,
    view: View,
    radii: Tensor,
    incoming: Sequence[Tensor | None],
    wanted: SplatGradients,
    camera_partials: Tensor | None,
    flags: Tensor | None,
) -> ProjectBackwardParams:
    """For the way back; `incoming` are contiguous, in the order of `Projected`."""
    return ProjectBackwardParams(
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
        camera_partials=pointer(camera_partials),
        sh_rest_coefficients=0 if inputs.sh_rest is None else inputs.sh_rest.shape[1],
        flags=pointer(flags),
    )


def tile_params(
    colors: Tensor,
    background: Tensor | None,
    records: Tensor,
    tile_offsets: Tensor,
    tile_order: Tensor,
    instance_splats: Tensor,
    size: tuple[int, int],
    cutoffs: Cutoffs,
) -> TileParams:
    """What compositing and its way back share; `size` is (width, height). No workspace."""
    params = tile_params_of_splats(colors, cutoffs)
    write_tile_lists(params, records, tile_offsets, tile_order, instance_splats)
    write_background(params, background)
    params.width, params.height = size
    return params


def tile_params_of_splats(colors: Tensor, cutoffs: Cutoffs) -> TileParams:
    """The part of `tile_params` that stays from one picture of the same splats to the next."""
    return TileParams(
        colors=pointer(colors),
        count=colors.shape[0],
        channels=colors.shape[1],
        cutoffs=cutoff_params(cutoffs),
    )


def write_tile_lists(
    params: TileParams,
    records: Tensor,
    tile_offsets: Tensor,
    tile_order: Tensor,
    instance_splats: Tensor,
) -> None:
    """Which splats touch which tile."""
    params.records = pointer(records)
    params.tile_offsets = pointer(tile_offsets)
    params.tile_order = pointer(tile_order)
    params.instance_splats = pointer(instance_splats)


def write_background(params: TileParams, background: Tensor | None) -> None:
    """One colour, one a pixel, or black."""
    params.background = pointer(background)
    params.background_per_pixel = int(background is not None and background.dim() == 3)


def loss_params(render: Tensor, target: Tensor, ssim_weight: float) -> LossParams:
    """The pictures of the loss."""
    height, width, channels = render.shape
    params = LossParams(channels=channels, width=width, height=height)
    write_comparison(params, render, target, ssim_weight)
    return params


def write_comparison(
    params: LossParams, render: Tensor, target: Tensor, ssim_weight: float
) -> None:
    """The part of `loss_params` that differs between pictures of one size.

    The target is of the render's type, or bytes.
    """
    of_bytes = target.dtype == torch.uint8
    params.render = pointer(render)
    params.target = None if of_bytes else pointer(target)
    params.target_bytes = pointer(target) if of_bytes else None
    params.ssim_weight = ssim_weight


def adam_calls(
    groups: Sequence[AdamGroup],
    beta1: float,
    beta2: float,
    eps: float,
    radii: Tensor | None,
    flags: Tensor | None,
) -> Iterator[tuple[Sequence[AdamGroup], AdamParams]]:
    """As many calls as it takes, each of at most `MAXIMUM_ADAM_GROUPS` groups."""
    for first in range(0, len(groups), MAXIMUM_ADAM_GROUPS):
        chosen = groups[first : first + MAXIMUM_ADAM_GROUPS]
        params = AdamParams(
            radii=pointer(radii),
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            group_count=len(chosen),
            flags=pointer(flags),
        )
        for index, group in enumerate(chosen):
            params.groups[index] = AdamGroupParams(
                parameter=pointer(group.parameter),
                gradient=pointer(group.gradient),
                exp_avg=pointer(group.exp_avg),
                exp_avg_sq=pointer(group.exp_avg_sq),
                count=group.parameter.numel(),
                row_size=group.parameter.shape[1:].numel(),
            )
        write_rates(params, chosen)
        yield chosen, params


def write_rates(params: AdamParams, groups: Sequence[AdamGroup]) -> None:
    """What differs from step to step: rates, and Adam's corrections for the start."""
    beta1, beta2 = params.beta1, params.beta2
    for group, of_group in zip(groups, params.groups, strict=False):
        of_group.step_size = group.lr / (1 - beta1**group.step)
        of_group.correction = math.sqrt(1 - beta2**group.step)
