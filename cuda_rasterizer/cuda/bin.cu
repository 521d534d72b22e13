// Binning: which splats touch each tile, near to far. The order of launches stands in cuda_params.h.
//
// Splats that reach a tile are sorted by depth, dealt to their tiles in that order, and the instances sorted
// by tile; both sorts are stable (sort.cu), so every list is near to far and equal depths go by index.
#include "dialect.h"
#include "tile_bounds.h"
#include "warp.h"

namespace splatscope {

// A splat of more rows of tiles than this is counted by its whole warp, and one of more tiles than that is
// emitted by it; smaller ones by one lane.
constexpr int rows_of_one_lane = 8;
constexpr int tiles_of_one_lane = 16;

KERNEL(pack_splats, PackParams, 256) {
    const int64_t i = block_index() * block_size() + thread_index();
    int rows = 0, tiles = 0;
    if (i < p.count && p.radii[2 * i] > 0) {
        const SplatRecord s = pack_record(p, i);
        store_record(p.records, i, s);
        const TileBounds bounds(s, p.width, p.height);
        rows = bounds.whole_box ? 0 : length_of(bounds.rows);
        if (rows <= rows_of_one_lane) tiles = bounds.count();
    }
    // The records that lanes have just stored are read by the others.
    sync_warp(all_lanes);
    for (unsigned tall = ballot(all_lanes, rows > rows_of_one_lane); tall; tall &= tall - 1) {
        const int source = first_bit(tall);
        const TileBounds bounds(load_record(p.records, shuffle(all_lanes, i, source)), p.width, p.height);
        int part = 0;
        for (int row = bounds.rows.first + lane(); row <= bounds.rows.last; row += warp_size)
            part += length_of(bounds.columns(row));
        part = warp_sum(part);
        if (lane() == source) tiles = part;
    }
    if (i < p.count) p.tile_counts[i] = tiles;
    const int seen = sync_block_count(tiles > 0);
    if (thread_index() == 0) p.block_sums[block_index()] = seen;
}

// One block: there are few sums.
KERNEL(scan_block_sums, ScanParams, 1024) {
    SHARED_ARRAY(int64_t, warp_sums, warp_size);
    int64_t before = 0;
    for (int64_t begin = 0; begin < p.count; begin += block_size()) {
        const int64_t i = begin + thread_index();
        const int64_t value = i < p.count ? p.block_sums[i] : 0;
        int64_t total;
        const int64_t exclusive = block_exclusive_sum(value, warp_sums, total);
        if (i < p.count) p.block_sums[i] = before + exclusive;
        before += total;
    }
    if (thread_index() == 0) *p.total = before;
}

// Depths of splats that are seen are above 0, so their bits order as they do.
KERNEL(compact_splats, CompactParams, 256) {
    SHARED_ARRAY(int32_t, warp_sums, warp_size);
    const int64_t i = block_index() * block_size() + thread_index();
    const bool seen = i < p.count && p.tile_counts[i] > 0;
    int32_t total;
    const int32_t within = block_exclusive_sum(int32_t(seen), warp_sums, total);
    if (!seen) return;
    const int64_t place = p.block_sums[block_index()] + within;
    p.keys[place] = float_bits(p.depths[i]);
    p.splats[place] = int32_t(i);
}

// Tiles of the splat at one place of the depth order.
SPLATSCOPE_FUNCTION int64_t tiles_at(const EmitParams& p, int64_t place) {
    return place < p.totals[0] ? p.tile_counts[p.order[place]] : 0;
}

KERNEL(count_instances, EmitParams, 256) {
    SHARED_ARRAY(int64_t, warp_sums, warp_size);
    int64_t total;
    block_exclusive_sum(tiles_at(p, block_index() * block_size() + thread_index()), warp_sums, total);
    if (thread_index() == 0) p.block_sums[block_index()] = total;
}

// Instances past the capacity are dropped: the host sees by totals[1] that there were some.
template <typename Tile>
SPLATSCOPE_FUNCTION void write_instance(const EmitParams& p, int64_t place, int32_t splat, int tile) {
    if (place >= p.capacity) return;
    static_cast<Tile*>(p.tiles)[place] = Tile(tile);
    p.values[place] = p.emitted_splats ? int32_t(place) : splat;
    if (p.emitted_splats) p.emitted_splats[place] = splat;
}

template <typename Tile>
SPLATSCOPE_FUNCTION void emit_by_lane(const EmitParams& p, int64_t place, int32_t splat) {
    const int across = tiles_across(p.width);
    const TileBounds bounds(load_record(p.records, splat), p.width, p.height);
    for (int row = bounds.rows.first; row <= bounds.rows.last; ++row) {
        const Span columns = bounds.columns(row);
        for (int column = columns.first; column <= columns.last; ++column)
            write_instance<Tile>(p, place++, splat, row * across + column);
    }
}

// A lane finds the span of each row, then all write the rows one after the other.
template <typename Tile>
SPLATSCOPE_FUNCTION void emit_by_warp(const EmitParams& p, int64_t place, int32_t splat) {
    const int across = tiles_across(p.width);
    const TileBounds bounds(load_record(p.records, splat), p.width, p.height);
    for (int first_row = bounds.rows.first; first_row <= bounds.rows.last; first_row += warp_size) {
        const int own_row = first_row + lane();
        const Span own = own_row <= bounds.rows.last ? bounds.columns(own_row) : Span{1, 0};
        const int own_end = warp_inclusive_sum(length_of(own));
        for (int i = 0; i < warp_size && first_row + i <= bounds.rows.last; ++i) {
            const int first = shuffle(all_lanes, own.first, i);
            const int count = shuffle(all_lanes, length_of(own), i);
            const int64_t begin = place + shuffle(all_lanes, own_end, i) - count;
            for (int k = lane(); k < count; k += warp_size)
                write_instance<Tile>(p, begin + k, splat, (first_row + i) * across + first + k);
        }
        place += shuffle(all_lanes, own_end, warp_size - 1);
    }
}

template <typename Tile>
SPLATSCOPE_FUNCTION void emit(const EmitParams& p, int64_t* warp_sums) {
    const int64_t k = block_index() * block_size() + thread_index();
    const int64_t tiles = tiles_at(p, k);
    int64_t total;
    const int64_t place = p.block_sums[block_index()] + block_exclusive_sum(tiles, warp_sums, total);
    const int32_t splat = tiles > 0 ? p.order[k] : 0;
    if (p.first_slots && tiles > 0) p.first_slots[splat] = int32_t(place);
    if (tiles > 0 && tiles <= tiles_of_one_lane) emit_by_lane<Tile>(p, place, splat);
    sync_warp(all_lanes);
    for (unsigned big = ballot(all_lanes, tiles > tiles_of_one_lane); big; big &= big - 1) {
        const int source = first_bit(big);
        emit_by_warp<Tile>(p, shuffle(all_lanes, place, source), shuffle(all_lanes, splat, source));
    }
}

KERNEL(emit_instances, EmitParams, 256) {
    SHARED_ARRAY(int64_t, warp_sums, warp_size);
    emit<uint32_t>(p, warp_sums);
}

KERNEL(emit_instances_narrow, EmitParams, 256) {
    SHARED_ARRAY(int64_t, warp_sums, warp_size);
    emit<uint16_t>(p, warp_sums);
}

KERNEL(gather_instances, GatherParams, 256) {
    const int64_t i = block_index() * block_size() + thread_index();
    if (i < minimum(p.totals[1], p.capacity)) p.instance_splats[i] = p.emitted_splats[p.instance_slots[i]];
}

// The first instance of a tile or of one behind it, by bisection.
template <typename Tile>
SPLATSCOPE_FUNCTION void find_range(const RangeParams& p) {
    const int64_t tile = block_index() * block_size() + thread_index();
    if (tile > p.tile_count) return;
    const Tile* tiles = static_cast<const Tile*>(p.tiles);
    int64_t low = 0, high = minimum(p.totals[1], p.capacity);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (int64_t(tiles[middle]) < tile)
            low = middle + 1;
        else
            high = middle;
    }
    p.tile_offsets[tile] = low;
}

