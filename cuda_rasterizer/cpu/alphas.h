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

    ColumnTerms() = default;
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

// What a splat's alphas by exponentials begin with.
template <typename Real>
struct ExponentialTerms {
    using Vector = typename Simd<Real>::Vector;
    ColumnTerms<Real> columns;
    RowDistances<Real> rows;
    Real c, opacity, threshold;

    ExponentialTerms() = default;
    ExponentialTerms(const SplatRecord<Real>& s, const TileGeometry<Real>& g)
        : columns(s, g),
          rows(s, g),
          c(s.c),
          opacity(s.opacity),
          threshold(s.threshold > Real(lowest_exponent) ? s.threshold : Real(lowest_exponent)) {}

    // Those of one vector.
    Vector alphas(int chunk, int row, const Limits<Real>& limits) const {
        const Vector exponent = columns.exponent(chunk, broadcast(c), broadcast(rows.y[row]));
        return minimum_between(exponent, broadcast(threshold), Vector{}, opacity * exponential(exponent),
                               limits.ceiling);
    }
};

// Products are taken while factors lie within e^steepest and exp(c Half^2) is at least e^lowest_fall.
template <typename Real, int Half>
constexpr Real steepest = Real(32) / Half;
constexpr double lowest_fall = -30;

// What a splat's alphas by products begin with, in `Half` rows on both sides of the upper edge of row
// `middle`. From a row to the next the exponent changes by g = b dx + 2 c dy + c, and from that change to the
// next by 2 c. So v rows beyond a middle row its exponential is that of the middle row, times v equal factors
// a column, times exp(c v^2): three products in place of an exponential, while neither may be so large that a
// number leaves its range or that the rounding of up to `Half` products is seen (5e-6 of alpha, at worst).
template <typename Real, int Half>
struct ProductTerms {
    using Vector = typename Simd<Real>::Vector;
    static constexpr int width = Simd<Real>::width, chunks = TileGeometry<Real>::chunks;
    static constexpr int fall_vectors = (Half + width - 1) / width;
    alignas(64) Real falls[fall_vectors * width];  // exp(c v^2) for v = 1 to Half
    Vector starts[chunks], down_factors[chunks], up_factors[chunks];

    ProductTerms() = default;
    ProductTerms(const SplatRecord<Real>& s, const TileGeometry<Real>& g, int middle) {
        const ColumnTerms<Real> columns(s, g);
        const Real y = g.row_centers[middle] - s.mean_y;
        const Vector lowest = broadcast(Real(lowest_exponent));
        // All at once: first of the falls, then of the starts, then of the factors.
        constexpr int start = fall_vectors, factor = start + chunks, count = factor + chunks;
        Vector found[count], v = lane_numbers<Vector>() + Real(1);
        for (int i = 0; i < fall_vectors; ++i, v += Real(width)) found[i] = maximum(s.c * v * v, lowest);
        for (int i = 0; i < chunks; ++i) {
            found[start + i] = maximum(columns.exponent(i, broadcast(s.c), broadcast(y)), lowest);
            found[factor + i] = columns.slope[i] + 2 * s.c * y;
        }
        exponentials<count>(found, found);
        for (int i = 0; i < fall_vectors; ++i) store(falls + i * width, found[i]);
        for (int i = 0; i < chunks; ++i) {
            starts[i] = s.opacity * found[start + i];
            down_factors[i] = found[factor + i];
            up_factors[i] = Real(1) / down_factors[i];
        }
    }

    // The alphas of these rows.
    void alphas(const Limits<Real>& limits, int middle, Vector* out_of_tile) const {
        using Mask = typename Simd<Real>::Mask;
        // The bits of numbers that are not negative have the order of the numbers; compared as integers they
        // leave the units alone that multiply.
        const Mask floor = (Mask)limits.floor, ceiling = (Mask)limits.ceiling;
        const auto limited = [&](Vector value) {
            const Mask bits = (Mask)value;
            return where(bits >= floor, (Vector)(bits < ceiling ? bits : ceiling));
        };
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const Vector down_factor = down_factors[chunk], up_factor = up_factors[chunk];
            Vector down = starts[chunk], up = down;
            Vector* out = out_of_tile + chunk * tile_size + middle;
            out[0] = limited(down);
#pragma GCC unroll 8
            for (int v = 1; v < Half; ++v) {
                const Vector fall = broadcast(falls[v - 1]);
                down *= down_factor;
                up *= up_factor;
                out[v] = limited(down * fall);
                out[-v] = limited(up * fall);
            }
            out[-Half] = limited(up * up_factor * falls[Half - 1]);
        }
    }
};

// How a splat's alphas in a tile are found: by exponentials, by products in the whole tile, or else by
// products in a quarter of its rows on both sides of the row of this number. Forward and backward must do it
// alike, bit for bit, and so must every machine: it depends on nothing but the splat and the tile, not even
// on how wide a vector is.
constexpr int by_exponentials = 0, by_products_everywhere = tile_size;

// The alphas of a splat in some vectors of a tile and in those between them, each at the place of its number,
// found once more in the way that forward has taken; others may be written too.
template <typename Real>
[[gnu::noinline]] void find_alphas_again(int way, const SplatRecord<Real>& s, const TileGeometry<Real>& g,
                                         const Limits<Real>& limits, const VectorSet<Real>& vectors,
                                         typename Simd<Real>::Vector* alphas) {
    if (way == by_products_everywhere) {
        ProductTerms<Real, tile_size / 2>(s, g, tile_size / 2).alphas(limits, tile_size / 2, alphas);
    } else if (way != by_exponentials) {
        ProductTerms<Real, tile_size / 4>(s, g, way).alphas(limits, way, alphas);
    } else {
        const ExponentialTerms<Real> terms(s, g);
        for (int chunk = 0; chunk < g.chunks; ++chunk)
            vectors.for_each_between(chunk, [&](int64_t vector) {
                alphas[vector] = terms.alphas(chunk, int(vector - chunk * tile_size), limits);
            });
    }
}

// What forward notes about a splat in a tile so that backward need not find it again.
template <typename Real>
struct Touch {
    static constexpr int word_count = (VectorSet<Real>::size + 31) / 32;
    uint32_t words[word_count];  // the vectors that it touched, at least those in which a pixel took light
    int32_t way;

    void note(const VectorSet<Real>& vectors, int found_by) {
        way = found_by;
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
