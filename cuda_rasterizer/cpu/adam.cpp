// Adam (Kingma and Ba 2015) on one tensor, in place; and the conversion of a picture for a screen.

#include <cmath>

#include "kernels.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Real>
void adam(const AdamParams<Real>& p) {
    // The order of operations is that of torch.optim.Adam, so that the numbers are its own.
    const Real beta2 = Real(p.beta2);
    const Real rest1 = Real(1 - p.beta1), rest2 = Real(1 - p.beta2);
    const Real eps = Real(p.eps);
    const Real step_size = Real(p.lr / (1 - std::pow(p.beta1, double(p.step))));
    const Real correction = Real(std::sqrt(1 - std::pow(p.beta2, double(p.step))));
    parallel_blocks(p.count, 16384, [&](int64_t begin, int64_t end) {
        const Real* __restrict__ gradient = p.gradient;
        Real* __restrict__ parameter = p.parameter;
        Real* __restrict__ mean = p.exp_avg;
        Real* __restrict__ square = p.exp_avg_sq;
        for (int64_t i = begin; i < end; ++i) {
            const Real g = gradient[i];
            const Real m = mean[i] + rest1 * (g - mean[i]);
            const Real v = square[i] * beta2 + rest2 * g * g;
            mean[i] = m;
            square[i] = v;
            parameter[i] -= step_size * (m / (std::sqrt(v) / correction + eps));
        }
    });
}

template <typename Real>
void to_rgba8(const Rgba8Params<Real>& p) {
    parallel_blocks(p.pixels, 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            for (int c = 0; c < 3; ++c) {
                const Real value = p.color[3 * i + c];
                // Written so that a NaN is black.
                const Real limited = value > Real(0) ? (value < Real(1) ? value : Real(1)) : Real(0);
                p.rgba[4 * i + c] = uint8_t(limited * Real(255) + Real(0.5));
            }
            p.rgba[4 * i + 3] = 255;
        }
    });
}

SPLATSCOPE_INSTANTIATE(adam, AdamParams);
SPLATSCOPE_INSTANTIATE(to_rgba8, Rgba8Params);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
