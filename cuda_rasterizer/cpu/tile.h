// What compositing and its backward share: the lanes of a tile, and which vectors of it a splat touches.
#pragma once

#include <cmath>

#include "constants.h"
#include "params.h"
#include "record.h"
#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// The rectangle of one tile and its vectors. A vector holds `width` neighbours of one row; vectors are
// numbered down the columns: vector `chunk * tile_size + row` begins at column chunk * width.
template <typename Real>
struct TileGeometry {
    using Vector = typename Simd<Real>::Vector;
    static constexpr int width = Simd<Real>::width;
    static constexpr int chunks = tile_size / width;

    int x0, y0, columns, rows;  // columns and rows inside the image
    bool cut;                   // by the image's edge
    alignas(64) Real row_centers[tile_size];

    TileGeometry(int tile, int image_width, int image_height) {
        const int across = (image_width + tile_size - 1) / tile_size;
        x0 = tile % across * tile_size;
        y0 = tile / across * tile_size;
        columns = image_width - x0 < tile_size ? image_width - x0 : tile_size;
        rows = image_height - y0 < tile_size ? image_height - y0 : tile_size;
        cut = columns < tile_size || rows < tile_size;
        for (int row = 0; row < tile_size; ++row) row_centers[row] = Real(y0 + row) + Real(0.5);
    }

    // Where the number of a pixel stands in a plane of vectors.
    static int place(int x, int y) { return (x / width * tile_size + y) * width + x % width; }

    // Distances along x from a splat's mean to the pixel centres of one chunk.
    Vector distances(Real mean_x, int chunk) const {
        const Vector centers = lane_numbers<Vector>() + Real(0.5);
        return (centers + Real(x0 + chunk * width)) - mean_x;
    }
};

// A set of vectors of a tile.
template <typename Real>
struct VectorSet {
    static constexpr int size = TileGeometry<Real>::chunks * tile_size;
    static constexpr int word_count = (size + 63) / 64;
    uint64_t words[word_count] = {};

    void add(int first, uint64_t bits) { words[first / 64] |= bits << first % 64; }
    void remove(int64_t index) { words[index / 64] &= ~(uint64_t(1) << index % 64); }
    bool is_empty() const {
        uint64_t any = 0;
        for (uint64_t word : words) any |= word;
        return any == 0;
    }
    VectorSet operator&(const VectorSet& other) const {
        VectorSet both;
        for (int i = 0; i < word_count; ++i) both.words[i] = words[i] & other.words[i];
        return both;
    }
    // body(index) for every vector of a chunk from the first to the last: the rows of a splat have no gaps
    // but where all pixels have stopped.
    template <typename Body>
    void for_each_between(int chunk, const Body& body) const {
        const uint64_t set = rows(chunk);
        if (!set) return;
        const int64_t first = chunk * tile_size, last = first + 63 - __builtin_clzll(set);
        for (int64_t i = first + __builtin_ctzll(set); i <= last; ++i) body(i);
    }
    // The row behind the last one of a chunk.
    int rows_end(int chunk) const {
        const uint64_t set = rows(chunk);
        return set ? 64 - __builtin_clzll(set) : 0;
    }
    // The rows of one chunk, as bits.
    uint64_t rows(int chunk) const {
        const int first = chunk * tile_size;
        return words[first / 64] >> first % 64 & ((uint64_t(1) << tile_size) - 1);
    }
};

// Distances along y from a splat's mean to the pixel centres of a tile's rows.
template <typename Real>
struct RowDistances {
    using Vector = typename Simd<Real>::Vector;
    alignas(64) Real y[tile_size];

    RowDistances() = default;
    RowDistances(const SplatRecord<Real>& s, const TileGeometry<Real>& g) {
        for (int row = 0; row < tile_size; row += g.width)
            store(y + row, load<Vector>(g.row_centers + row) - broadcast(s.mean_y));
    }
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
