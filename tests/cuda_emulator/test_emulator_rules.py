"""The emulator itself: it computes what CUDA would, and stops at what CUDA forbids."""

import ctypes
import math

import pytest
import torch

from cuda_rasterizer.cuda.sources import FOLDER as CUDA_FOLDER
from tests.cuda_emulator.building import FOLDER, EmulatorError, build
from tests.cuda_emulator.launcher import NATURAL, Order, run

pytestmark = pytest.mark.emulator

ORDERS = [NATURAL, Order(seed=1), Order(seed=2)]


class TinyParams(ctypes.Structure):
    _fields_ = [
        ("numbers", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("count", ctypes.c_int64),
    ]


@pytest.fixture(scope="session")
def tiny(emulator_cache):
    return ctypes.CDLL(str(build([FOLDER / "tiny_kernels.cu"], [CUDA_FOLDER], emulator_cache)))


@pytest.fixture
def launch(tiny):
    def start(
        kernel, *, numbers=512, values=None, count=0, grid=1, block=32, order=NATURAL, **more
    ):
        integers = torch.zeros(numbers, dtype=torch.int32)
        floats = torch.zeros(512) if values is None else values.clone()
        params = TinyParams(integers.data_ptr(), floats.data_ptr(), count)
        run(tiny, kernel, params, grid, block, order=order, **more)
        return integers, floats

    return start


@pytest.mark.parametrize("order", ORDERS)
def test_every_lane_of_every_block_runs_once_and_knows_its_place(launch, order):
    found, _ = launch("write_indices", count=150, numbers=640, grid=2, block=96, order=order)
    found = found.view(-1, 4)
    index = torch.arange(150)
    within = index % 96
    blocks = torch.full_like(index, 2)
    expected = torch.stack([index // 96, within // 32, within % 32, blocks], dim=1)
    assert torch.equal(found[:150].long(), expected)
    assert not found[150:].any()


@pytest.mark.parametrize("order", ORDERS)
def test_shared_memory_passes_numbers_across_a_barrier(launch, order):
    values = torch.arange(128.0)
    _, found = launch("reverse_through_shared", values=values, block=128, order=order)
    assert torch.equal(found, values.flip(0))
    _, found = launch(
        "reverse_through_dynamic",
        values=values,
        count=1,
        block=128,
        shared_bytes=512,
        order=order,
    )
    assert torch.equal(found, values.flip(0))


@pytest.mark.parametrize("order", ORDERS)
def test_a_missing_barrier_shows_as_nan(launch, order):
    _, found = launch("reverse_without_barrier", values=torch.arange(128.0), block=128, order=order)
    assert found.isnan().any()


def test_shared_memory_is_nan_at_the_start_of_every_block(launch):
    _, found = launch("keep_from_the_block_before", grid=3)
    assert found[:96].isnan().all()
    _, found = launch(
        "reverse_through_dynamic", values=torch.arange(128.0), block=128, shared_bytes=512
    )
    assert found.isnan().all()


@pytest.mark.parametrize("order", ORDERS)
def test_collectives_give_what_cuda_gives(launch, order):
    numbers, values = launch("all_collectives", order=order)
    numbers = numbers[:320].view(32, 10)
    lanes = torch.arange(32)
    odd = lanes % 2 == 1
    expected = torch.stack(
        [
            torch.full_like(lanes, 0xAAAAAAAA - (1 << 32)),
            torch.ones_like(lanes),
            torch.ones_like(lanes),
            torch.full_like(lanes, 50),
            lanes ^ 3,
            torch.where(lanes >= 2, lanes - 2, lanes),
            torch.zeros_like(lanes),
            torch.where(odd, torch.full_like(lanes, 8), torch.full_like(lanes, -1)),
            torch.where(lanes > 0, 0, -1),
            torch.full_like(lanes, 9),
        ],
        dim=1,
    )
    assert torch.equal(numbers.long(), expected)
    assert torch.equal(values[:32], 0.5 * (lanes ^ 1))


@pytest.mark.parametrize("order", ORDERS)
def test_votes_of_the_block_count_every_thread(launch, order):
    found, _ = launch("block_votes", block=96, order=order)
    assert (found[:96] == 32).all()


@pytest.mark.parametrize("order", ORDERS)
def test_atomics_lose_nothing_and_give_the_number_before(launch, order):
    found, values = launch("atomics", grid=3, block=64, order=order)
    assert found[:5].tolist() == [192, 0xFFFF, 0, 192, 192]
    assert sorted(found[8:200].tolist()) == sorted(3 * list(range(64)))
    assert values[0] == 48.0


def test_shuffled_orders_show_what_depends_on_the_order(launch):
    random = torch.Generator().manual_seed(1)
    values = torch.randn(257, generator=random) * 1e3
    sums = {
        launch("sum_in_order_of_arrival", values=values, grid=4, block=64, order=order)[1][0].item()
        for order in [NATURAL, *map(Order, range(8))]
    }
    assert len(sums) > 1
    for order in ORDERS:
        again = [
            launch("sum_in_order_of_arrival", values=values, grid=4, block=64, order=order)[1][0]
            for _ in range(2)
        ]
        assert again[0] == again[1]
    trees = [launch("sum_by_butterfly", values=values, grid=8, order=order)[1] for order in ORDERS]
    assert all(torch.equal(tree, trees[0]) for tree in trees)


def test_trust_in_lanes_that_march_together_shows_in_shuffled_order(launch):
    natural, _ = launch("trust_the_lane_before")
    assert natural[:32].tolist() == list(range(2, 34))
    shuffled, _ = launch("trust_the_lane_before", order=Order(seed=1))
    assert not torch.equal(natural, shuffled)


# Threads of the block, and what the emulator says.
WRONG = {
    "leave_oneself_out": (
        32,
        r"kernel leave_oneself_out \(tiny_kernels.cu\), block 0, warp 0, lane 31: it is at ballot "
        r"\(tiny_kernels.cu:\d+\) with mask 0x7fffffff, which leaves itself out",
    ),
    "name_a_lane_that_ended": (
        64,
        r"block 0, warp 1, lane 0: dead-lock; it is at ballot \(tiny_kernels.cu:\d+\) with mask "
        r"0xffffffff and waits for warp 1, lane 5, which has ended",
    ),
    "name_different_masks": (
        32,
        r"warp 0, lane 16: dead-lock; it is at ballot .* with mask 0xffffffff and waits for "
        r"warp 0, lane 0, which has ended",
    ),
    "meet_at_different_places": (
        32,
        r"lane 0: dead-lock; it is at any_lane .* and waits for warp 0, lane 16, which is at any_",
    ),
    "read_outside_the_mask": (
        32,
        r"lane 0: shuffle \(tiny_kernels.cu:\d+\) with mask 0x000000ff reads lane 8, which is not "
        r"in the mask",
    ),
    "miss_the_barrier": (
        64,
        r"warp 0, lane 0: dead-lock; it is at sync_block .* and waits for warp 1, lane 31, which "
        r"has ended",
    ),
    "barrier_against_collective": (
        64,
        r"warp 0, lane 0: dead-lock; it is at sync_warp .* and waits for warp 0, lane 3, which is "
        r"at sync_block",
    ),
    "take_too_much_shared": (32, r"98304 bytes of shared memory; expected at most 65536"),
}


@pytest.mark.parametrize("kernel", WRONG)
def test_a_broken_rule_stops_the_launch_and_names_kernel_block_and_lane(launch, kernel):
    block, message = WRONG[kernel]
    with pytest.raises(EmulatorError, match=message):
        launch(kernel, block=block)
    # What comes after a fault is not touched by it.
    assert launch("block_votes", block=96)[0][0] == 32


@pytest.mark.parametrize("kernel", WRONG)
@pytest.mark.parametrize("seed", range(3))
def test_a_broken_rule_is_found_in_every_order(launch, kernel, seed):
    with pytest.raises(EmulatorError, match=f"kernel {kernel} "):
        launch(kernel, block=WRONG[kernel][0], order=Order(seed))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"grid": 0}, "a grid of 0 blocks"),
        ({"block": 48}, "blocks of 48 threads; expected a multiple of 32 up to 96"),
        ({"block": 128}, "blocks of 128 threads"),
        ({"block": 96, "shared_bytes": 70000}, "70000 bytes of dynamic shared memory"),
    ],
)
def test_a_launch_that_no_gpu_would_take_is_refused(launch, shape, message):
    with pytest.raises(EmulatorError, match=message):
        launch("block_votes", **shape)


