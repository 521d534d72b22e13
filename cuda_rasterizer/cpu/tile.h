// What compositing and its backward share: the packed splat, the lanes of a tile, and the one function that
// decides whether a splat counts at a pixel.
#pragma once

#include <cmath>

#include "constants.h"
#include "params.h"
#include "record.h"
#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// The rectangle of one tile and its lanes. Column chunk `c` holds the pixels of x0 + c * width and on.
template <typename Real>
struct TileGeometry {
    using Vector = typename Simd<Real>::Vector;
    static constexpr int width = Simd<Real>::width;
    static constexpr int chunks = tile_size / width;

    int x0, y0, columns, rows;  // columns and rows inside the image
    Real row_centers[tile_size];

    TileGeometry(int tile, int image_width, int image_height) {
        const int across = (image_width + tile_size - 1) / tile_size;
        x0 = tile % across * tile_size;
        y0 = tile / across * tile_size;
        columns = image_width - x0 < tile_size ? image_width - x0 : tile_size;
        rows = image_height - y0 < tile_size ? image_height - y0 : tile_size;
        for (int row = 0; row < tile_size; ++row) row_centers[row] = Real(y0 + row) + Real(0.5);
    }

    // Distances along x from a splat's mean to the pixel centres of one chunk.
    Vector distances(Real mean_x, int chunk) const {
        Vector centers{};
        for (int i = 0; i < width; ++i) centers[i] = Real(i) + Real(0.5);
        return (centers + Real(x0 + chunk * width)) - mean_x;
    }

    // Whether a splat reaches any pixel centre of a chunk.
    bool reaches(const SplatRecord<Real>& s, int chunk) const {
        const Real first = Real(x0 + chunk * width) + Real(0.5);
        return s.mean_x + s.reach_x >= first && s.mean_x - s.reach_x <= first + Real(width - 1);
    }

    // Rows (bits) of this tile within the reach of a splat.
    unsigned rows_within(Real mean_y, Real reach) const {
        const Real low = std::ceil(mean_y - reach - Real(y0) - Real(0.5));
        const Real high = std::floor(mean_y + reach - Real(y0) - Real(0.5));
        if (!(high >= 0) || !(low <= Real(tile_size - 1)) || low > high) return 0;
        const int first = low > 0 ? int(low) : 0;
        const int last = high < Real(tile_size - 1) ? int(high) : tile_size - 1;
        return ((2u << last) - 1) & ~((1u << first) - 1);
    }
};

// The terms of the exponent that one column of pixels shares over all rows.
template <typename Real>
struct ColumnTerms {
    using Vector = typename Simd<Real>::Vector;
    Vector dx, square, slope;  // a dx^2, or far below any threshold outside the reach; b dx

    ColumnTerms(const SplatRecord<Real>& s, Vector distance) : dx(distance) {
        const Vector reach = broadcast(s.reach_x);
        const Vector outside = broadcast(Real(-1e30));
        square = s.a * dx * dx;
        square = (dx <= reach) & (dx >= -reach) ? square : outside;
        slope = s.b * dx;
    }

    Vector exponent(const SplatRecord<Real>& s, Real dy) const {
        const Vector y = broadcast(dy);
        return fused(fused(broadcast(s.c), y, slope), y, square);
    }
};

// The cut-offs as vectors.
template <typename Real>
struct Limits {
    using Vector = typename Simd<Real>::Vector;
    Vector floor, ceiling, stop;

    explicit Limits(const CutoffParams& c)
        : floor(broadcast(Real(c.alpha_floor))), ceiling(broadcast(Real(c.alpha_ceiling))) {
        Real limit = Real(c.stop_transmittance);
        // Leaving exactly the limit stops too: the same as demanding the next number above it.
        if (c.stop_inclusive) limit = std::nextafter(limit, Real(1));
        stop = broadcast(limit);
    }
};

template <typename Real>
struct Alpha {
    typename Simd<Real>::Vector value;      // limited to the ceiling
    typename Simd<Real>::Vector unlimited;  // opacity times the Gaussian
    typename Simd<Real>::Mask hit;          // at or above the floor
};

// The decision that forward and backward must take alike, bit for bit.
template <typename Real>
inline Alpha<Real> evaluate_alpha(const SplatRecord<Real>& s, typename Simd<Real>::Vector exponent,
                                  const Limits<Real>& limits) {
    using Vector = typename Simd<Real>::Vector;
    Alpha<Real> alpha;
    alpha.unlimited = s.opacity * exponential(exponent);
    alpha.value = alpha.unlimited < limits.ceiling ? alpha.unlimited : limits.ceiling;
    alpha.hit = (alpha.value >= limits.floor) & (exponent <= Vector{});
    return alpha;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
