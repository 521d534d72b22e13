// A splat as binning and compositing read it: one cache line (in float32) instead of six arrays.
#pragma once

#include <cmath>

#include "constants.h"
#include "params.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Rounding of exponents stays far below this.
constexpr double threshold_slack = 1e-3;

template <typename Real>
struct SplatRecord {
    Real mean_x, mean_y;
    Real a, b, c;  // -A/2, -B, -C/2 of the conic: the exponent is a dx^2 + b dx dy + c dy^2
    Real opacity;
    Real threshold;         // exponents below this are under the alpha floor
    Real reach_x, reach_y;  // no pixel centre farther away counts
    Real depth;
    Real absent;  // 1 where the splat is not seen
    Real ridge;   // dx / dy of the line on which the exponent is largest in each row
    Real color[record_channels];

    // No rounding of an exponent brings one that is below this to the threshold.
    Real surely_below() const { return threshold - Real(threshold_slack); }
};
static_assert(sizeof(SplatRecord<float>) == record_size * sizeof(float), "records are sized by record_size");
static_assert(sizeof(SplatRecord<double>) == record_size * sizeof(double),
              "records are sized by record_size");

// Without a cap the reach only saves work and is that of the ellipse, with some slack; with one it decides,
// and is the radii.
template <typename Real>
inline void set_reach(const BinParams<Real>& p, int64_t i, SplatRecord<Real>& s) {
    s.reach_x = Real(p.radii[2 * i]);
    s.reach_y = Real(p.radii[2 * i + 1]);
    if (std::isfinite(p.cutoffs.footprint_cap)) return;
    const double a = -2.0 * double(s.a), b = -double(s.b), c = -2.0 * double(s.c);
    const double twice_tau = -2.0 * double(s.surely_below()), determinant = a * c - b * b;
    if (!(determinant > 0)) return;
    const Real exact_x = Real(std::sqrt(twice_tau * c / determinant) * 1.0001 + tile_bound_slack);
    const Real exact_y = Real(std::sqrt(twice_tau * a / determinant) * 1.0001 + tile_bound_slack);
    if (exact_x < s.reach_x) s.reach_x = exact_x;
    if (exact_y < s.reach_y) s.reach_y = exact_y;
}

template <typename Real>
inline void pack_record(const BinParams<Real>& p, int64_t i, SplatRecord<Real>& s) {
    s = {};
    if (p.radii[2 * i] <= 0) {
        s.absent = Real(1);
        return;
    }
    s.mean_x = p.means_2d[2 * i];
    s.mean_y = p.means_2d[2 * i + 1];
    s.a = Real(-0.5) * p.conics[3 * i];
    s.b = -p.conics[3 * i + 1];
    s.c = Real(-0.5) * p.conics[3 * i + 2];
    const Real ridge = -s.b / (2 * s.a);
    s.ridge = std::isfinite(ridge) ? ridge : Real(0);
    s.opacity = p.opacities[i];
    s.threshold = std::log(Real(p.cutoffs.alpha_floor) / s.opacity);
    s.depth = p.depths[i];
    set_reach(p, i, s);
    const int channels = p.channels < record_channels ? p.channels : record_channels;
    for (int c = 0; c < channels; ++c) s.color[c] = p.colors[i * p.channels + c];
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