def test_parameters_of_another_size_are_refused(tiny):
    class Longer(ctypes.Structure):
        _fields_ = [("numbers", ctypes.c_void_p * 4)]

    with pytest.raises(EmulatorError, match="takes 24 bytes of parameters, Longer has 32"):
        run(tiny, "block_votes", Longer(), 1, 96)


def test_the_words_for_mathematics_mean_what_they_say(launch):
    x = 2.71875
    values = torch.zeros(16)
    values[0] = x
    numbers, found = launch("numbers_of_math", values=values)
    expected = [
        *(x * x - 2, math.exp(x), math.exp(x), 1 / x, math.sqrt(x), math.log(x)),
        *(3.0, -3.0, x, 1.0, x),
    ]
    assert found[1:12].tolist() == pytest.approx(expected, rel=1e-6)
    assert numbers[:4].tolist() == [0x3F800000, 3, 43, -1]


def test_the_fast_exponential_is_as_rough_as_a_device_and_flushes_denormals(launch):
    off = set()
    for x in (-80.0, -5.5, -1.0, -0.3, 0.0, 0.7, 2.0, 30.0):
        values = torch.zeros(32)
        values[0] = x
        _, found = launch("numbers_of_math", values=values)
        rough, exact = found[2].view(torch.int32).item(), found[3].view(torch.int32).item()
        off.add(rough - exact)
    assert off <= {-2, -1, 0, 1, 2}
    assert len(off) > 2
    values[0] = -95.0  # e^-95 is 5e-42
    _, found = launch("numbers_of_math", values=values)
    assert found[2] == 0.0 < found[3]


