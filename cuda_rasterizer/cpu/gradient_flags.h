// What the gradients of a step tell (`flags` in params.h): whether they are finite, and whether there are
// any.
#pragma once

#include <atomic>

#include "constants.h"
#include "dialect.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Of the splats of one block, gathered as their gradients are written.
template <typename Real>
class BlockFindings {
  public:
    // `bit` is that of the tensor to which the numbers go.
    template <int Count>
    SPLATSCOPE_FUNCTION void look(const Lanes<Real>* numbers, int32_t bit) {
        Lanes<Real>& residue = residues_[__builtin_ctz(bit)];
        for (int k = 0; k < Count; ++k) {
            residue += numbers[k] - numbers[k];
            all_zero_ = all_zero_ & (numbers[k] == Lanes<Real>(0));
        }
    }
    int32_t not_finite() const {
        int32_t bits = 0;
        for (int tensor = 0; tensor < tensors; ++tensor)
            if (!none_of(not_zero(residues_[tensor]))) bits |= 1 << tensor;
        return bits;
    }
    bool any() const { return lanes_of(all_zero_.mask) != lanes_of((Lanes<Real>(0) == Lanes<Real>(0)).mask); }

  private:
    static constexpr int tensors = 6;
    static_assert(not_finite_sh_rest == 1 << (tensors - 1), "a bit for each tensor");

    // True of what is not a number, too.
    static LaneMask<Real> not_zero(Lanes<Real> x) { return {~(x == Lanes<Real>(0)).mask}; }

    Lanes<Real> residues_[tensors] = {};  // sums of x - x, which is 0 of what is finite alone
    LaneMask<Real> all_zero_ = Lanes<Real>(0) == Lanes<Real>(0);
};

// Gathers the flags of one call; threads may note at once.
class GradientFlags {
  public:
    template <typename Real>
    void note(const BlockFindings<Real>& findings, bool seen) {
        not_finite_.fetch_or(findings.not_finite(), std::memory_order_relaxed);
        found_.fetch_or((seen ? found_seen : 0) | (findings.any() ? found_gradient : 0),
                        std::memory_order_relaxed);
    }
    void add_to(int32_t* flags) const {
        flags[0] |= not_finite_.load(std::memory_order_relaxed);
        flags[1] |= found_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<int32_t> not_finite_{0}, found_{0};
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
