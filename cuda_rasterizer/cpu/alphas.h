// A splat's alphas in the pixels of one tile.
#pragma once

#include "tile.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// The terms of the exponent that one column of pixels shares over all rows, for every chunk of a tile.
template <typename Real>
struct ColumnTerms {
    using Vector = typename Simd<Real>::Vector;
    static constexpr int chunks = TileGeometry<Real>::chunks;
    Vector square[chunks], slope[chunks];  // a dx^2, or very low outside the reach; b dx

    ColumnTerms(const SplatRecord<Real>& s, const TileGeometry<Real>& g) {
        const Vector reach = broadcast(s.reach_x), outside = broadcast(Real(-1e30));
        for (int i = 0; i < chunks; ++i) {
            const Vector dx = g.distances(s.mean_x, i);
            square[i] = (dx <= reach) & (dx >= -reach) ? s.a * dx * dx : outside;
            slope[i] = s.b * dx;
        }
    }

    // `c` is that of the splat, `y` the distance of a row from its mean.
    Vector exponent(int chunk, Vector c, Vector y) const {
        return fused(fused(c, y, slope[chunk]), y, square[chunk]);
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

// Below this no exponential is asked for.
constexpr double lowest_exponent = -87;

// Alphas of some vectors, an exponential each.
template <typename Real>
inline void alphas_by_exponentials(const SplatRecord<Real>& s, const TileGeometry<Real>& g,
                                   const RowDistances<Real>& rows, const Limits<Real>& limits,
                                   const VectorSet<Real>& vectors, typename Simd<Real>::Vector* alphas) {
    using Vector = typename Simd<Real>::Vector;
    const ColumnTerms<Real> columns(s, g);
    constexpr Real lowest = Real(lowest_exponent);
    const Vector c = broadcast(s.c), opacity = broadcast(s.opacity), ceiling = limits.ceiling;
    const Vector threshold = broadcast(s.threshold > lowest ? s.threshold : lowest);
    const auto find = [&](int64_t vector) {
        const Vector y = broadcast(rows.y[vector % tile_size]);
        const Vector exponent = columns.exponent(vector / tile_size, c, y);
        const auto hit = (exponent >= threshold) & (exponent <= Vector{});
        alphas[vector] = where(hit, minimum(opacity * exponential(exponent), ceiling));
    };
    for (int chunk = 0; chunk < g.chunks; ++chunk) vectors.for_each_between(chunk, find);
}

// From a row to the next the exponent changes by g = b dx + 2 c dy + c, and from that change to the next by
// 2 c. So v rows beyond a middle row its exponential is that of the middle row, times v equal factors a
// column, times exp(c v^2): three products in place of an exponential, while neither may be so large that a
// number leaves its range or that the rounding of up to `Half` products is seen (5e-6 of alpha, at worst).
template <typename Real, int Half>
inline bool changes_slowly(const SplatRecord<Real>& s, const TileGeometry<Real>& g, int middle) {
    constexpr Real most = Real(32) / Half;
    const Real along = 2 * s.c * (g.row_centers[middle] - s.mean_y);
    const Real left = Real(g.x0) + Real(0.5) - s.mean_x;
    const Real first = s.b * left + along, last = s.b * (left + Real(tile_size - 1)) + along;
    return std::abs(first) <= most && std::abs(last) <= most && s.c * (Half * Half) >= Real(-30);
}

// exp(c v^2) for v = 1 to Half.
template <typename Real, int Half>
struct Falls {
    using Vector = typename Simd<Real>::Vector;
    static constexpr int width = Simd<Real>::width;
    alignas(64) Real beyond[Half > width ? Half : width];

    explicit Falls(Real c) {
        Vector v{};
        for (int i = 0; i < width; ++i) v[i] = Real(i + 1);
        for (int i = 0; i < Half; i += width, v += Real(width))
            store(beyond + i, exponential(maximum(c * v * v, broadcast(Real(lowest_exponent)))));
    }
};

// Alphas of all vectors in `Half` rows on both sides of the upper edge of row `middle`.
template <typename Real, int Half>
inline void alphas_by_products(const SplatRecord<Real>& s, const TileGeometry<Real>& g,
                               const Limits<Real>& limits, int middle, typename Simd<Real>::Vector* alphas) {
    using Vector = typename Simd<Real>::Vector;
    using Mask = typename Simd<Real>::Mask;
    constexpr int chunks = TileGeometry<Real>::chunks;
    // The bits of numbers that are not negative have the order of the numbers; compared as integers they
    // leave the units alone that multiply.
    const Mask floor = (Mask)limits.floor, ceiling = (Mask)limits.ceiling;
    const auto limited = [&](Vector value) {
        const Mask bits = (Mask)value;
        return where(bits >= floor, (Vector)(bits < ceiling ? bits : ceiling));
    };
    const ColumnTerms<Real> columns(s, g);
    const Falls<Real, Half> falls(s.c);
    const Real y = g.row_centers[middle] - s.mean_y;
    const Vector lowest = broadcast(Real(lowest_exponent));
    Vector starts[chunks], factors[chunks];
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const Vector exponent = columns.exponent(chunk, broadcast(s.c), broadcast(y));
        starts[chunk] = s.opacity * exponential(maximum(exponent, lowest));
        factors[chunk] = exponential(columns.slope[chunk] + 2 * s.c * y);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const Vector down_factor = factors[chunk], up_factor = Real(1) / down_factor;
        Vector down = starts[chunk], up = down;
        Vector* out = alphas + chunk * tile_size + middle;
        out[0] = limited(down);
#pragma GCC unroll 8
        for (int v = 1; v < Half; ++v) {
            const Vector fall = broadcast(falls.beyond[v - 1]);
            down *= down_factor;
            up *= up_factor;
            out[v] = limited(down * fall);
            out[-v] = limited(up * fall);
        }
        out[-Half] = limited(up * up_factor * falls.beyond[Half - 1]);
    }
}

// How a splat's alphas in a tile are found: by exponentials, by products in the whole tile, or else by
// products on both sides of the row of this number.
constexpr int by_exponentials = 0, by_products_everywhere = tile_size;

// The alphas of a splat in some vectors of a tile and in those between them, each at the place of its number;
// others may be written too. They are limited to the ceiling, and 0 where the splat does not count: a
// decision that forward and backward must take alike, bit for bit. So how they are found, which is returned,
// depends on nothing but the splat and the tile, not even on how wide a vector is. The splat must touch the
// tile.
template <typename Real>
inline int find_alphas(const SplatRecord<Real>& s, const TileGeometry<Real>& g,
                       const RowDistances<Real>& rows, const Limits<Real>& limits,
                       const VectorSet<Real>& vectors, typename Simd<Real>::Vector* alphas) {
    using Vector = typename Simd<Real>::Vector;
    constexpr int half = tile_size / 2, quarter = tile_size / 4;
    const Vector reach = broadcast(s.reach_y);
    uint64_t within = 0;
    for (int row = 0; row < tile_size; row += g.width) {
        const Vector y = load<Vector>(rows.y + row);
        within |= uint64_t(lanes_of((y <= reach) & (y >= -reach))) << row;
    }
    const Real left = Real(g.x0) + Real(0.5) - s.mean_x, right = left + Real(tile_size - 1);
    const Real columns = (right < s.reach_x ? right : s.reach_x) - (left > -s.reach_x ? left : -s.reach_x);
    const int first = __builtin_ctzll(within), count = 64 - __builtin_clzll(within) - first;
    const Real covered = Real(count) * columns;
    // A splat in few pixels is better off without the others' products.
    if (count <= half) {
        const int middle = (first < half ? first : half) + quarter;
        if (covered >= Real(quarter * tile_size) && changes_slowly<Real, quarter>(s, g, middle)) {
            alphas_by_products<Real, quarter>(s, g, limits, middle, alphas);
            return middle;
        }
    } else if (covered >= Real(half * tile_size) && changes_slowly<Real, half>(s, g, half)) {
        alphas_by_products<Real, half>(s, g, limits, half, alphas);
        return by_products_everywhere;
    }
    alphas_by_exponentials(s, g, rows, limits, vectors, alphas);
    return by_exponentials;
}

// The same alphas once more, by the way that the first time has taken.
template <typename Real>
[[gnu::noinline]] void find_alphas_again(int way, const SplatRecord<Real>& s, const TileGeometry<Real>& g,
                                         const Limits<Real>& limits, const VectorSet<Real>& vectors,
                                         typename Simd<Real>::Vector* alphas) {
    if (way == by_exponentials)
        alphas_by_exponentials(s, g, RowDistances<Real>(s, g), limits, vectors, alphas);
    else if (way == by_products_everywhere)
        alphas_by_products<Real, tile_size / 2>(s, g, limits, tile_size / 2, alphas);
    else
        alphas_by_products<Real, tile_size / 4>(s, g, limits, way, alphas);
}

// What forward notes about a splat in a tile so that backward need not find it again.
template <typename Real>
struct Touch {
    static constexpr int word_count = (VectorSet<Real>::size + 31) / 32;
    uint32_t words[word_count];  // the vectors that it touched, at least those in which a pixel took light
    int32_t way;

    void note(const VectorSet<Real>& vectors) {
        for (int i = 0; i < word_count; ++i) words[i] = uint32_t(vectors.words[i / 2] >> i % 2 * 32);
    }
    VectorSet<Real> vectors() const {
        VectorSet<Real> set;
        for (int i = 0; i < word_count; ++i) set.words[i / 2] |= uint64_t(words[i]) << i % 2 * 32;
        return set;
    }
};
static_assert(sizeof(Touch<float>) <= touch_numbers * sizeof(int32_t) &&
                  sizeof(Touch<double>) <= touch_numbers * sizeof(int32_t),
              "notes are sized by touch_numbers");

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
