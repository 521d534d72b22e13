// Tile lists: which splats touch each tile, near to far.
//
// Seen splats are sorted by depth once (radix, ties by index), then dealt to the tiles in that order: a
// stable counting sort, whose result does not depend on how the work was cut.

#include <cstring>

#include "constants.h"
#include "kernels.h"
#include "parallel.h"
#include "record.h"
#include "tile_bounds.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

template <typename Real>
inline SplatRecord<Real>* records_of(const BinParams<Real>& p) {
    return reinterpret_cast<SplatRecord<Real>*>(p.records);
}

// A splat and the bits of its depth, which order as positive depths do.
template <typename Real>
struct Keyed;
template <>
struct Keyed<float> {
    uint32_t key;
    int32_t splat;
};
template <>
struct Keyed<double> {
    uint64_t key;
    int64_t splat;
};

constexpr int radix_bits = 11;
constexpr int radix_buckets = 1 << radix_bits;

inline int digit_of(uint64_t key, int digit) {
    return int(key >> (radix_bits * digit)) & (radix_buckets - 1);
}

// Least significant digit first; stable, so equal depths keep the order of their indices. A digit that all
// keys share is skipped. Returns which of `items` and `spare` has the result.
template <typename Item>
const Item* sort_by_key(Item* items, Item* spare, int64_t count) {
    constexpr int digits = (8 * int(sizeof(Item::key)) + radix_bits - 1) / radix_bits;
    int32_t places[digits][radix_buckets] = {};
    for (int64_t i = 0; i < count; ++i)
        for (int digit = 0; digit < digits; ++digit) ++places[digit][digit_of(items[i].key, digit)];
    for (int digit = 0; digit < digits; ++digit) {
        if (count == 0 || places[digit][digit_of(items[0].key, digit)] == count) continue;
        int32_t sum = 0;
        for (int32_t& place : places[digit]) {
            const int32_t here = place;
            place = sum;
            sum += here;
        }
        for (int64_t i = 0; i < count; ++i) spare[places[digit][digit_of(items[i].key, digit)]++] = items[i];
        Item* swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}

template <typename Real>
int64_t order_by_depth(const BinParams<Real>& p) {
    Keyed<Real>* items = static_cast<Keyed<Real>*>(p.sort_keys);
    int64_t visible = 0;
    for (int64_t i = 0; i < p.count; ++i) {
        if (p.radii[2 * i] <= 0) continue;
        Keyed<Real>& item = items[visible++];
        std::memcpy(&item.key, p.depths + i, sizeof item.key);
        item.splat = decltype(item.splat)(i);
    }
    const Keyed<Real>* sorted = sort_by_key(items, items + p.count, visible);
    for (int64_t k = 0; k < visible; ++k) p.order[k] = int32_t(sorted[k].splat);
    return visible;
}

// What is read in the order of depth lies anywhere, and is asked for so many splats ahead.
constexpr int64_t splats_ahead = 24;

// The run of the depth order that one block deals.
inline void block_range(int64_t visible, int64_t block, int64_t& begin, int64_t& end) {
    begin = visible * block / bin_blocks;
    end = visible * (block + 1) / bin_blocks;
}

// Of the tiles from `begin` to `end` the longest list first, so that no thread is left with a long one at the
// end. Lists are sorted by the number of binary digits of their length, which is all that balance needs.
template <typename Real>
void order_tiles(const BinParams<Real>& p, int begin, int end) {
    constexpr int classes = 65;
    int64_t places[classes] = {};
    const auto class_of = [&](int tile) {
        const uint64_t length = uint64_t(p.tile_offsets[tile + 1] - p.tile_offsets[tile]);
        // Half steps within each power of two.
        if (length == 0) return classes - 1;
        const int top = 63 - __builtin_clzll(length);
        const int half = top > 0 && (length >> (top - 1)) & 1;
        const int fineness = 2 * top + half;
        return fineness > 62 ? 0 : 62 - fineness;
    };
    for (int tile = begin; tile < end; ++tile) ++places[class_of(tile)];
    int64_t sum = begin;
    for (int64_t& place : places) {
        const int64_t here = place;
        place = sum;
        sum += here;
    }
    for (int tile = begin; tile < end; ++tile) p.tile_order[places[class_of(tile)]++] = tile;
}

}  // namespace

