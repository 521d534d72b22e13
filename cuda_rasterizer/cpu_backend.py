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
from cuda_rasterizer.cpu_loss import CACHE_LINE_NUMBERS, Loss
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
    pointer,
    project_backward_params,
    project_params,
    tile_params_of_splats,
    write_background,
    write_tile_lists,
)
from cuda_rasterizer.native_structs import (
    BinParams,
    BlendBackwardParams,
    BlendParams,
    Rgba8Params,
    TileParams,
)
from cuda_rasterizer.projected import Projected

ROOM_TO_GROW = 8  # lists that must be longer are made longer by one part of so many than is wanted


@dataclass(frozen=True)
class TileLists:
    """Instances (a splat in a tile) tile by tile, near to far."""

    records: Tensor
    splat_offsets: Tensor
    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor | None
    touches: Tensor | None


class BlendSaved(NamedTuple):
    """What the backward of compositing needs of its forward, beside the inputs."""

    records: Tensor
    splat_offsets: Tensor
    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor
    touches: Tensor
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


class Binning:
    """Sorts by depth and deals the splats to the tiles that they touch, as often as it is run.

    What it leaves is overwritten by the next run.
    """

    def __init__(self, projected: Projected, cutoffs: Cutoffs, *, for_backward: bool) -> None:
        """`projected` may be written between two runs."""
        sizes = native.constants()
        means_2d = projected.means_2d
        count = means_2d.shape[0]
        self._records = means_2d.new_empty(count, sizes["record_size"])
        sort_keys = _integers(means_2d.element_size() // 2, count, dtype=torch.int64)
        order = _integers(count)
        self._splat_offsets = _integers(count + 1, dtype=torch.int64)
        self._tile_counts, self._tile_order = _integers(0), _integers(0)
        self._tile_offsets = _integers(0, dtype=torch.int64)
        self._instance_splats = _integers(0)
        self._instance_slots = _integers(0, dtype=torch.int64) if for_backward else None
        self._touches = _integers(0) if for_backward else None
        self._totals = (ctypes.c_int64 * 2)()
        self._alive = projected, sort_keys, order
        self._params = BinParams(
            means_2d=pointer(means_2d),
            conics=pointer(projected.conics),
            depths=pointer(projected.depths),
            opacities=pointer(projected.opacities),
            colors=pointer(projected.colors),
            radii=pointer(projected.radii),
            count=count,
            channels=projected.colors.shape[1],
            cutoffs=cutoff_params(cutoffs),
            records=pointer(self._records),
            sort_keys=pointer(sort_keys),
            order=pointer(order),
            splat_offsets=pointer(self._splat_offsets),
            totals=ctypes.addressof(self._totals),
        )

    def run(self, width: int, height: int) -> TileLists:
        """The lists for a picture of that size."""
        params, dtype = self._params, self._records.dtype
        if (params.width, params.height) != (width, height):
            self._resize(width, height)
        call_in_pieces("bin_count", dtype, params)
        instances = self._totals[1]
        _make_room(self._instance_splats, instances)
        params.instance_splats = pointer(self._instance_splats)
        if self._instance_slots is not None:
            _make_room(self._instance_slots, instances)
            params.instance_slots = pointer(self._instance_slots)
        if self._touches is not None:
            _make_room(self._touches, instances, native.constants()["touch_numbers"])
        call_in_pieces("bin_fill", dtype, params)
        return TileLists(
            *(self._records, self._splat_offsets, self._tile_offsets, self._tile_order),
            *(self._instance_splats, self._instance_slots, self._touches),
        )

    def _resize(self, width: int, height: int) -> None:
        sizes = native.constants()
        tiles = -(-width // sizes["tile_size"]) * -(-height // sizes["tile_size"])
        params = self._params
        params.width = params.height = 0  # until there is room
        params.tile_counts = pointer(self._tile_counts.resize_(sizes["bin_blocks"], tiles))
        params.tile_offsets = pointer(self._tile_offsets.resize_(tiles + 1))
        params.tile_order = pointer(self._tile_order.resize_(tiles))
        params.width, params.height = width, height


def _make_room(tensor: Tensor, rows: int, *columns: int) -> Tensor:
    """`tensor` with that shape; where it must grow, to more, since the next step may want more."""
    wanted = rows * math.prod(columns)
    if wanted * tensor.element_size() > tensor.untyped_storage().nbytes():
        tensor.resize_(wanted + wanted // ROOM_TO_GROW)
    return tensor.resize_(rows, *columns)


def _integers(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def _tiles(colors: Tensor, cutoffs: Cutoffs, workspace: Tensor) -> TileParams:
    """What compositing and its way back share, but for what `_hand_over` adds."""
    tiles = tile_params_of_splats(colors, cutoffs)
    tiles.workspace = pointer(workspace)
    tiles.workers, tiles.workspace_stride = workspace.shape[0], workspace.stride(0)
    return tiles


def _hand_over(
    tiles: TileParams,
    lists: TileLists | BlendSaved,
    background: Tensor | None,
    width: int,
    height: int,
) -> None:
    write_tile_lists(
        *(tiles, lists.records, lists.tile_offsets, lists.tile_order, lists.instance_splats)
    )
    tiles.touches = pointer(lists.touches)
    write_background(tiles, background)
    tiles.width, tiles.height = width, height


def _tile_workspace(like: Tensor, channels: int) -> Tensor:
    pixels = native.constants()["tile_size"] ** 2
    return like.new_empty(native.thread_count(), channels * (pixels + CACHE_LINE_NUMBERS) + pixels)


class Compositing:
    """Tile lists and the picture made of them, as often as it is run.

    `color` (h, w, c), `alpha` (h, w), `depth` (h, w) or None are overwritten by the next run.
    """

    def __init__(
        self, projected: Projected, cutoffs: Cutoffs, *, with_depth: bool, for_backward: bool
    ) -> None:
        """`projected` may be written between two runs."""
        colors = projected.colors
        workspace = _tile_workspace(colors, colors.shape[1])
        self._binning = Binning(projected, cutoffs, for_backward=for_backward)
        self.color, self.alpha = colors.new_empty(0), colors.new_empty(0)
        self.depth = colors.new_empty(0) if with_depth else None
        self._transmittance = colors.new_empty(0) if for_backward else None
        self._stops = _integers(0) if for_backward else None
        self._alive = workspace
        self._params = BlendParams(tiles=_tiles(colors, cutoffs, workspace))

    def run(self, background: Tensor | None, width: int, height: int) -> BlendSaved | None:
        """Composites; what backward needs, if it was asked for."""
        lists = self._binning.run(width, height)
        params, tiles = self._params, self._params.tiles
        if (tiles.width, tiles.height) != (width, height):
            self._resize(width, height, tiles.channels)
        _hand_over(tiles, lists, background, width, height)
        call_in_pieces("blend", self.color.dtype, params)
        if self._transmittance is None or self._stops is None:
            return None
        assert lists.instance_slots is not None
        assert lists.touches is not None
        return BlendSaved(
            *(lists.records, lists.splat_offsets, lists.tile_offsets, lists.tile_order),
            *(lists.instance_splats, lists.instance_slots, lists.touches),
            *(self._transmittance, self._stops),
        )

    def _resize(self, width: int, height: int, channels: int) -> None:
        params = self._params
        params.tiles.width = params.tiles.height = 0  # until there is room
        params.color = pointer(self.color.resize_(height, width, channels))
        for name, plane in (
            ("alpha", self.alpha),
            ("depth", self.depth),
            ("transmittance", self._transmittance),
            ("stops", self._stops),
        ):
            if plane is not None:
                setattr(params, name, pointer(plane.resize_(height, width)))


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
    picture = Compositing(projected, cutoffs, with_depth=with_depth, for_backward=for_backward)
    saved = picture.run(background, width, height)
    return picture.color, picture.alpha, picture.depth, saved


class BlendBackward:
    """The way back through compositing, as often as it is run."""

    def __init__(
        self,
        colors: Tensor,
        cutoffs: Cutoffs,
        wanted: BlendGradients,
        absolute_gradient: Tensor | None,
    ) -> None:
        """Fills `wanted`, and `absolute_gradient` where it is wanted, anew in each run."""
        workspace = _tile_workspace(colors, colors.shape[1])
        self._colors, self.wanted, self._absolute = colors, wanted, absolute_gradient
        self._alive = workspace
        self._slots = colors.new_empty(0)
        self._params = BlendBackwardParams(
            tiles=_tiles(colors, cutoffs, workspace),
            grad_means_2d=pointer(wanted.means_2d),
            grad_conics=pointer(wanted.conics),
            grad_opacities=pointer(wanted.opacities),
            grad_colors=pointer(wanted.colors),
            grad_depths=pointer(wanted.depths),
            absolute_gradient=pointer(absolute_gradient),
            grad_background=pointer(wanted.background),
        )

    def run(
        self,
        saved: BlendSaved,
        background: Tensor | None,
        gradients: tuple[Tensor | None, Tensor | None, Tensor | None],
    ) -> None:
        """From the contiguous gradients of (color, alpha, depth)."""
        params, colors, behind = self._params, self._colors, self.wanted.background
        slot_size = native.constants()["slot_moments"] + colors.shape[1]
        slot_size += 1 if gradients[2] is not None else 0
        slot_size += 2 if self._absolute is not None else 0
        slots = _make_room(self._slots, saved.instance_splats.shape[0], slot_size)
        height, width = saved.transmittance.shape
        is_constant = behind is not None and behind.dim() == 1
        tiles = saved.tile_order.shape[0]
        partials = colors.new_empty(tiles, colors.shape[1]) if is_constant else None
        _hand_over(params.tiles, saved, background, width, height)
        params.splat_offsets = pointer(saved.splat_offsets)
        params.instance_slots = pointer(saved.instance_slots)
        params.transmittance = pointer(saved.transmittance)
        params.stops = pointer(saved.stops)
        params.grad_color, params.grad_alpha, params.grad_depth = map(pointer, gradients)
        params.slots = pointer(slots)
        params.slot_size = slot_size
        params.tile_partials = pointer(partials)
        call_in_pieces("blend_backward", colors.dtype, params)

    def give_back(self) -> None:
        """Free the largest of its memory; the next run takes it anew."""
        self._slots = self._colors.new_empty(0)


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
    color, alpha, depth = (None if g is None else g.contiguous() for g in gradients)
    way_back = BlendBackward(colors, cutoffs, wanted, absolute_gradient)
    way_back.run(forward, background, (color, alpha, depth))


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
    loss = Loss(render, for_backward=for_backward)
    values = loss.run(render, target, ssim_weight, flags)
    return values, None if loss.gradient is None else (loss.gradient,)


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
