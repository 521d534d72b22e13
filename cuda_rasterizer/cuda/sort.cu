// A stable radix sort of pairs, least significant digit first: one digit of 8 bits is count, scan, scatter.
//
// Each block owns `sort_items` consecutive items, each of its warps a consecutive share of them, each round
// of a warp 32 in a row; ranks are counted in that order, which makes the sort stable. Nothing waits for
// another block. Keys are 32 bits, or 16 in the kernels named narrow.
#include "cuda_params.h"
#include "dialect.h"
#include "warp.h"

namespace splatscope {

constexpr int sort_threads = 256;
constexpr int sort_warps = sort_threads / warp_size;
constexpr int sort_rounds = sort_items / sort_threads;
static_assert(sort_digits == sort_threads, "a thread looks after each digit");

SPLATSCOPE_FUNCTION int64_t item_count(const SortParams& p) {
    return minimum(*p.count, p.capacity);
}
SPLATSCOPE_FUNCTION int64_t sort_blocks(int64_t items) {
    return (items + sort_items - 1) / sort_items;
}
SPLATSCOPE_FUNCTION int digit_of(uint32_t key, int shift) {
    return int(key >> shift) & (sort_digits - 1);
}

template <typename Key>
SPLATSCOPE_FUNCTION void count_digits(const SortParams& p, uint32_t* counts) {
    const int64_t begin = block_index() * sort_items, items = item_count(p);
    if (begin >= items) return;
    const int64_t end = minimum(begin + sort_items, items);
    const Key* keys = static_cast<const Key*>(p.keys);
    counts[thread_index()] = 0;
    sync_block();
    for (int64_t i = begin + thread_index(); i < end; i += sort_threads)
        atomic_add(counts + digit_of(keys[i], p.shift), 1u);
    sync_block();
    p.digit_counts[thread_index() * sort_blocks(p.capacity) + block_index()] = counts[thread_index()];
}

KERNEL(sort_count, SortParams, sort_digits) {
    SHARED_ARRAY(uint32_t, counts, sort_digits);
    count_digits<uint32_t>(p, counts);
}

KERNEL(sort_count_narrow, SortParams, sort_digits) {
    SHARED_ARRAY(uint32_t, counts, sort_digits);
    count_digits<uint16_t>(p, counts);
}

// One block a digit: where each block of items begins among those of its digit, and how many there are.
KERNEL(sort_scan, SortParams, sort_digits) {
    SHARED_ARRAY(uint32_t, warp_sums, warp_size);
    const int64_t blocks = sort_blocks(item_count(p));
    uint32_t* counts = p.digit_counts + block_index() * sort_blocks(p.capacity);
    uint32_t before = 0;
    for (int64_t begin = 0; begin < blocks; begin += block_size()) {
        const int64_t i = begin + thread_index();
        uint32_t total;
        const uint32_t exclusive = block_exclusive_sum(i < blocks ? counts[i] : 0u, warp_sums, total);
        if (i < blocks) counts[i] = before + exclusive;
        before += total;
    }
    if (thread_index() == 0) p.digit_totals[block_index()] = before;
}

// Lanes whose digit is that of this lane.
SPLATSCOPE_FUNCTION unsigned lanes_of_digit(int digit) {
    unsigned peers = all_lanes;
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
        const bool set = (digit >> bit & 1) != 0;
        const unsigned votes = ballot(all_lanes, set);
        peers &= set ? votes : ~votes;
    }
    return peers;
}

// What the threads of a block share.
struct SortShared {
    uint32_t* items;         // (sort_items): keys, then values, in sorted order
    uint32_t* warp_digits;   // (sort_warps, sort_digits): counts, then first places within the block
    uint32_t* destinations;  // (sort_digits): from a place within the block to one of the array, modulo 2^32
    uint32_t* warp_sums;     // (warp_size)
};

