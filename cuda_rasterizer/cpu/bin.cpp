// Tile lists: which splats touch each tile, near to far.
//
// Seen splats are sorted by depth once (radix, ties by index), then dealt to the tiles in that order: a
// stable counting sort, whose result does not depend on how the work was cut. A splat is dealt to exactly the
// tiles whose pixel centres its ellipse alpha >= floor can reach.

#include <cmath>
#include <cstring>

#include "constants.h"
#include "kernels.h"
#include "parallel.h"
#include "record.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

inline int tiles_across(int size) {
    return (size + tile_size - 1) / tile_size;
}

// First and last tile of a span of pixel positions; empty when last < first.
struct Span {
    int first, last;
};

// Pixel centres stand at +0.5; the arguments are clamped first because they may not fit an int.
inline Span tiles_of(double low, double high, int size) {
    const double last_pixel = size - 1;
    low = std::ceil(low - tile_bound_slack - 0.5);
    high = std::floor(high + tile_bound_slack - 0.5);
    if (!(high >= 0) || !(low <= last_pixel) || low > high) return {1, 0};
    const int first = low > 0 ? int(low) : 0;
    const int last = high < last_pixel ? int(high) : int(last_pixel);
    return {first / tile_size, last / tile_size};
}

// The ellipse of one splat, 0.5 d^T Q d <= tau, and its box.
template <typename Real>
struct Ellipse {
    double x, y, reach_x, reach_y, a, b, twice_tau, determinant, slant;
    bool whole_box;  // the box alone bounds it

    explicit Ellipse(const SplatRecord<Real>& s)
        : x(s.mean_x),
          y(s.mean_y),
          reach_x(s.reach_x),
          reach_y(s.reach_y),
          a(-2 * double(s.a)),
          b(-double(s.b)),
          twice_tau(-2 * double(s.surely_below())) {
        const double c = -2 * double(s.c);
        determinant = a * c - b * b;
        whole_box = !std::isfinite(twice_tau) || !(determinant > 0);
        // Where, along y, the ellipse's rightmost point lies: there A dx^2 + 2 B dx dy + C dy^2 is flat in
        // dy.
        slant = whole_box ? 0 : -b / c * std::sqrt(twice_tau * c / determinant);
    }

    // Tiles of one row of tiles that the ellipse reaches.
    Span columns(int tile_row, int width) const {
        double low = -reach_x, high = reach_x;
        if (!whole_box) {
            const double top = tile_row * tile_size + 0.5 - tile_bound_slack - y;
            const double bottom = top + tile_size - 1 + 2 * tile_bound_slack;
            const double reach_right = right_end(clamp(slant, top, bottom));
            const double reach_left = -right_end(-clamp(-slant, top, bottom));
            if (reach_right < high) high = reach_right;
            if (reach_left > low) low = reach_left;
        }
        return tiles_of(x + low, x + high, width);
    }

  private:
    static double clamp(double value, double low, double high) {
        return value < low ? low : value > high ? high : value;
    }

    // Largest x of the ellipse at height dy, or minus infinity where there is none. By symmetry about the
    // mean the smallest x at dy is minus the largest at -dy.
    double right_end(double dy) const {
        const double discriminant = twice_tau * a - determinant * dy * dy;
        if (!(discriminant >= 0)) return -INFINITY;
        return (-b * dy + std::sqrt(discriminant)) / a;
    }
};

// The tiles of the box round a splat.
struct TileBox {
    Span rows, columns;

    template <typename Real>
    TileBox(const BinParams<Real>& p, const SplatRecord<Real>& s)
        : rows(tiles_of(double(s.mean_y) - s.reach_y, double(s.mean_y) + s.reach_y, p.height)),
          columns(tiles_of(double(s.mean_x) - s.reach_x, double(s.mean_x) + s.reach_x, p.width)) {}
};

// body(row, column) for every tile of a splat, row by row.
template <typename Real, typename Body>
inline void for_each_tile(const BinParams<Real>& p, const SplatRecord<Real>& s, const TileBox& box,
                          const Body& body) {
    // A box one tile wide or high has no corner worth cutting off.
    if (box.rows.first >= box.rows.last || box.columns.first >= box.columns.last) {
        for (int row = box.rows.first; row <= box.rows.last; ++row)
            for (int column = box.columns.first; column <= box.columns.last; ++column) body(row, column);
        return;
    }
    const Ellipse<Real> ellipse(s);
    for (int row = box.rows.first; row <= box.rows.last; ++row) {
        const Span columns = ellipse.columns(row, p.width);
        for (int column = columns.first; column <= columns.last; ++column) body(row, column);
    }
}

// What counting found of a splat, so that filling need not look again: which tiles of a box of up to 8 by 8,
// bit 8 * row + column, and the number of its first. No bits: the box is larger, or nothing is touched.
struct TouchedTiles {
    uint64_t bits;
    int64_t first;
};
static_assert(sizeof(TouchedTiles) == 2 * sizeof(uint64_t), "they lie where the sort keys were");

