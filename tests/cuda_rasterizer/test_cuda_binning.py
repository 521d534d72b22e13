"""Binning on the device, run by the emulator: sorts, tile lists, and counts that do not fit."""

import math

import pytest
import torch

from cuda_rasterizer.cpu_backend import Binning
from cuda_rasterizer.cuda import binning
from cuda_rasterizer.cuda.launches import blocks, launch
from cuda_rasterizer.cuda.structures import EmitParams, RangeParams, ScanParams
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from cuda_rasterizer.kernel_arguments import pointer
from cuda_rasterizer.projected import Projected
from tests.cuda_emulator.launcher import Order
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.device_kernels import (
    CPU,
    GUARD,
    Binned,
    binned,
    projected_scene,
    sort_once,
)

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("emulated", "fast_backend")]

BEYOND_32_BITS = 2**33


def splats_at(positions, *, deviation=2.0, opacity=0.9, depths=None) -> Projected:
    """Round splats at pixel positions."""
    count = len(positions)
    radius = math.ceil(deviation * math.sqrt(2 * math.log(255 * opacity)))
    inverse = 1 / deviation**2
    return Projected(
        means_2d=torch.tensor(positions, dtype=torch.float32).reshape(count, 2),
        conics=torch.tensor([[inverse, 0.0, inverse]]).repeat(count, 1),
        depths=torch.arange(1.0, count + 1) if depths is None else torch.tensor(depths),
        opacities=torch.full((count,), opacity),
        colors=torch.rand(count, 3, generator=torch.Generator().manual_seed(3)),
        radii=torch.full((count, 2), radius, dtype=torch.int32),
    )


def assert_lists_are_those_of_the_cpu(
    projected: Projected, width: int, height: int, cutoffs: Cutoffs = CLASSIC
) -> Binned:
    truth = Binning(projected, cutoffs, for_backward=True).run(width, height)
    found = binned(projected, width, height, cutoffs, with_slots=True)
    assert torch.equal(found.lists.tile_offsets, truth.tile_offsets)
    assert torch.equal(found.splats, truth.instance_splats)
    return found


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 255, 4095, 4096, 4097, 9000])
def test_a_digit_sorts_stably_and_touches_nothing_else(count, narrow):
    random = torch.Generator().manual_seed(count)
    capacity = count + 100
    dtype, shift = (torch.int16, 8) if narrow else (torch.int32, 16)
    # Few different digits, so that many items share one, and the largest digit among them.
    digits = torch.tensor([0, 3, 128, 255])[torch.randint(4, (capacity,), generator=random)]
    keys = (digits << shift) | torch.randint(256, (capacity,), generator=random)
    keys = keys.to(dtype)
    values = torch.arange(capacity, dtype=torch.int32)
    sorted_keys, sorted_values = sort_once(keys, values, count, shift, narrow=narrow)
    order = digits[:count].argsort(stable=True)
    assert torch.equal(sorted_keys[:count], keys[order])
    assert torch.equal(sorted_values[:count], values[order])
    assert (sorted_keys[count:] == -1).all()
    assert (sorted_values[count:] == -1).all()


def test_sorting_nothing_touches_nothing():
    keys, values = torch.zeros(50, dtype=torch.int32), torch.zeros(50, dtype=torch.int32)
    sorted_keys, sorted_values = sort_once(keys, values, 0, 0, narrow=False)
    assert (sorted_keys == -1).all()
    assert (sorted_values == -1).all()


@pytest.mark.parametrize("count", [0, 1, 1024, 2500])
def test_sums_of_blocks_go_beyond_32_bits(count):
    random = torch.Generator().manual_seed(count)
    values = torch.randint(2**40, (count,), generator=random)
    sums, total = values.clone(), torch.zeros(1, dtype=torch.int64)
    params = ScanParams(block_sums=pointer(sums), total=pointer(total), count=count)
    launch("scan_block_sums", params, CPU, 1, 1024)
    assert torch.equal(sums, values.cumsum(0) - values)
    assert int(total) == int(values.sum())


@pytest.mark.parametrize(
    "cutoffs", [CLASSIC, GSPLAT, Cutoffs(footprint_cap=2.0)], ids=["classic", "gsplat", "capped"]
)
@pytest.mark.parametrize("seed", range(3))
def test_lists_are_those_of_the_cpu(seed, cutoffs):
    scene = scenes.random_scene(seed, 300, 150, 90, scale_range=(0.005, 0.5))
    assert_lists_are_those_of_the_cpu(projected_scene(scene, cutoffs), 150, 90, cutoffs)


