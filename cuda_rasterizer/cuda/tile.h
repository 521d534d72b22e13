// What compositing and its backward share: the pixels of a block, the staged splat, and the one function that
// decides whether a splat counts at a pixel.
//
// A block is a tile of 16 x 16 pixels; each of its warps is a part of 8 x 4. Splats are staged in shared
// memory by the block, one a thread; the thread also finds which warps' pixels its splat reaches, so that
// each warp visits only those.
#pragma once

#include "splat_record.h"
#include "warp.h"

namespace splatscope {

constexpr int warp_columns = 8;
constexpr int warp_rows = 4;
constexpr int tile_warps = tile_pixels / warp_size;
constexpr int warps_across = tile_size / warp_columns;

// The pixel of one thread.
struct Pixel {
    float x, y;  // its centre
    int64_t index;
    bool inside;  // the image
};

// Corner of a tile in pixels.
struct TileCorner {
    int x, y;

    SPLATSCOPE_FUNCTION TileCorner(int tile, int width) {
        const int across = (width + tile_size - 1) / tile_size;
        x = tile % across * tile_size;
        y = tile / across * tile_size;
    }
};

SPLATSCOPE_FUNCTION Pixel pixel_of_thread(const TileCorner& corner, int width, int height) {
    const int warp = warp_index();
    const int x = corner.x + warp % warps_across * warp_columns + lane() % warp_columns;
    const int y = corner.y + warp / warps_across * warp_rows + lane() / warp_columns;
    return {float(x) + 0.5f, float(y) + 0.5f, int64_t(y) * width + x, x < width && y < height};
}

// The cut-offs of the pixel test. They come as doubles, which a block converts once.
struct Limits {
    float floor, ceiling, stop;
};

// Leaving exactly the limit stops too, where that is asked for: the same as demanding the next number above
// it.
SPLATSCOPE_FUNCTION float next_above(float value) {
    if (value == 0.0f) return bits_float(1u);
    return bits_float(value > 0.0f ? float_bits(value) + 1u : float_bits(value) - 1u);
}

SPLATSCOPE_FUNCTION Limits load_limits(const CutoffParams& c) {
    const float stop = float(c.stop_transmittance);
    return {float(c.alpha_floor), float(c.alpha_ceiling), c.stop_inclusive ? next_above(stop) : stop};
}

struct Alpha {
    float value;      // limited to the ceiling
    float unlimited;  // opacity times the Gaussian
    float dx, dy;     // from the splat's mean to the pixel's centre
    bool hit;         // at or above the floor, and within reach
};

// The decision that forward and backward take alike, bit for bit; operation by operation that of cpu/tile.h.
// `shape` is mean_x, mean_y, a, b of the record, `extent` c, opacity, reach_x, reach_y.
SPLATSCOPE_FUNCTION Alpha evaluate_alpha(const Float4& shape, const Float4& extent, const Pixel& pixel,
                                         const Limits& limits) {
    Alpha alpha;
    alpha.dx = pixel.x - shape.x;
    alpha.dy = pixel.y - shape.y;
    const float square = shape.z * alpha.dx * alpha.dx;
    const float slope = shape.w * alpha.dx;
    const float exponent = fused(fused(extent.x, alpha.dy, slope), alpha.dy, square);
    alpha.unlimited = extent.y * exponential(exponent);
    alpha.value = alpha.unlimited < limits.ceiling ? alpha.unlimited : limits.ceiling;
    // Without short cuts, which would be branches.
    alpha.hit = (alpha.value >= limits.floor) & (exponent <= 0.0f) & (absolute(alpha.dx) <= extent.z) &
                (absolute(alpha.dy) <= extent.w);
    return alpha;
}

SPLATSCOPE_FUNCTION float clamped(float value, float low, float high) {
    return minimum(maximum(value, low), high);
}

// Whether a splat can count at any of the pixel centres of a warp. Only saves work, so it leans to yes: by
// more than the pixel test rounds.
SPLATSCOPE_FUNCTION bool reaches_warp(const SplatRecord& s, float best_x_by_y, float best_y_by_x, float left,
                                      float top) {
    const float low_x = left - s.mean_x, high_x = left + float(warp_columns - 1) - s.mean_x;
    const float low_y = top - s.mean_y, high_y = top + float(warp_rows - 1) - s.mean_y;
    const bool in_box =
        (low_x <= s.reach_x) & (high_x >= -s.reach_x) & (low_y <= s.reach_y) & (high_y >= -s.reach_y);
    if (!in_box) return false;
    // The exponent is concave: over the rectangle it is largest at the mean or on an edge that faces it.
    const float x = clamped(0.0f, low_x, high_x), y = clamped(0.0f, low_y, high_y);
    const float on_y = clamped(best_y_by_x * x, low_y, high_y),
                on_x = clamped(best_x_by_y * y, low_x, high_x);
    const float vertical = fused(s.a * x, x, fused(s.b * x, on_y, s.c * on_y * on_y));
    const float horizontal = fused(s.a * on_x, on_x, fused(s.b * on_x, y, s.c * y * y));
    const float far_x = maximum(-low_x, high_x), far_y = maximum(-low_y, high_y);
    const float terms = fused(absolute(s.a) * far_x, far_x,
                              fused(absolute(s.b) * far_x, far_y, absolute(s.c) * far_y * far_y));
    return !(maximum(vertical, horizontal) + 1e-6f * terms < s.threshold);
}

// Bit w: the splat reaches the pixels of warp w.
SPLATSCOPE_FUNCTION uint32_t warps_reached(const SplatRecord& s, const TileCorner& corner) {
    const float best_y_by_x = -0.5f * s.b * reciprocal(s.c), best_x_by_y = -0.5f * s.b * reciprocal(s.a);
    uint32_t warps = 0;
#pragma unroll 1
    for (int warp = 0; warp < tile_warps; ++warp) {
        const float left = float(corner.x + warp % warps_across * warp_columns) + 0.5f;
        const float top = float(corner.y + warp / warps_across * warp_rows) + 0.5f;
        warps |= uint32_t(reaches_warp(s, best_x_by_y, best_y_by_x, left, top)) << warp;
    }
    return warps;
}

// One splat of the list for each thread of the block.
struct StagedSplats {
    Float4* shapes;   // (tile_pixels): mean_x, mean_y, a, b
    Float4* extents;  // (tile_pixels): c, opacity, reach_x, reach_y
    Float4* paints;   // (tile_pixels): depth and three channels
    uint32_t* warps;  // (tile_pixels): see warps_reached; 0 where there is no splat

    SPLATSCOPE_FUNCTION void stage(const TileParams<float>& tiles, const TileCorner& corner,
                                   int32_t splat) const {
        const int i = thread_index();
        const SplatRecord s = load_record(tiles.records, splat);
        shapes[i] = {s.mean_x, s.mean_y, s.a, s.b};
        extents[i] = {s.c, s.opacity, s.reach_x, s.reach_y};
        paints[i] = {s.depth, s.color[0], s.color[1], s.color[2]};
        warps[i] = warps_reached(s, corner);
    }

    // Which of 32 splats from `first` on this warp must visit, by bits.
    SPLATSCOPE_FUNCTION unsigned visits(int first) const {
        return ballot(all_lanes, (warps[first + lane()] >> warp_index() & 1u) != 0);
    }
};

SPLATSCOPE_FUNCTION const float* background_at(const TileParams<float>& tiles, int64_t pixel) {
    if (!tiles.background) return nullptr;
    return tiles.background_per_pixel ? tiles.background + pixel * tiles.channels : tiles.background;
}

}  // namespace splatscope