def test_a_source_that_does_not_compile_is_reported_with_the_compilers_words(
    tmp_path, emulator_cache
):
    source = tmp_path / "broken.cu"
    source.write_text('#include "dialect.h"\nint broken() { return nothing; }\n')
    with pytest.raises(EmulatorError, match=r"(?s)broken\.cu.*'nothing' was not declared"):
        build([source], [CUDA_FOLDER], emulator_cache)


def test_nothing_is_compiled_twice_and_a_changed_header_compiles_anew(tmp_path):
    (tmp_path / "number.h").write_text("constexpr int number = 1;\n")
    source = tmp_path / "one.cu"
    source.write_text(
        '#include "dialect.h"\n#include "number.h"\nstruct One { int32_t* out; };\n'
        "KERNEL(one, One, 32) { p.out[splatscope::lane()] = number; }\n"
    )

    class One(ctypes.Structure):
        _fields_ = [("out", ctypes.c_void_p)]

    def result() -> int:
        library = build([source], [CUDA_FOLDER, tmp_path], tmp_path / "cache")
        out = torch.zeros(32, dtype=torch.int32)
        run(ctypes.CDLL(str(library)), "one", One(out.data_ptr()), 1, 32)
        return int(out[31])

    assert result() == 1
    built = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert result() == 1
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == built
    (tmp_path / "number.h").write_text("constexpr int number = 2;\n")
    assert result() == 2