@pytest.mark.parametrize("case", scenes.HARD_CASES)
def test_lists_of_hard_cases_are_those_of_the_cpu(case):
    scene = scenes.hard_case(case)
    assert_lists_are_those_of_the_cpu(projected_scene(scene), scene.width, scene.height)


@pytest.mark.parametrize("size", [(640, 160), (48, 640)])
@pytest.mark.parametrize("conic", [1e-7, 1e-16])
def test_a_splat_on_every_tile_is_dealt_to_each_once(size, conic):
    # Whole warps count and emit it, the rows by turns where there are more than lanes; single lanes
    # deal the others. The determinant of the second conic is lost to float32's range.
    width, height = size
    big = splats_at([[30.0, 80.0], [20.0, 40.0], [width - 40.0, height - 10.0]])
    big.conics[0] = torch.tensor([conic, conic / 2, conic])
    big.radii[0] = 10**9
    found = assert_lists_are_those_of_the_cpu(big, width, height)
    assert int(found.ordered.tile_counts[0]) == width * height // 256
    assert (found.lists.tile_offsets.diff() >= 1).all()


def test_a_large_ellipse_is_dealt_to_the_tiles_that_it_reaches():
    # Slanted, and so high that its rows begin at different tiles.
    slanted = splats_at([[160.0, 270.0]])
    a, b, c = 1 / 600.0, -0.9 / 600.0, 1 / 600.0
    slanted.conics[0] = torch.tensor([a, b, c])
    deviation = math.sqrt(c / (a * c - b * b))
    slanted.radii[0] = math.ceil(deviation * math.sqrt(2 * math.log(255 * 0.9)))
    found = assert_lists_are_those_of_the_cpu(slanted, 320, 540)
    # Its box is 20 by 24 tiles.
    assert 16 < found.instances < 0.8 * 20 * 24


def test_equal_depths_go_by_index():
    close = splats_at([[8.0, 8.0]] * 40, depths=[2.0] * 20 + [1.0] * 20)
    found = binned(close, 16, 16)
    assert found.splats.tolist() == [*range(20, 40), *range(20)]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("seen", [False, True])
def test_few_splats_or_none_have_lists(count, seen):
    few = splats_at([[8.0 + 3 * i, 9.0] for i in range(count)])
    if not seen:
        few.radii.zero_()
        few.means_2d.fill_(math.nan)
        few.depths.zero_()
    found = binned(few, 33, 17, with_slots=True)
    assert int(found.ordered.totals[0]) == (count if seen else 0)
    if not seen or count == 0:
        assert found.instances == 0
        assert not found.lists.tile_offsets.any()
        assert sorted(found.lists.tile_order.tolist()) == list(range(6))
    else:
        assert_lists_are_those_of_the_cpu(few, 33, 17)


def test_more_tiles_than_16_bits_can_number():
    # 65,552 tiles in one row.
    width = 16 * (2**16 + 16)
    far = [[8.0, 1.0], [width - 8.0, 1.0], [2**20 - 8.0, 1.0], [2**20 + 0.5, 1.0]]
    found = binned(splats_at(far, deviation=0.6), width, 2)
    truth = [[0, 0], [2**16 + 15, 1], [2**16 - 1, 2], [2**16 - 1, 3], [2**16, 3]]
    for tile, splat in truth:
        begin, end = found.lists.tile_offsets[tile : tile + 2].tolist()
        assert splat in found.splats[begin:end].tolist()
    assert found.instances == len(truth)
    order = found.lists.tile_order
    # Long lists first: those with two splats, then one, then none.
    assert int(order[0]) == 2**16 - 1
    assert torch.equal(order.sort().values, torch.arange(2**16 + 16, dtype=torch.int32))


def test_long_lists_are_taken_first():
    positions = [[8.0, 8.0]] + [[24.0, 8.0]] * 40 + [[40.0, 8.0]] * 7
    found = binned(splats_at(positions, deviation=0.5), 64, 16)
    assert found.lists.tile_order.tolist() == [1, 2, 0, 3]


