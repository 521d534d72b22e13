// Which tiles a splat reaches: exactly those whose pixel centres its ellipse alpha >= floor can touch.
//
// Counting and emission both walk these bounds, so they agree to the bit. As on the CPU (cpu/tile_bounds.h),
// but in float32: consumer GPUs do doubles at a 64th of the rate. What float loses is added to the slack, so
// the bounds stay conservative, and at most a tile that shows nothing of the splat is listed more.
#pragma once

#include "splat_record.h"

namespace splatscope {

// Rounding of a position, relative to what it is made of: some units in the last place.
constexpr float position_rounding = 4e-7f;

SPLATSCOPE_FUNCTION int tiles_across(int size) {
    return (size + tile_size - 1) / tile_size;
}

// First and last tile of a span; empty when last < first.
struct Span {
    int first, last;
};

SPLATSCOPE_FUNCTION int length_of(const Span& span) {
    return span.last < span.first ? 0 : span.last - span.first + 1;
}

// Of a span of pixel positions. Pixel centres stand at +0.5; positions that do not fit an int are clamped.
SPLATSCOPE_FUNCTION Span tiles_of(float low, float high, float slack, int size) {
    const float last_pixel = float(size - 1);
    low = ceiling(low - slack - 0.5f);
    high = floor_of(high + slack - 0.5f);
    if (!(high >= 0.0f) || !(low <= last_pixel) || low > high) return {1, 0};
    const int first = low > 0.0f ? int(low) : 0;
    const int last = high < last_pixel ? int(high) : size - 1;
    return {first / tile_size, last / tile_size};
}

// The ellipse of one splat, 0.5 d^T Q d <= tau, and its box.
struct TileBounds {
    float x, y, reach_x;
    float a, b, twice_tau, determinant, slant;
    float slack_x, slack_y;
    Span rows, box;
    int width;
    bool whole_box;  // the box alone bounds it

    SPLATSCOPE_FUNCTION TileBounds(const SplatRecord& s, int image_width, int image_height)
        : x(s.mean_x), y(s.mean_y), reach_x(s.reach_x), width(image_width) {
        slack_x = float(tile_bound_slack) + position_rounding * (absolute(x) + s.reach_x);
        slack_y = float(tile_bound_slack) + position_rounding * (absolute(y) + s.reach_y);
        rows = tiles_of(y - s.reach_y, y + s.reach_y, slack_y, image_height);
        box = tiles_of(x - s.reach_x, x + s.reach_x, slack_x, image_width);
        a = -2.0f * s.a;
        b = -s.b;
        const float c = -2.0f * s.c;
        twice_tau = -2.0f * s.threshold;
        determinant = conic_determinant(s);
        // A box one tile wide or high has no corner worth cutting off.
        whole_box = rows.first >= rows.last || box.first >= box.last || !is_finite_number(twice_tau) ||
                    !(determinant > minimum_determinant) || !is_finite_number(determinant);
        // Where, along y, the ellipse's rightmost point lies: there A dx^2 + 2 B dx dy + C dy^2 is flat in
        // dy.
        slant = whole_box ? 0.0f : -b / c * square_root(twice_tau * c / determinant);
    }

    // Tiles of one of `rows` that the ellipse reaches.
    SPLATSCOPE_FUNCTION Span columns(int row) const {
        if (whole_box) return box;
        const float top = float(row * tile_size) + 0.5f - slack_y - y;
        const float bottom = top + float(tile_size - 1) + 2.0f * slack_y;
        const float right = minimum(right_end(clamp(slant, top, bottom)), reach_x);
        const float left = maximum(-right_end(-clamp(-slant, top, bottom)), -reach_x);
        return tiles_of(x + left, x + right, slack_x, width);
    }

    SPLATSCOPE_FUNCTION int count() const {
        if (whole_box) return length_of(rows) * length_of(box);
        int tiles = 0;
        for (int row = rows.first; row <= rows.last; ++row) tiles += length_of(columns(row));
        return tiles;
    }

  private:
    SPLATSCOPE_FUNCTION static float clamp(float value, float low, float high) {
        return value < low ? low : value > high ? high : value;
    }

    // Largest x of the ellipse at height dy, or far to the left where there is none. By symmetry about the
    // mean the smallest x at dy is minus the largest at -dy.
    SPLATSCOPE_FUNCTION float right_end(float dy) const {
        const float discriminant = fused(-determinant * dy, dy, twice_tau * a);
        if (!(discriminant >= 0.0f)) return -3e38f;
        return (square_root(discriminant) - b * dy) / a;
    }
};

}  // namespace splatscope
