// Sums over the lanes of a warp and the threads of a block. All lanes (threads) take part in each.
#pragma once

#include "dialect.h"

namespace splatscope {

constexpr int warp_size = 32;

template <typename Number>
SPLATSCOPE_FUNCTION Number warp_sum(Number value) {
    for (int bits = warp_size / 2; bits > 0; bits /= 2) value += shuffle_xor(all_lanes, value, bits);
    return value;
}

SPLATSCOPE_FUNCTION int32_t warp_maximum(int32_t value) {
    for (int bits = warp_size / 2; bits > 0; bits /= 2)
        value = maximum(value, shuffle_xor(all_lanes, value, bits));
    return value;
}

// The sum of this lane and those below.
template <typename Number>
SPLATSCOPE_FUNCTION Number warp_inclusive_sum(Number value) {
    for (int distance = 1; distance < warp_size; distance *= 2) {
        const Number below = shuffle_up(all_lanes, value, distance);
        if (lane() >= distance) value += below;
    }
    return value;
}

// The sum of the threads below, and of all. `warp_sums` is shared, one for each warp, and free again after.
template <typename Number>
SPLATSCOPE_FUNCTION Number block_exclusive_sum(Number value, Number* warp_sums, Number& total) {
    const Number inclusive = warp_inclusive_sum(value);
    if (lane() == warp_size - 1) warp_sums[warp_index()] = inclusive;
    sync_block();
    const bool is_warp = lane() < block_size() / warp_size;
    const Number warps = warp_inclusive_sum(is_warp ? warp_sums[lane()] : Number(0));
    total = shuffle(all_lanes, warps, warp_size - 1);
    const Number before = shuffle(all_lanes, warps, maximum(warp_index() - 1, 0));
    sync_block();
    return (warp_index() > 0 ? before : Number(0)) + inclusive - value;
}

// Many sums at once. Lanes halve the numbers between them as they add: of `count` numbers each lane keeps one
// half (rounded up) and hands the other to its partner, so that 9 sums take 5 + 3 + 2 + 1 + 1 shuffles where
// one after the other they take 45. In the end each sum is whole in one lane, see `owned_sum`.
template <int count, int bits = warp_size / 2>
SPLATSCOPE_FUNCTION float transposed_sums(float* values) {
    constexpr int kept = (count + 1) / 2;
    if constexpr (count == 1) {
        values[0] += shuffle_xor(all_lanes, values[0], bits);
    } else {
        const bool upper = (lane() & bits) != 0;
#pragma unroll
        for (int i = 0; i < kept; ++i) {
            const float low = values[i];
            const float high = i + kept < count ? values[i + kept] : 0.0f;
            values[i] = (upper ? high : low) + shuffle_xor(all_lanes, upper ? low : high, bits);
        }
    }
    if constexpr (bits == 1)
        return values[0];
    else
        return transposed_sums<kept, bits / 2>(values);
}

// Which of the sums this lane holds after `transposed_sums`; -1 where it holds none, or a copy.
template <int count, int bits = warp_size / 2>
SPLATSCOPE_FUNCTION int owned_sum() {
    constexpr int kept = (count + 1) / 2;
    int within = 0;
    if constexpr (bits > 1) within = owned_sum<kept, bits / 2>();
    if (within < 0) return -1;
    if ((lane() & bits) != 0) within += kept;
    return within < count ? within : -1;
}

}  // namespace splatscope