def test_slots_stand_in_the_order_of_emission():
    scene = scenes.random_scene(2, 100, 80, 60)
    found = binned(projected_scene(scene), 80, 60, with_slots=True)
    slots = found.lists.instance_slots[: found.instances].long()
    assert torch.equal(slots.sort().values, torch.arange(found.instances))
    first = found.lists.first_slots.long()[found.splats.long()]
    count = found.ordered.tile_counts.long()[found.splats.long()]
    assert ((slots >= first) & (slots < first + count)).all()
    without = binned(projected_scene(scene), 80, 60)
    assert torch.equal(without.splats, found.splats)


def emission(found: Binned, capacity: int) -> tuple[EmitParams, list[torch.Tensor]]:
    """Emission into buffers with guards behind them."""
    order = found.ordered
    buffers = [torch.full((capacity + GUARD,), -1, dtype=torch.int32) for _ in range(3)]
    params = EmitParams(
        records=pointer(order.records),
        tile_counts=pointer(order.tile_counts),
        order=pointer(order.order),
        totals=pointer(order.totals),
        block_sums=pointer(order.block_sums),
        tiles=pointer(buffers[0]),
        values=pointer(buffers[1]),
        emitted_splats=pointer(buffers[2]),
        count=order.order.shape[0],
        capacity=capacity,
        width=640,
        height=160,
    )
    return params, buffers


def crowd() -> Projected:
    """Three hundred splats of some tiles each, and one that whole warps emit."""
    random = torch.Generator().manual_seed(5)
    positions = torch.rand(300, 2, generator=random) * torch.tensor([640.0, 160.0])
    many = splats_at(positions.tolist(), deviation=3.0)
    many.conics[100] = torch.tensor([1e-7, 0.0, 1e-7])
    many.radii[100] = 100000
    return many


def test_a_buffer_that_is_too_small_is_filled_and_not_overrun():
    many = crowd()
    found = binned(many, 640, 160)
    _, whole = emission_of(found, found.instances)
    for capacity in (found.instances - 1, 600, 200, 1):
        _, cut = emission_of(found, capacity)
        for buffer, full in zip(cut, whole, strict=True):
            assert torch.equal(buffer[:capacity], full[:capacity])
            assert (buffer[capacity:] == -1).all()
        # Lists from a cut emission are void, but built within their buffers.
        lists = binning.deal_to_tiles(found.ordered, capacity, 640, 160, with_slots=True)
        assert int(lists.tile_offsets[-1]) == capacity
        assert ((lists.instance_splats >= 0) & (lists.instance_splats < 300)).all()
    assert int(found.ordered.totals[1]) == found.instances


def emission_of(found: Binned, capacity: int) -> tuple[EmitParams, list[torch.Tensor]]:
    params, buffers = emission(found, capacity)
    launch("emit_instances", params, CPU, blocks(params.count))
    return params, buffers


def test_places_beyond_32_bits_write_nothing():
    found = binned(crowd(), 640, 160)
    found.ordered.block_sums.add_(BEYOND_32_BITS)
    _, buffers = emission_of(found, 600)
    assert all((buffer == -1).all() for buffer in buffers)


def test_ranges_stop_at_the_capacity_when_more_are_counted():
    tiles = torch.tensor([0, 0, 2, 2, 2, 3], dtype=torch.int32)
    offsets = torch.full((6,), -1, dtype=torch.int64)
    totals = torch.tensor([1, BEYOND_32_BITS])
    params = RangeParams(
        tiles=pointer(tiles),
        tile_offsets=pointer(offsets),
        totals=pointer(totals),
        capacity=6,
        tile_count=5,
    )
    launch("tile_ranges", params, CPU, 1)
    assert offsets.tolist() == [0, 2, 2, 5, 6, 6]


def test_lists_do_not_depend_on_the_order_of_execution(emulated):
    many = crowd()
    natural = binned(many, 640, 160, with_slots=True)
    for seed in range(3):
        with emulated.ordered(Order(seed)):
            shuffled = binned(many, 640, 160, with_slots=True)
        assert torch.equal(shuffled.splats, natural.splats)
        assert torch.equal(shuffled.lists.tile_offsets, natural.lists.tile_offsets)
        assert torch.equal(shuffled.lists.instance_slots, natural.lists.instance_slots)
        assert torch.equal(shuffled.lists.first_slots, natural.lists.first_slots)
