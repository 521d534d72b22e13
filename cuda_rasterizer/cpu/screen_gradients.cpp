// What densifying is decided by: how strongly each splat was pulled about on the screen, summed over views.

#include <cmath>

#include "kernels.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Every operation is rounded by itself, so that all instruction sets give the same bits.
template <typename Real>
void add_screen_gradients(const ScreenGradientParams<Real>& p) {
    const Real half_width = Real(p.half_width), half_height = Real(p.half_height);
    parallel_blocks(p.count, 65536, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Real x = p.gradients[2 * i] * half_width, y = p.gradients[2 * i + 1] * half_height;
            const Real seen = Real(p.radii[2 * i] > 0);
            p.new_sums[i] = p.sums[i] + std::sqrt(x * x + y * y) * seen;
            p.new_visits[i] = p.visits[i] + seen;
        }
    });
}

SPLATSCOPE_INSTANTIATE(add_screen_gradients, ScreenGradientParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
