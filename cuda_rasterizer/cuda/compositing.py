"""Compositing on the device and its way back: the host's side of `blend*.cu`, `splat_gradients.cu`.

Kernels, their order and the rows of sums that they fill stand in `include/cuda_params.h`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.binning import (
    InstanceCount,
    TileLists,
    check_lists,
    deal_to_tiles,
    expected_capacity,
    order_by_depth,
    remember_capacity,
    tile_count,
)
from cuda_rasterizer.cuda.launches import blocks, launch
from cuda_rasterizer.cuda.structures import (
    BackgroundParams,
    BackwardPassParams,
    BlendPassParams,
    SplatGradientParams,
    SumSlotsParams,
)
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.debug import check_written, debug_is_on, empty
from cuda_rasterizer.determinism import is_deterministic
from cuda_rasterizer.kernel_arguments import BlendGradients, pointer, tile_params
from cuda_rasterizer.native_structs import BlendParams
from cuda_rasterizer.projected import Projected


class BlendSaved(NamedTuple):
    """What the backward of compositing needs of its forward, beside the inputs."""

    records: Tensor
    tile_counts: Tensor
    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor | None
    first_slots: Tensor | None
    transmittance: Tensor
    stops: Tensor


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
    device, splats = projected.means_2d.device, projected.means_2d.shape[0]
    picture = _empty_picture(
        *(projected.colors, width, height), with_depth=with_depth, for_backward=for_backward
    )
    ordered = order_by_depth(projected, width, height, cutoffs)
    count = InstanceCount(ordered.totals)
    capacity = expected_capacity(device, width, height, splats)
    while True:
        lists = deal_to_tiles(
            *(ordered, capacity, width, height),
            with_slots=for_backward and is_deterministic(),
        )
        _composite(projected.colors, background, ordered.records, lists, picture, cutoffs)
        instances = count.read()
        fits = instances <= capacity
        capacity = remember_capacity(device, width, height, instances)
        if fits:
            break
    if debug_is_on():
        check_lists(lists, instances, splats)
        check_written("blend", picture._asdict())
    if picture.transmittance is None or picture.stops is None:
        return picture.color, picture.alpha, picture.depth, None
    slots = lists.instance_slots
    saved = BlendSaved(
        records=ordered.records,
        tile_counts=ordered.tile_counts,
        tile_offsets=lists.tile_offsets,
        tile_order=lists.tile_order,
        instance_splats=lists.instance_splats[:instances],
        instance_slots=None if slots is None else slots[:instances],
        first_slots=lists.first_slots,
        transmittance=picture.transmittance,
        stops=picture.stops,
    )
    return picture.color, picture.alpha, picture.depth, saved


class _Picture(NamedTuple):
    color: Tensor
    alpha: Tensor
    depth: Tensor | None
    transmittance: Tensor | None
    stops: Tensor | None


def _empty_picture(
    colors: Tensor, width: int, height: int, *, with_depth: bool, for_backward: bool
) -> _Picture:
    def plane(dtype: torch.dtype) -> Tensor:
        return empty(height, width, dtype=dtype, device=colors.device)

    return _Picture(
        color=empty(height, width, colors.shape[1], dtype=colors.dtype, device=colors.device),
        alpha=plane(colors.dtype),
        depth=plane(colors.dtype) if with_depth else None,
        transmittance=plane(colors.dtype) if for_backward else None,
        stops=plane(torch.int32) if for_backward else None,
    )


def _composite(
    colors: Tensor,
    background: Tensor | None,
    records: Tensor,
    lists: TileLists,
    picture: _Picture,
    cutoffs: Cutoffs,
) -> None:
    """All channels: three at once, any other number by chunks."""
    height, width = picture.alpha.shape
    tiles = tile_params(
        *(colors, background, records, lists.tile_offsets, lists.tile_order),
        *(lists.instance_splats, (width, height), cutoffs),
    )
    blended = BlendParams(
        tiles=tiles,
        color=pointer(picture.color),
        alpha=pointer(picture.alpha),
        depth=pointer(picture.depth),
        transmittance=pointer(picture.transmittance),
        stops=pointer(picture.stops),
    )
    channels, grid = colors.shape[1], tile_count(width, height)
    suffix = "" if picture.depth is None else "_depth"
    if channels == 3:
        launch(f"blend{suffix}", BlendPassParams(blend=blended), colors.device, grid)
        return
    for begin in _chunks(channels):
        params = BlendPassParams(blend=blended, channel_begin=begin)
        name = f"blend_channels{suffix}" if begin == 0 else "blend_channels"
        launch(name, params, colors.device, grid)


def _chunks(channels: int) -> range:
    """Where the chunks of channels begin; there is one even of no channels."""
    return range(0, max(channels, 1), sources.constants()["channel_chunk"])


class _RowLayout(NamedTuple):
    """Where in a row of sums the channels and the extras begin, and how the rows are filled."""

    kernel: str | None  # of the geometry, None where only colours are wanted
    row_size: int
    color_row: int
    extra_row: int
    color_passes: bool


def _row_layout(channels: int, *, geometry: bool, extras: bool, with_colors: bool) -> _RowLayout:
    moments, extra = sources.constants()["slot_moments"], sources.constants()["row_extras"]
    if not geometry:
        return _RowLayout(None, channels, 0, 0, True)
    if channels == 3:
        end = moments + channels
        if not extras:
            return _RowLayout("blend_backward", end, moments, end, False)
        return _RowLayout("blend_backward_full", end + extra, moments, end, False)
    end = moments + (channels if with_colors else 0)
    return _RowLayout("blend_backward_wide", end + extra, moments, end, with_colors)


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
    grad_color, grad_alpha, grad_depth = (None if g is None else g.contiguous() for g in gradients)
    if wanted.background is not None and grad_color is not None:
        _background_gradient(forward.transmittance, grad_color, wanted.background)
    geometry = (wanted.means_2d, wanted.conics, wanted.opacities, wanted.depths, absolute_gradient)
    with_geometry = any(tensor is not None for tensor in geometry)
    if not with_geometry and wanted.colors is None:
        return
    layout = _row_layout(
        colors.shape[1],
        geometry=with_geometry,
        extras=grad_depth is not None or absolute_gradient is not None,
        with_colors=wanted.colors is not None,
    )
    height, width = forward.transmittance.shape
    params = BackwardPassParams(
        tiles=tile_params(
            *(colors, background, forward.records, forward.tile_offsets, forward.tile_order),
            *(forward.instance_splats, (width, height), cutoffs),
        ),
        transmittance=pointer(forward.transmittance),
        stops=pointer(forward.stops),
        grad_color=pointer(grad_color),
        grad_alpha=pointer(grad_alpha),
        grad_depth=pointer(grad_depth),
        instance_slots=pointer(forward.instance_slots),
        row_size=layout.row_size,
        color_row=layout.color_row,
        extra_row=layout.extra_row,
    )
    rows = _rows_of_splats(forward, params, layout, colors)
    _splat_gradients(forward, rows, layout, colors.shape[1], wanted, absolute_gradient)


def _rows_of_splats(
    forward: BlendSaved, params: BackwardPassParams, layout: _RowLayout, colors: Tensor
) -> Tensor:
    """The sums of each splat: by atomic additions, or by way of a slot for each instance."""
    device, splats = colors.device, forward.records.shape[0]
    deterministic = forward.instance_slots is not None
    instances = forward.instance_splats.shape[0]
    if deterministic:
        filled = empty(instances, layout.row_size, dtype=colors.dtype, device=device)
    else:
        filled = torch.zeros(splats, layout.row_size, dtype=colors.dtype, device=device)
    params.rows = pointer(filled)
    height, width = forward.transmittance.shape
    grid, suffix = tile_count(width, height), "_deterministic" if deterministic else ""
    if layout.kernel is not None:
        launch(f"{layout.kernel}{suffix}", params, device, grid)
    if layout.color_passes:
        for begin in _chunks(colors.shape[1]):
            params.channel_begin = begin
            launch(f"blend_backward_colors{suffix}", params, device, grid)
    if debug_is_on():
        check_written(layout.kernel or "blend_backward_colors", {"rows": filled})
    if not deterministic:
        return filled
    rows = empty(splats, layout.row_size, dtype=colors.dtype, device=device)
    summing = SumSlotsParams(
        slots=pointer(filled),
        tile_counts=pointer(forward.tile_counts),
        first_slots=pointer(forward.first_slots),
        rows=pointer(rows),
        row_size=layout.row_size,
        count=splats,
    )
    launch("sum_slots", summing, device, blocks(splats * layout.row_size), rows=rows)
    return rows


def _splat_gradients(
    forward: BlendSaved,
    rows: Tensor,
    layout: _RowLayout,
    channels: int,
    wanted: BlendGradients,
    absolute_gradient: Tensor | None,
) -> None:
    params = SplatGradientParams(
        records=pointer(forward.records),
        tile_counts=pointer(forward.tile_counts),
        rows=pointer(rows),
        grad_means_2d=pointer(wanted.means_2d),
        grad_conics=pointer(wanted.conics),
        grad_opacities=pointer(wanted.opacities),
        grad_colors=pointer(wanted.colors),
        grad_depths=pointer(wanted.depths),
        absolute_gradient=pointer(absolute_gradient),
        row_size=layout.row_size,
        count=rows.shape[0],
        channels=channels,
        color_row=layout.color_row,
        extra_row=layout.extra_row,
    )
    launch(
        *("splat_gradients", params, rows.device, blocks(rows.shape[0])),
        grad_means_2d=wanted.means_2d,
        grad_conics=wanted.conics,
        grad_opacities=wanted.opacities,
        grad_colors=wanted.colors,
        grad_depths=wanted.depths,
        absolute_gradient=absolute_gradient,
    )


def _background_gradient(transmittance: Tensor, grad_color: Tensor, wanted: Tensor) -> None:
    """Of a background per pixel, or of a constant one: sums of blocks, then their sum."""
    pixels, channels = transmittance.numel(), grad_color.shape[2]
    device = grad_color.device
    params = BackgroundParams(
        transmittance=pointer(transmittance),
        grad_color=pointer(grad_color),
        grad_background=pointer(wanted),
        pixels=pixels,
        channels=channels,
    )
    if wanted.dim() == 3:
        launch(
            *("background_gradient", params, device, blocks(pixels * channels)),
            grad_background=wanted,
        )
        return
    grid = blocks(pixels, sources.constants()["background_pixels"])
    partials = empty(grid, channels, dtype=grad_color.dtype, device=device)
    params.partials = pointer(partials)
    launch("background_sums", params, device, grid, partials=partials)
    launch("background_total", params, device, 1, grad_background=wanted)
