"""The host's side of binning on the device; `include/cuda_params.h` has the steps, one by one.

How many instances (a splat in a tile) there are is known on the device only. The host guesses a
capacity from the last picture of the same size, queues everything, and reads the number once, while
the device is still at work; where the guess was too low, dealing and compositing are repeated.
"""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.launches import BLOCK, WARP, blocks, launch
from cuda_rasterizer.cuda.structures import (
    CompactParams,
    EmitParams,
    GatherParams,
    OrderParams,
    PackParams,
    RangeParams,
    ScanParams,
    SortParams,
)
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.debug import check_written, debug_is_on, empty
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import cutoff_params, pointer
from cuda_rasterizer.projected import Projected

_SCAN_BLOCK: Final = 1024
_DEPTH_PASSES: Final = 4
_DIGIT_BITS: Final = 8
_SIZE_OF_COUNT: Final = 8
_REMEMBERED_SIZES: Final = 256

_capacities: dict[tuple[torch.device, int, int], int] = {}


@dataclass(frozen=True)
class DepthOrder:
    """The seen splats near to far, and what dealing them to tiles needs.

    Attributes:
        records: (n, record_size), as compositing reads splats.
        tile_counts: (n), tiles that each reaches.
        order: (n), the first `totals[0]` are splats near to far.
        block_sums: instances before each block of splats.
        totals: (2) int64, seen splats and instances.
    """

    records: Tensor
    tile_counts: Tensor
    order: Tensor
    block_sums: Tensor
    totals: Tensor


@dataclass(frozen=True)
class TileLists:
    """Instances tile by tile, near to far; slots only for a deterministic backward.

    Attributes:
        tile_offsets: (tiles + 1), first instance of each tile.
        tile_order: (tiles), long lists first.
        instance_splats: (capacity).
        instance_slots: (capacity), place of each instance in the order of emission, or None.
        first_slots: (n), first place of each splat, or None.
    """

    tile_offsets: Tensor
    tile_order: Tensor
    instance_splats: Tensor
    instance_slots: Tensor | None
    first_slots: Tensor | None


