// What the gradients of a step tell (`flags` in params.h): whether they are finite, and whether there are
// any.
#pragma once

#include <atomic>

#include "params.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Gathers the flags of one call; threads may note at once.
class GradientFlags {
  public:
    // Of the splats `begin` to `end`, whose gradients have just been written and are in the cache.
    template <typename Real>
    void note(const ProjectBackwardParams<Real>& p, int64_t begin, int64_t end) {
        int32_t seen = 0;
        for (int64_t i = begin; i < end; ++i) seen |= p.radii[2 * i] > 0;
        if (seen) found_.fetch_or(found_seen, std::memory_order_relaxed);
        look(p.grad_means, 3, begin, end, not_finite_means);
        look(p.grad_quaternions, 4, begin, end, not_finite_quaternions);
        look(p.grad_scales, 3, begin, end, not_finite_scales);
        look(p.grad_opacities, 1, begin, end, not_finite_opacities);
        look(p.grad_sh_dc, 3, begin, end, not_finite_sh_dc);
        look(p.grad_sh_rest, 3 * p.sh_rest_coefficients, begin, end, not_finite_sh_rest);
    }

    void add_to(int32_t* flags) const {
        flags[0] |= not_finite_.load(std::memory_order_relaxed);
        flags[1] |= found_.load(std::memory_order_relaxed);
    }

  private:
    template <typename Real>
    void look(const Real* rows, int64_t size, int64_t begin, int64_t end, int32_t bit) {
        if (!rows) return;
        int32_t broken = 0, some = 0;
        for (int64_t k = size * begin; k < size * end; ++k) {
            const Real number = rows[k];
            broken |= !(number - number == Real(0));
            some |= number != Real(0);
        }
        if (broken) not_finite_.fetch_or(bit, std::memory_order_relaxed);
        if (some) found_.fetch_or(found_gradient, std::memory_order_relaxed);
    }

    std::atomic<int32_t> not_finite_{0}, found_{0};
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
