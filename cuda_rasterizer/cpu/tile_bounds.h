// Which tiles a splat reaches: exactly those whose pixel centres its ellipse alpha >= floor can touch.
//
// Of one splat in plain numbers, or of as many at once as a vector has lanes of double; both by the same
// formulas and to the bit. Tiles and pixels are whole numbers in doubles here.
#pragma once

#include <cmath>

#include "constants.h"
#include "dialect.h"
#include "gaussian_math.h"
#include "params.h"
#include "record.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

inline int tiles_across(int size) {
    return (size + tile_size - 1) / tile_size;
}

SPLATSCOPE_FUNCTION double ceiling(double x) {
    return std::ceil(x);
}
SPLATSCOPE_FUNCTION double square_root(double x) {
    return std::sqrt(x);
}
template <typename Number>
SPLATSCOPE_FUNCTION Number floor_of(Number x) {
    return -ceiling(-x);
}

// 2^n of small whole numbers, which may not be negative.
SPLATSCOPE_FUNCTION Lanes<double> power_of_two(Lanes<double> n) {
    // The sum's last bits are n; above them nothing outlives the shift into the exponent.
    return (DoubleVector)(((DoubleMask)(n.vector + 0x1.8p52) + 1023) << 52);
}

// First and last tile of a span of pixel positions; empty where last < first.
template <typename Number>
struct Span {
    Number first, last;
};

// Pixel centres stand at +0.5.
template <typename Number>
SPLATSCOPE_FUNCTION Span<Number> tiles_of(Number low, Number high, int size) {
    const Number last_pixel = double(size - 1);
    low = ceiling(low - Number(tile_bound_slack) - Number(0.5));
    high = floor_of(high + Number(tile_bound_slack) - Number(0.5));
    const Mask<Number> some = (high >= Number(0.0)) & (low <= last_pixel) & (low <= high);
    low = select(low > Number(0.0), low, Number(0.0));
    high = select(high < last_pixel, high, last_pixel);
    constexpr double tiles_a_pixel = 1.0 / tile_size;  // a power of two, so that products are exact
    return {select(some, floor_of(low * Number(tiles_a_pixel)), Number(1.0)),
            select(some, floor_of(high * Number(tiles_a_pixel)), Number(0.0))};
}

// As many splats as a vector has lanes of double.
template <typename Real>
struct SplatsAtOnce {
    static constexpr int count = Lanes<double>::width;
    const SplatRecord<Real>* records[count];

    template <typename Part>
    SPLATSCOPE_FUNCTION Lanes<double> each(const Part& part) const {
        DoubleVector found;
        for (int i = 0; i < count; ++i) found[i] = double(part(*records[i]));
        return found;
    }
};

template <typename Real>
struct OneSplat {
    const SplatRecord<Real>& record;

    template <typename Part>
    SPLATSCOPE_FUNCTION double each(const Part& part) const {
        return double(part(record));
    }
};

// The ellipse 0.5 d^T Q d <= tau of each splat, and the box of tiles round it.
template <typename Number>
struct Ellipse {
    Span<Number> rows, columns;

    template <typename Splats, typename Real>
    SPLATSCOPE_FUNCTION Ellipse(const Splats& splats, const BinParams<Real>& p) : width_(p.width) {
        using Record = SplatRecord<Real>;
        x_ = splats.each([](const Record& s) { return s.mean_x; });
        y_ = splats.each([](const Record& s) { return s.mean_y; });
        reach_x_ = splats.each([](const Record& s) { return s.reach_x; });
        const Number reach_y = splats.each([](const Record& s) { return s.reach_y; });
        rows = tiles_of(y_ - reach_y, y_ + reach_y, p.height);
        columns = tiles_of(x_ - reach_x_, x_ + reach_x_, p.width);
        a_ = Number(-2.0) * splats.each([](const Record& s) { return s.a; });
        b_ = -splats.each([](const Record& s) { return s.b; });
        const Number c = Number(-2.0) * splats.each([](const Record& s) { return s.c; });
        twice_tau_ = Number(-2.0) * splats.each([](const Record& s) { return s.surely_below(); });
        determinant_ = a_ * c - b_ * b_;
        // A box one tile wide or high has no corner worth cutting off.
        cuts_corners_ = (rows.first < rows.last) & (columns.first < columns.last) & is_finite(twice_tau_) &
                        (determinant_ > Number(0.0));
        // Where, along y, the rightmost point lies: there A dx^2 + 2 B dx dy + C dy^2 is flat in dy.
        slant_ = -b_ / c * square_root(twice_tau_ * c / determinant_);
    }

