// A splat as binning and compositing on the device read it: 64 bytes, in the order in which they are read.
#pragma once

#include "cuda_params.h"
#include "dialect.h"

namespace splatscope {

// Moved by one instruction.
struct alignas(16) Float4 {
    float x, y, z, w;
};

struct SplatRecord {
    float mean_x, mean_y;
    float a, b, c;  // -A/2, -B, -C/2 of the conic: the exponent is a dx^2 + b dx dy + c dy^2
    float opacity;
    float reach_x, reach_y;  // no pixel centre farther away counts
    float depth;
    float color[3];   // where there are three channels
    float threshold;  // exponents below this are safely under the alpha floor
    float unused[3];
};
static_assert(sizeof(SplatRecord) == record_size * sizeof(float), "records are sized by record_size");

SPLATSCOPE_FUNCTION SplatRecord load_record(const float* records, int64_t splat) {
    const Float4* from = reinterpret_cast<const Float4*>(records) + 4 * splat;
    const Float4 shape = from[0], extent = from[1], paint = from[2], rest = from[3];
    return {shape.x,  shape.y,
            shape.z,  shape.w,
            extent.x, extent.y,
            extent.z, extent.w,
            paint.x,  {paint.y, paint.z, paint.w},
            rest.x,   {rest.y, rest.z, rest.w}};
}

SPLATSCOPE_FUNCTION void store_record(float* records, int64_t splat, const SplatRecord& s) {
    Float4* to = reinterpret_cast<Float4*>(records) + 4 * splat;
    to[0] = {s.mean_x, s.mean_y, s.a, s.b};
    to[1] = {s.c, s.opacity, s.reach_x, s.reach_y};
    to[2] = {s.depth, s.color[0], s.color[1], s.color[2]};
    to[3] = {s.threshold, s.unused[0], s.unused[1], s.unused[2]};
}

SPLATSCOPE_FUNCTION bool is_finite_number(float value) {
    return value - value == 0.0f;
}

// Rounding of the logarithm and of the exponential stays far below this.
constexpr float threshold_slack = 1e-3f;

// Below this a determinant may have lost its digits to underflow.
constexpr float minimum_determinant = 1e-30f;

// A C - B^2 for the conic, to the last digits even for needles (Kahan): what each product loses is added
// back.
SPLATSCOPE_FUNCTION float conic_determinant(const SplatRecord& s) {
    const float a = -2.0f * s.a, b = s.b, c = -2.0f * s.c;
    const float square = b * b;
    const float lost = fused(-b, b, square);
    return fused(a, c, -square) + lost;
}

// Without a cap the reach only saves work and is that of the ellipse, with some slack; with one it decides,
// and is the radii.
SPLATSCOPE_FUNCTION void set_reach(const int32_t* radii, float footprint_cap, SplatRecord& s) {
    s.reach_x = float(radii[0]);
    s.reach_y = float(radii[1]);
    if (is_finite_number(footprint_cap)) return;
    const float determinant = conic_determinant(s);
    if (!(determinant > minimum_determinant)) return;
    const float twice_tau = -2.0f * s.threshold;
    const float a = -2.0f * s.a, c = -2.0f * s.c;
    const float exact_x = square_root(twice_tau * c / determinant) * 1.0001f + float(tile_bound_slack);
    const float exact_y = square_root(twice_tau * a / determinant) * 1.0001f + float(tile_bound_slack);
    if (exact_x < s.reach_x) s.reach_x = exact_x;
    if (exact_y < s.reach_y) s.reach_y = exact_y;
}

SPLATSCOPE_FUNCTION SplatRecord pack_record(const PackParams& p, int64_t i) {
    SplatRecord s;
    s.mean_x = p.means_2d[2 * i];
    s.mean_y = p.means_2d[2 * i + 1];
    s.a = -0.5f * p.conics[3 * i];
    s.b = -p.conics[3 * i + 1];
    s.c = -0.5f * p.conics[3 * i + 2];
    s.opacity = p.opacities[i];
    s.threshold = logarithm(float(p.cutoffs.alpha_floor) / s.opacity) - threshold_slack;
    s.depth = p.depths[i];
    set_reach(p.radii + 2 * i, float(p.cutoffs.footprint_cap), s);
#pragma unroll
    for (int c = 0; c < 3; ++c) s.color[c] = p.channels == 3 ? p.colors[3 * i + c] : 0.0f;
#pragma unroll
    for (int c = 0; c < 3; ++c) s.unused[c] = 0.0f;
    return s;
}

}  // namespace splatscope