template <typename Real>
void bin_count(const BinParams<Real>& p) {
    SplatRecord<Real>* records = records_of(p);
    Pieces pieces(p.pieces);
    const auto sort_or_pack = [&](int64_t index, int) {
        if (index == 0) {  // the longest task first: one thread sorts while the others pack
            p.totals[0] = order_by_depth(p);
            std::memset(p.splat_offsets, 0, size_t(p.count + 1) * sizeof(int64_t));
            return;
        }
        const int64_t begin = (index - 1) * splat_block;
        const int64_t end = begin + splat_block < p.count ? begin + splat_block : p.count;
        for (int64_t i = begin; i < end; ++i) pack_record(p, i, records[i]);
    };
    if (!pieces.loop(1 + (p.count + splat_block - 1) / splat_block, thread_count(), sort_or_pack)) return;
    const int64_t visible = p.totals[0];
    const int tiles = tiles_across(p.width) * tiles_across(p.height);
    TouchedTiles* touched = static_cast<TouchedTiles*>(p.sort_keys);
    const auto count_block = [&](int64_t block, int) {
        int32_t* counts = p.tile_counts + block * tiles;
        std::memset(counts, 0, size_t(tiles) * sizeof(int32_t));
        int64_t begin, end;
        block_range(visible, block, begin, end);
        SplatsAtOnce<Real> splats;
        TouchedTiles found[splats.count];
        for (int64_t first = begin; first < end; first += splats.count) {
            for (int i = 0; i < splats.count; ++i) {
                const int64_t k = first + i, ahead = k + splats_ahead;
                splats.records[i] = records + p.order[k < end ? k : first];
                if (ahead >= end) continue;
                __builtin_prefetch(records + p.order[ahead]);
                __builtin_prefetch(p.splat_offsets + p.order[ahead] + 1, 1);
            }
            find_touched(p, splats, found);
            for (int64_t k = first; k < end && k < first + splats.count; ++k) {
                touched[k] = found[k - first];
                int64_t number = 0;
                for_each_touched(p, *splats.records[k - first], touched[k], [&](int tile, int32_t) {
                    ++counts[tile];
                    ++number;
                });
                p.splat_offsets[p.order[k] + 1] = number;
            }
        }
    };
    if (!pieces.loop(bin_blocks, thread_count(), count_block)) return;
    for (int64_t i = 0; i < p.count; ++i) p.splat_offsets[i + 1] += p.splat_offsets[i];
    int64_t sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        p.tile_offsets[tile] = sum;
        for (int block = 0; block < bin_blocks; ++block) {
            int32_t& count = p.tile_counts[int64_t(block) * tiles + tile];
            const int32_t here = count;
            // From now on: where this block begins within the tile's list.
            count = int32_t(sum - p.tile_offsets[tile]);
            sum += here;
        }
    }
    p.tile_offsets[tiles] = sum;
    p.totals[1] = sum;
    pieces.finish();
}

template <typename Real>
void bin_fill(const BinParams<Real>& p) {
    const SplatRecord<Real>* records = records_of(p);
    const TouchedTiles* touched = static_cast<const TouchedTiles*>(p.sort_keys);
    const int64_t visible = p.totals[0];
    const int tiles = tiles_across(p.width) * tiles_across(p.height);
    Pieces pieces(p.pieces);
    const auto fill_block = [&](int64_t block, int) {
        int32_t* cursors = p.tile_counts + block * tiles;
        int64_t begin, end;
        block_range(visible, block, begin, end);
        for (int64_t k = begin; k < end; ++k) {
            const int32_t splat = p.order[k];
            const int64_t ahead = k + splats_ahead;
            if (ahead < end) __builtin_prefetch(p.splat_offsets + p.order[ahead]);
            for_each_touched(p, records[splat], touched[k], [&](int tile, int32_t rank) {
                const int64_t place = p.tile_offsets[tile] + cursors[tile]++;
                p.instance_splats[place] = splat;
                if (p.instance_slots) p.instance_slots[place] = p.splat_offsets[splat] + rank;
            });
        }
    };
    if (!pieces.loop(bin_blocks, thread_count(), fill_block)) return;
    for (int share = 0; share < task_shares; ++share)
        order_tiles(p, int(share_begin(tiles, share)), int(share_begin(tiles, share + 1)));
    pieces.finish();
}

SPLATSCOPE_INSTANTIATE(bin_count, BinParams);
SPLATSCOPE_INSTANTIATE(bin_fill, BinParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