    // Tiles of one row of tiles that it reaches.
    SPLATSCOPE_FUNCTION Span<Number> columns_of(Number row) const {
        const Number top = row * Number(double(tile_size)) + Number(0.5) - Number(tile_bound_slack) - y_;
        const Number bottom = top + Number(double(tile_size)) - Number(1.0) + Number(2 * tile_bound_slack);
        const Number right = right_end(limited(slant_, top, bottom));
        const Number left = -right_end(-limited(-slant_, top, bottom));
        return tiles_of(x_ + select(cuts_corners_ & (left > -reach_x_), left, -reach_x_),
                        x_ + select(cuts_corners_ & (right < reach_x_), right, reach_x_), width_);
    }

  private:
    Number x_, y_, reach_x_, a_, b_, twice_tau_, determinant_, slant_;
    Mask<Number> cuts_corners_;
    int width_;

    // Largest x at height dy, or minus infinity where there is none. By symmetry about the mean the smallest
    // x at dy is minus the largest at -dy.
    SPLATSCOPE_FUNCTION Number right_end(Number dy) const {
        const Number discriminant = twice_tau_ * a_ - determinant_ * dy * dy;
        const Number end = (-b_ * dy + square_root(discriminant)) / a_;
        return select(discriminant >= Number(0.0), end, Number(-INFINITY));
    }
};

// What counting found of a splat, so that filling need not look again: which tiles of a box of up to 8 by 8,
// bit 8 * row + column, and the number of its first. No bits: the box is larger, or nothing is touched.
struct TouchedTiles {
    uint64_t bits;
    int64_t first;
};
static_assert(sizeof(TouchedTiles) == 2 * sizeof(uint64_t), "they lie where the sort keys were");

template <typename Real>
SPLATSCOPE_FUNCTION void find_touched(const BinParams<Real>& p, const SplatsAtOnce<Real>& splats,
                                      TouchedTiles* found) {
    using Number = Lanes<double>;
    const Ellipse<Number> ellipse(splats, p);
    const Span<Number>&rows = ellipse.rows, &box = ellipse.columns;
    const Mask<Number> is_small =
        (rows.last - rows.first < Number(8.0)) & (box.last - box.first < Number(8.0));
    // Four rows of 8 bits fit the digits of a double.
    Number upper(0.0), lower(0.0), row = rows.first;
    const auto add_row = [&](Number& half, double unit) {
        const Span<Number> reached = ellipse.columns_of(row);
        const Mask<Number> some = is_small & (row <= rows.last) & (reached.first <= reached.last);
        const Number bits =
            power_of_two(reached.last - box.first + Number(1.0)) - power_of_two(reached.first - box.first);
        half += select(some, bits * Number(unit), Number(0.0));
        row += Number(1.0);
    };
    for (double unit = 1; unit < 0x1p32 && !none_of(is_small & (row <= rows.last)); unit *= 256)
        add_row(upper, unit);
    for (double unit = 1; unit < 0x1p32 && !none_of(is_small & (row <= rows.last)); unit *= 256)
        add_row(lower, unit);
    const Number first = rows.first * Number(double(tiles_across(p.width))) + box.first;
    for (int i = 0; i < splats.count; ++i) {
        const uint64_t halves[] = {uint64_t(int64_t(upper.vector[i])), uint64_t(int64_t(lower.vector[i]))};
        found[i] = {halves[0] | halves[1] << 32, int64_t(first.vector[i])};
    }
}

// body(tile, rank) for every tile of a splat of which no bits tell; seldom needed, and apart lest it take
// registers from the loop over bits.
template <typename Real, typename Body>
__attribute__((noinline)) void for_each_reached(const BinParams<Real>& p, const SplatRecord<Real>& s,
                                                const Body& body) {
    const int across = tiles_across(p.width);
    int32_t rank = 0;
    const Ellipse<double> ellipse(OneSplat<Real>{s}, p);
    for (double row = ellipse.rows.first; row <= ellipse.rows.last; ++row) {
        const Span<double> columns = ellipse.columns_of(row);
        for (double column = columns.first; column <= columns.last; ++column)
            body(int(row) * across + int(column), rank++);
    }
}

// body(tile, rank) for every tile that a splat touches.
template <typename Real, typename Body>
SPLATSCOPE_FUNCTION void for_each_touched(const BinParams<Real>& p, const SplatRecord<Real>& s,
                                          const TouchedTiles& touched, const Body& body) {
    if (!touched.bits) return for_each_reached(p, s, body);
    const int across = tiles_across(p.width);
    int32_t rank = 0;
    for (uint64_t left = touched.bits; left; left &= left - 1) {
        const int bit = __builtin_ctzll(left);
        body(int(touched.first) + bit / 8 * across + bit % 8, rank++);
    }
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