class InstanceCount:
    """The number of instances on its way to the host.

    This is the one place of a step where the host waits for the device: until splats are counted,
    while dealing, sorting and compositing are queued behind.
    """

    def __init__(self, totals: Tensor) -> None:
        """Begins to read; call it behind the kernel that counts."""
        self._event: torch.cuda.Event | None = None
        self._totals = totals
        if totals.is_cuda:
            self._totals = torch.empty(2, dtype=torch.int64, pin_memory=True)
            self._totals.copy_(totals, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record(torch.cuda.current_stream(totals.device))

    def read(self) -> int:
        """Waits for it.

        Raises:
            RasterizerError: more than can be numbered.
        """
        if self._event is not None:
            self._event.synchronize()
        found = int(self._totals[1])
        limit = sources.constants()["maximum_instances"]
        if not 0 <= found <= limit:
            raise RasterizerError(
                f"the splats reach {found} tiles in all; at most {limit} can be drawn. Draw a "
                "smaller picture, fewer splats, or look for splats that have grown too large"
            )
        return found


def tile_count(width: int, height: int) -> int:
    """Tiles of a picture."""
    side = sources.constants()["tile_size"]
    return blocks(width, side) * blocks(height, side)


def expected_capacity(device: torch.device, width: int, height: int, splats: int) -> int:
    """Instances to make room for, from the last picture of this size."""
    return _capacities.get((device, width, height)) or _rounded(4 * splats)


def remember_capacity(device: torch.device, width: int, height: int, instances: int) -> int:
    """Notes what a picture needed, with some room to grow; the capacity from now on.

    It grows at once and shrinks slowly, so that views of one size do not take turns repeating.
    """
    key = (device, width, height)
    if key not in _capacities and len(_capacities) >= _REMEMBERED_SIZES:
        _capacities.clear()
    wanted = _rounded(instances + instances // 4)
    before = _capacities.get(key, 0)
    if wanted < before:
        wanted = max(wanted, _rounded(before - before // 16))
    _capacities[key] = wanted
    return wanted


def _rounded(count: int) -> int:
    constants = sources.constants()
    step = constants["sort_items"]
    return min(max(step, blocks(count, step) * step), constants["maximum_instances"])


def order_by_depth(projected: Projected, width: int, height: int, cutoffs: Cutoffs) -> DepthOrder:
    """Packs the splats, counts their tiles and sorts the seen ones by depth, ties by index."""
    means_2d = projected.means_2d
    device, count = means_2d.device, means_2d.shape[0]
    records = empty(count, sources.constants()["record_size"], dtype=means_2d.dtype, device=device)
    tile_counts = empty(count, dtype=torch.int32, device=device)
    block_sums = empty(blocks(count), dtype=torch.int64, device=device)
    totals = empty(2, dtype=torch.int64, device=device)
    packing = PackParams(
        means_2d=pointer(means_2d),
        conics=pointer(projected.conics),
        depths=pointer(projected.depths),
        opacities=pointer(projected.opacities),
        colors=pointer(projected.colors),
        radii=pointer(projected.radii),
        records=pointer(records),
        tile_counts=pointer(tile_counts),
        block_sums=pointer(block_sums),
        count=count,
        channels=projected.colors.shape[1],
        width=width,
        height=height,
        cutoffs=cutoff_params(cutoffs),
    )
    launch(
        *("pack_splats", packing, device, blocks(count)),
        tile_counts=tile_counts,
        block_sums=block_sums,
    )
    _scan(block_sums, totals, 0)
    keys = _pair(count, torch.int32, device)
    splats = _pair(count, torch.int32, device)
    compacting = CompactParams(
        depths=pointer(projected.depths),
        tile_counts=pointer(tile_counts),
        block_sums=pointer(block_sums),
        keys=pointer(keys[0]),
        splats=pointer(splats[0]),
        count=count,
    )
    launch("compact_splats", compacting, device, blocks(count))
    _sort(keys, splats, totals, 0, _DEPTH_PASSES)
    ordered = DepthOrder(records, tile_counts, splats[0], block_sums, totals)
    counting = _emit_params(ordered, 0, width, height)
    launch("count_instances", counting, device, blocks(count), block_sums=block_sums)
    _scan(block_sums, totals, 1)
    return ordered


def deal_to_tiles(
    ordered: DepthOrder, capacity: int, width: int, height: int, *, with_slots: bool
) -> TileLists:
    """Lists of at most `capacity` instances in all; void where there are more."""
    device, count = ordered.totals.device, ordered.order.shape[0]
    tiles = tile_count(width, height)
    narrow = tiles <= sources.constants()["maximum_narrow_tiles"]
    suffix = "_narrow" if narrow else ""
    keys = _pair(capacity, torch.int16 if narrow else torch.int32, device)
    values = _pair(capacity, torch.int32, device)
    emitted = empty(capacity, dtype=torch.int32, device=device) if with_slots else None
    first_slots = empty(count, dtype=torch.int32, device=device) if with_slots else None
    emitting = _emit_params(ordered, capacity, width, height)
    emitting.tiles = pointer(keys[0])
    emitting.values = pointer(values[0])
    emitting.emitted_splats = pointer(emitted)
    emitting.first_slots = pointer(first_slots)
    launch(f"emit_instances{suffix}", emitting, device, blocks(count))
    passes = max(1, blocks((tiles - 1).bit_length(), _DIGIT_BITS))
    _sort(keys, values, ordered.totals, 1, passes, suffix)
    sorted_tiles, sorted_values = keys[passes % 2], values[passes % 2]
    instance_splats = sorted_values
    if emitted is not None:
        instance_splats = empty(capacity, dtype=torch.int32, device=device)
        gathering = GatherParams(
            emitted_splats=pointer(emitted),
            instance_slots=pointer(sorted_values),
            instance_splats=pointer(instance_splats),
            totals=pointer(ordered.totals),
            capacity=capacity,
        )
        launch("gather_instances", gathering, device, blocks(capacity))
    tile_offsets = _tile_offsets(sorted_tiles, ordered.totals, tiles, suffix)
    return TileLists(
        tile_offsets,
        _tile_order(tile_offsets),
        instance_splats,
        sorted_values if with_slots else None,
        first_slots,
    )


def check_lists(lists: TileLists, instances: int, splats: int) -> None:
    """For the debug switch: offsets rise to the count, and every instance is of a splat."""
    if not debug_is_on():
        return
    offsets = lists.tile_offsets
    check_written("tile_ranges", {"tile_offsets": offsets, "tile_order": lists.tile_order})
    steps = offsets[1:] - offsets[:-1]
    if int(offsets[0]) != 0 or int(offsets[-1]) != instances or bool((steps < 0).any()):
        raise RasterizerError(
            f"kernel tile_ranges left offsets that do not rise from 0 to {instances}: "
            f"{offsets.tolist()}"
        )
    listed = lists.instance_splats[:instances]
    outside = ((listed < 0) | (listed >= splats)).nonzero()
    if len(outside):
        place = int(outside[0])
        raise RasterizerError(
            f"binning listed splat {int(listed[place])} of {splats} at instance {place}"
        )


def _emit_params(ordered: DepthOrder, capacity: int, width: int, height: int) -> EmitParams:
    return EmitParams(
        records=pointer(ordered.records),
        tile_counts=pointer(ordered.tile_counts),
        order=pointer(ordered.order),
        totals=pointer(ordered.totals),
        block_sums=pointer(ordered.block_sums),
        count=ordered.order.shape[0],
        capacity=capacity,
        width=width,
        height=height,
    )


def _pair(count: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Two buffers to sort back and forth; apart, so that one can be kept without the other."""
    first, second = (empty(count, dtype=dtype, device=device) for _ in range(2))
    return first, second


def _scan(block_sums: Tensor, totals: Tensor, index: int) -> None:
    """Exclusive sums in place; the sum of all goes to `totals[index]`."""
    params = ScanParams(
        block_sums=pointer(block_sums),
        total=totals.data_ptr() + _SIZE_OF_COUNT * index,
        count=block_sums.shape[0],
    )
    launch("scan_block_sums", params, totals.device, 1, _SCAN_BLOCK)


def _sort(
    keys: tuple[Tensor, Tensor],
    values: tuple[Tensor, Tensor],
    totals: Tensor,
    index: int,
    passes: int,
    suffix: str = "",
) -> None:
    """Stable, by the lowest digits of the first `totals[index]`; ends in the half `passes % 2`."""
    capacity, device = values[0].shape[0], totals.device
    constants = sources.constants()
    grid, digits = blocks(capacity, constants["sort_items"]), constants["sort_digits"]
    scan_block = min(BLOCK, WARP * blocks(max(grid, 1), WARP))
    digit_counts = empty(digits, grid, dtype=torch.int32, device=device)
    digit_totals = empty(digits, dtype=torch.int32, device=device)
    for turn in range(passes):
        source, target = turn % 2, 1 - turn % 2
        params = SortParams(
            keys=pointer(keys[source]),
            values=pointer(values[source]),
            sorted_keys=pointer(keys[target]),
            sorted_values=pointer(values[target]),
            digit_counts=pointer(digit_counts),
            digit_totals=pointer(digit_totals),
            count=totals.data_ptr() + _SIZE_OF_COUNT * index,
            capacity=capacity,
            shift=turn * _DIGIT_BITS,
        )
        launch(f"sort_count{suffix}", params, device, grid)
        launch("sort_scan", params, device, digits, scan_block)
        launch(f"sort_scatter{suffix}", params, device, grid)


def _tile_offsets(sorted_tiles: Tensor, totals: Tensor, tiles: int, suffix: str) -> Tensor:
    offsets = empty(tiles + 1, dtype=torch.int64, device=totals.device)
    params = RangeParams(
        tiles=pointer(sorted_tiles),
        tile_offsets=pointer(offsets),
        totals=pointer(totals),
        capacity=sorted_tiles.shape[0],
        tile_count=tiles,
    )
    launch(f"tile_ranges{suffix}", params, totals.device, blocks(tiles + 1))
    return offsets


def _tile_order(tile_offsets: Tensor) -> Tensor:
    tiles = tile_offsets.shape[0] - 1
    order = empty(tiles, dtype=torch.int32, device=tile_offsets.device)
    params = OrderParams(
        tile_offsets=pointer(tile_offsets), tile_order=pointer(order), tile_count=tiles
    )
    launch("order_tiles", params, tile_offsets.device, 1, _SCAN_BLOCK)
    return order