KERNEL(tile_ranges, RangeParams, 256) {
    find_range<uint32_t>(p);
}

KERNEL(tile_ranges_narrow, RangeParams, 256) {
    find_range<uint16_t>(p);
}

// Long lists first, so that no multiprocessor is left with one at the end. Lists are sorted by the upper bits
// of the float of their length: half steps within each power of two, which is all that balance needs.
constexpr int length_classes = 64;

SPLATSCOPE_FUNCTION int class_of_length(int64_t length) {
    if (length == 0) return length_classes - 1;
    const int steps = int(float_bits(float(length)) >> 22) - (127 << 1);
    return maximum(length_classes - 2 - steps, 0);
}

KERNEL(order_tiles, OrderParams, 1024) {
    SHARED_ARRAY(int32_t, places, length_classes);
    if (thread_index() < length_classes) places[thread_index()] = 0;
    sync_block();
    for (int64_t tile = thread_index(); tile < p.tile_count; tile += block_size())
        atomic_add(places + class_of_length(p.tile_offsets[tile + 1] - p.tile_offsets[tile]), 1);
    sync_block();
    if (warp_index() == 0) {
        int32_t before = 0;
        for (int first = 0; first < length_classes; first += warp_size) {
            const int32_t count = places[first + lane()];
            const int32_t inclusive = warp_inclusive_sum(count);
            places[first + lane()] = before + inclusive - count;
            before += shuffle(all_lanes, inclusive, warp_size - 1);
        }
    }
    sync_block();
    for (int64_t tile = thread_index(); tile < p.tile_count; tile += block_size()) {
        const int length_class = class_of_length(p.tile_offsets[tile + 1] - p.tile_offsets[tile]);
        p.tile_order[atomic_add(places + length_class, 1)] = int32_t(tile);
    }
}

}  // namespace splatscope