// Places of this thread's items within the block's sorted order. Items past the end are all ones, last of the
// last digit, so they come behind all others.
template <typename Key>
SPLATSCOPE_FUNCTION void rank_items(const SortParams& p, int64_t first, int64_t end, const SortShared& shared,
                                    uint32_t* keys, uint32_t* places) {
    const Key* from = static_cast<const Key*>(p.keys);
    uint32_t* counts = shared.warp_digits + warp_index() * sort_digits;
    for (int digit = lane(); digit < sort_digits; digit += warp_size) counts[digit] = 0;
#pragma unroll
    for (int round = 0; round < sort_rounds; ++round) {
        const int64_t i = first + round * warp_size;
        keys[round] = i < end ? uint32_t(from[i]) : 0xffffffffu;
    }
#pragma unroll
    for (int round = 0; round < sort_rounds; ++round) {
        const int digit = digit_of(keys[round], p.shift);
        const unsigned peers = lanes_of_digit(digit);
        const int peers_below = count_bits(peers & lanes_below());
        sync_warp(all_lanes);
        const uint32_t before = counts[digit];
        sync_warp(all_lanes);
        if (peers_below == 0) counts[digit] = before + uint32_t(count_bits(peers));
        places[round] = before + uint32_t(peers_below);
    }
    sync_block();
}

// A thread a digit: from counts to places.
SPLATSCOPE_FUNCTION void place_digits(const SortParams& p, const SortShared& shared) {
    const int digit = thread_index();
    uint32_t here = 0;
#pragma unroll
    for (int warp = 0; warp < sort_warps; ++warp) here += shared.warp_digits[warp * sort_digits + digit];
    uint32_t total;
    uint32_t place = block_exclusive_sum(here, shared.warp_sums, total);
    const uint32_t of_digit = block_exclusive_sum(p.digit_totals[digit], shared.warp_sums, total);
    const uint32_t of_block = p.digit_counts[digit * sort_blocks(p.capacity) + block_index()];
    shared.destinations[digit] = of_digit + of_block - place;
#pragma unroll
    for (int warp = 0; warp < sort_warps; ++warp) {
        uint32_t& count = shared.warp_digits[warp * sort_digits + digit];
        const uint32_t items = count;
        count = place;
        place += items;
    }
    sync_block();
}

// Items go through shared memory into sorted order, so that neighbours are written by neighbours.
template <typename Key>
SPLATSCOPE_FUNCTION void scatter(const SortParams& p, const SortShared& shared) {
    const int64_t begin = block_index() * sort_items, items = item_count(p);
    if (begin >= items) return;
    const int64_t end = minimum(begin + sort_items, items);
    const int64_t first = begin + warp_index() * (sort_rounds * warp_size) + lane();
    uint32_t keys[sort_rounds], places[sort_rounds], destinations[sort_rounds] = {};
    rank_items<Key>(p, first, end, shared, keys, places);
    place_digits(p, shared);

    const uint32_t* first_places = shared.warp_digits + warp_index() * sort_digits;
#pragma unroll
    for (int round = 0; round < sort_rounds; ++round) {
        places[round] += first_places[digit_of(keys[round], p.shift)];
        shared.items[places[round]] = keys[round];
    }
    sync_block();
    const int count = int(end - begin);
#pragma unroll
    for (int round = 0; round < sort_rounds; ++round) {
        const int place = round * sort_threads + thread_index();
        if (place >= count) continue;
        const uint32_t key = shared.items[place];
        destinations[round] = shared.destinations[digit_of(key, p.shift)] + uint32_t(place);
        static_cast<Key*>(p.sorted_keys)[destinations[round]] = Key(key);
    }
    sync_block();
#pragma unroll
    for (int round = 0; round < sort_rounds; ++round) {
        const int64_t i = first + round * warp_size;
        if (i < end) shared.items[places[round]] = uint32_t(p.values[i]);
    }
    sync_block();
#pragma unroll
    for (int round = 0; round < sort_rounds; ++round) {
        const int place = round * sort_threads + thread_index();
        if (place < count) p.sorted_values[destinations[round]] = int32_t(shared.items[place]);
    }
}

KERNEL(sort_scatter, SortParams, sort_digits) {
    SHARED_ARRAY(uint32_t, items, sort_items);
    SHARED_ARRAY(uint32_t, warp_digits, sort_warps* sort_digits);
    SHARED_ARRAY(uint32_t, destinations, sort_digits);
    SHARED_ARRAY(uint32_t, warp_sums, warp_size);
    scatter<uint32_t>(p, {items, warp_digits, destinations, warp_sums});
}

KERNEL(sort_scatter_narrow, SortParams, sort_digits) {
    SHARED_ARRAY(uint32_t, items, sort_items);
    SHARED_ARRAY(uint32_t, warp_digits, sort_warps* sort_digits);
    SHARED_ARRAY(uint32_t, destinations, sort_digits);
    SHARED_ARRAY(uint32_t, warp_sums, warp_size);
    scatter<uint16_t>(p, {items, warp_digits, destinations, warp_sums});
}

}  // namespace splatscope
