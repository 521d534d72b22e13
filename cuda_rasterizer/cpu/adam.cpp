// Adam (Kingma and Ba 2015) on several tensors, in place; and the conversion of a picture for a screen.

#include <cmath>

#include "kernels.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {

namespace {

constexpr int64_t numbers_a_task = 16384;

// The order of operations is that of torch.optim.Adam, so that the numbers are its own.
template <typename Real>
void move(const AdamParams<Real>& p, const AdamGroupParams<Real>& group, int64_t begin, int64_t end) {
    const Real beta2 = Real(p.beta2);
    const Real rest1 = Real(1 - p.beta1), rest2 = Real(1 - p.beta2);
    const Real eps = Real(p.eps);
    const Real step_size = Real(group.step_size), correction = Real(group.correction);
    const Real* __restrict__ gradient = group.gradient;
    Real* __restrict__ parameter = group.parameter;
    Real* __restrict__ mean = group.exp_avg;
    Real* __restrict__ square = group.exp_avg_sq;
    for (int64_t i = begin; i < end; ++i) {
        const Real g = gradient[i];
        const Real m = mean[i] + rest1 * (g - mean[i]);
        const Real v = square[i] * beta2 + rest2 * g * g;
        mean[i] = m;
        square[i] = v;
        parameter[i] -= step_size * (m / (std::sqrt(v) / correction + eps));
    }
}

// Only the rows of splats that were seen, neighbours together.
template <typename Real>
void move_seen(const AdamParams<Real>& p, const AdamGroupParams<Real>& group, int64_t begin, int64_t end) {
    int64_t seen_begin = begin;
    for (int64_t row = begin / group.row_size; row * group.row_size < end; ++row) {
        if (p.radii[2 * row] > 0) continue;
        if (seen_begin < row * group.row_size) move(p, group, seen_begin, row * group.row_size);
        seen_begin = (row + 1) * group.row_size;
    }
    if (seen_begin < end) move(p, group, seen_begin, end);
}

}  // namespace

template <typename Real>
void adam(const AdamParams<Real>& p) {
    if (p.flags && (p.flags[0] != 0 || (p.flags[1] & found_seen) == 0)) return;
    int64_t first_task[maximum_adam_groups + 1] = {};
    for (int64_t g = 0; g < p.group_count; ++g)
        first_task[g + 1] = first_task[g] + (p.groups[g].count + numbers_a_task - 1) / numbers_a_task;
    parallel(first_task[p.group_count], thread_count(), [&](int64_t task, int) {
        int64_t g = 0;
        while (task >= first_task[g + 1]) ++g;
        const AdamGroupParams<Real>& group = p.groups[g];
        const int64_t begin = (task - first_task[g]) * numbers_a_task;
        const int64_t end = begin + numbers_a_task < group.count ? begin + numbers_a_task : group.count;
        if (p.radii)
            move_seen(p, group, begin, end);
        else
            move(p, group, begin, end);
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