// Counts one splat into its tiles; how many they are goes to `count`.
template <typename Real>
inline TouchedTiles count_tiles(const BinParams<Real>& p, const SplatRecord<Real>& s, int32_t* tile_counts,
                                int64_t& count) {
    const TileBox box(p, s);
    const int across = tiles_across(p.width), row_0 = box.rows.first, column_0 = box.columns.first;
    TouchedTiles touched{0, int64_t(row_0) * across + column_0};
    int64_t found = 0;
    for_each_tile(p, s, box, [&](int row, int column) {
        ++tile_counts[row * across + column];
        touched.bits |= uint64_t(1) << ((8 * (row - row_0) + column - column_0) & 63);
        ++found;
    });
    if (box.rows.last - row_0 >= 8 || box.columns.last - column_0 >= 8) touched.bits = 0;
    count = found;
    return touched;
}

// body(tile, rank) for every tile that counting found.
template <typename Real, typename Body>
inline void for_each_touched(const BinParams<Real>& p, const SplatRecord<Real>& s,
                             const TouchedTiles& touched, const Body& body) {
    const int across = tiles_across(p.width);
    int32_t rank = 0;
    for (uint64_t left = touched.bits; left; left &= left - 1) {
        const int bit = __builtin_ctzll(left);
        body(int(touched.first) + bit / 8 * across + bit % 8, rank++);
    }
    if (touched.bits) return;
    for_each_tile(p, s, TileBox(p, s), [&](int row, int column) { body(row * across + column, rank++); });
}

template <typename Real>
inline SplatRecord<Real>* records_of(const BinParams<Real>& p) {
    return reinterpret_cast<SplatRecord<Real>*>(p.records);
}

// Bits of a positive depth order as the depth does.
inline uint64_t key_of(float depth) {
    uint32_t bits;
    std::memcpy(&bits, &depth, sizeof bits);
    return bits;
}
inline uint64_t key_of(double depth) {
    uint64_t bits;
    std::memcpy(&bits, &depth, sizeof bits);
    return bits;
}

constexpr int radix_bits = 11;
constexpr int radix_buckets = 1 << radix_bits;

// Least significant digit first; stable, so equal depths keep the order of their indices. A digit that all
// keys share is skipped. The result is in the first half of `order`; the keys are anywhere.
void sort_by_depth(uint64_t* keys, int32_t* order, int64_t capacity, int64_t count, int key_bits) {
    uint64_t *from_keys = keys, *to_keys = keys + capacity;
    int32_t *from = order, *to = order + capacity;
    for (int shift = 0; shift < key_bits; shift += radix_bits) {
        int64_t offsets[radix_buckets] = {};
        for (int64_t i = 0; i < count; ++i) ++offsets[(from_keys[i] >> shift) & (radix_buckets - 1)];
        if (count > 0 && offsets[(from_keys[0] >> shift) & (radix_buckets - 1)] == count) continue;
        int64_t sum = 0;
        for (int64_t& offset : offsets) {
            const int64_t here = offset;
            offset = sum;
            sum += here;
        }
        for (int64_t i = 0; i < count; ++i) {
            const int64_t place = offsets[(from_keys[i] >> shift) & (radix_buckets - 1)]++;
            to_keys[place] = from_keys[i];
            to[place] = from[i];
        }
        uint64_t* swap_keys = from_keys;
        from_keys = to_keys;
        to_keys = swap_keys;
        int32_t* swap = from;
        from = to;
        to = swap;
    }
    if (from != order) std::memcpy(order, from, size_t(count) * sizeof(int32_t));
}

template <typename Real>
int64_t order_by_depth(const BinParams<Real>& p) {
    uint64_t* keys = static_cast<uint64_t*>(p.sort_keys);
    int64_t visible = 0;
    for (int64_t i = 0; i < p.count; ++i) {
        if (p.radii[2 * i] <= 0) continue;
        keys[visible] = key_of(p.depths[i]);
        p.order[visible++] = int32_t(i);
    }
    sort_by_depth(keys, p.order, p.count, visible, int(8 * sizeof(Real)));
    return visible;
}

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
    const auto pack = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) pack_record(p, i, records[i]);
    };
    if (!pieces.blocks(p.count, splat_block, pack)) return;
    const auto sort = [&](int64_t, int) {
        p.totals[0] = order_by_depth(p);
        std::memset(p.splat_offsets, 0, size_t(p.count + 1) * sizeof(int64_t));
    };
    if (!pieces.loop(1, 1, sort)) return;
    const int64_t visible = p.totals[0];
    const int tiles = tiles_across(p.width) * tiles_across(p.height);
    TouchedTiles* touched = static_cast<TouchedTiles*>(p.sort_keys);
    const auto count_block = [&](int64_t block, int) {
        int32_t* counts = p.tile_counts + block * tiles;
        std::memset(counts, 0, size_t(tiles) * sizeof(int32_t));
        int64_t begin, end;
        block_range(visible, block, begin, end);
        for (int64_t k = begin; k < end; ++k) {
            const int32_t splat = p.order[k];
            if (k + 8 < end) __builtin_prefetch(records + p.order[k + 8]);
            touched[k] = count_tiles(p, records[splat], counts, p.splat_offsets[splat + 1]);
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
            if (k + 8 < end) __builtin_prefetch(p.splat_offsets + p.order[k + 8]);
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
