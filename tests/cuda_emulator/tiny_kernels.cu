// Small right and wrong kernels for the emulator's own tests.
#include "dialect.h"

using namespace splatscope;

struct TinyParams {
    int32_t* numbers;
    float* values;
    int64_t count;
};

KERNEL(write_indices, TinyParams, 128) {
    const int64_t i = block_index() * block_size() + thread_index();
    if (i >= p.count) return;
    p.numbers[4 * i] = static_cast<int32_t>(block_index());
    p.numbers[4 * i + 1] = warp_index();
    p.numbers[4 * i + 2] = lane();
    p.numbers[4 * i + 3] = static_cast<int32_t>(block_count());
}

KERNEL(reverse_through_shared, TinyParams, 128) {
    SHARED_ARRAY(float, staged, 128);
    staged[thread_index()] = p.values[thread_index()];
    sync_block();
    p.values[thread_index()] = staged[block_size() - 1 - thread_index()];
}

KERNEL(reverse_without_barrier, TinyParams, 128) {
    SHARED_ARRAY(float, staged, 128);
    staged[thread_index()] = p.values[thread_index()];
    p.values[thread_index()] = staged[block_size() - 1 - thread_index()];
}

KERNEL(reverse_through_dynamic, TinyParams, 128) {
    DYNAMIC_SHARED(bytes);
    float* staged = reinterpret_cast<float*>(bytes);
    if (p.count) staged[thread_index()] = p.values[thread_index()];
    sync_block();
    p.values[thread_index()] = staged[block_size() - 1 - thread_index()];
}

KERNEL(keep_from_the_block_before, TinyParams, 32) {
    SHARED_ARRAY(float, kept, 32);
    p.values[block_index() * 32 + lane()] = kept[lane()];
    kept[lane()] = 1.0f;
}

KERNEL(all_collectives, TinyParams, 32) {
    int32_t* out = p.numbers + 10 * lane();
    const bool odd = lane() % 2 != 0;
    out[0] = static_cast<int32_t>(ballot(all_lanes, odd));
    out[1] = any_lane(all_lanes, lane() == 7);
    out[2] = all_lanes_hold(all_lanes, lane() < 32);
    out[3] = shuffle(all_lanes, lane() * 10, 5);
    out[4] = shuffle_xor(all_lanes, lane(), 3);
    out[5] = shuffle_up(all_lanes, lane(), 2);
    out[6] = warp_index();
    if (odd) {
        out[7] = count_bits(ballot(0xaaaaaaaau, lane() > 16));
    } else {
        out[7] = -1;
    }
    sync_warp(all_lanes);
    out[8] = first_bit(lanes_below());
    out[9] = static_cast<int32_t>(shuffle(all_lanes, int64_t(lane()) << 33, 9) >> 33);
    p.values[lane()] = shuffle_xor(all_lanes, 0.5f * static_cast<float>(lane()), 1);
}

KERNEL(block_votes, TinyParams, 96) {
    const int count = sync_block_count(thread_index() % 3 == 0);
    p.numbers[thread_index()] = count;
}

KERNEL(atomics, TinyParams, 64) {
    atomic_add(p.numbers, 1);
    atomic_or(p.numbers + 1, 1 << (thread_index() % 16));
    atomic_add(reinterpret_cast<unsigned long long*>(p.numbers + 2), 0x100000000ull);
    const uint32_t ticket = atomic_add(reinterpret_cast<uint32_t*>(p.numbers + 4), 1u);
    p.numbers[8 + ticket] = thread_index();
    atomic_add(p.values, 0.25f);
}

KERNEL(sum_in_order_of_arrival, TinyParams, 64) {
    const int64_t i = block_index() * 64 + thread_index();
    atomic_add(p.values, p.values[1 + i]);
}

KERNEL(sum_by_butterfly, TinyParams, 32) {
    float sum = p.values[1 + block_index() * 32 + lane()];
    for (int bits = 16; bits > 0; bits /= 2) sum += shuffle_xor(all_lanes, sum, bits);
    p.values[1 + block_index() * 32 + lane()] = sum;
}

KERNEL(trust_the_lane_before, TinyParams, 32) {
    SHARED_ARRAY(int32_t, passed, 33);
    if (lane() == 0) passed[0] = 1;
    passed[lane() + 1] = passed[lane()] + 1;
    p.numbers[lane()] = passed[lane() + 1];
}

KERNEL(leave_oneself_out, TinyParams, 32) {
    p.numbers[lane()] = static_cast<int32_t>(ballot(0x7fffffffu, true));
}

KERNEL(name_a_lane_that_ended, TinyParams, 64) {
    if (thread_index() == 37) return;
    p.numbers[thread_index()] = static_cast<int32_t>(ballot(all_lanes, true));
}

KERNEL(name_different_masks, TinyParams, 32) {
    const unsigned mask = lane() < 16 ? 0x0000ffffu : all_lanes;
    p.numbers[lane()] = static_cast<int32_t>(ballot(mask, true));
}

KERNEL(meet_at_different_places, TinyParams, 32) {
    if (lane() < 16) {
        p.numbers[lane()] = any_lane(all_lanes, true);
    } else {
        p.numbers[lane()] = any_lane(all_lanes, false);
    }
}

KERNEL(read_outside_the_mask, TinyParams, 32) {
    if (lane() < 8) p.numbers[lane()] = shuffle(0xffu, lane(), 8);
}

KERNEL(miss_the_barrier, TinyParams, 64) {
    if (thread_index() < 63) sync_block();
    p.numbers[thread_index()] = 1;
}

KERNEL(barrier_against_collective, TinyParams, 64) {
    if (warp_index() == 1) {
        sync_block();
    } else if (lane() == 3) {
        sync_block();
    } else {
        sync_warp(all_lanes);
    }
}

KERNEL(take_too_much_shared, TinyParams, 32) {
    SHARED_ARRAY(float, first, 12288);
    SHARED_ARRAY(float, second, 12288);
    first[lane()] = second[lane()] = 0.0f;
}

KERNEL(numbers_of_math, TinyParams, 32) {
    const float x = p.values[0];
    const float results[] = {fused(x, x, -2.0f),
                             exponential(x),
                             exponential_of(x),
                             reciprocal(x),
                             square_root(x),
                             logarithm(x),
                             ceiling(x),
                             floor_of(-x),
                             absolute(-x),
                             minimum(x, 1.0f),
                             maximum(x, bits_float(0x7fc00000u))};
    for (int i = 0; i < 11; ++i) p.values[1 + i] = results[i];
    p.numbers[0] = static_cast<int32_t>(float_bits(1.0f));
    p.numbers[1] = absolute(-3);
    p.numbers[2] = minimum(4, 3) + maximum(40, 30);
    p.numbers[3] = first_bit(0u);
    p.numbers[4] = load_read_only(p.numbers + 5);
}
