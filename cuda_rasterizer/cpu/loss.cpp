// The photometric loss, (1 - w) |x - y| + w (1 - SSIM), its gradient by the render x, and the squared error.
//
// SSIM (Wang et al. 2004) with a Gaussian window, zero padding, each channel by itself. A row of an image
// with interleaved channels is one long row to the blur, whose horizontal taps are `channels` apart.

#include "kernels.h"
#include "loss_strip.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

template <typename Real, int Channels>
LossSums run_strip(const LossParams<Real>& p, int row_block, int column_block, Real* workspace) {
    if (p.target_bytes) return LossStrip<Real, Channels, true>(p, row_block, column_block, workspace).run();
    return LossStrip<Real, Channels, false>(p, row_block, column_block, workspace).run();
}

}  // namespace

template <typename Real>
void l1_ssim(const LossParams<Real>& p) {
    const int across = (p.width + p.strip_width - 1) / p.strip_width;
    const int tasks = (p.height + loss_rows - 1) / loss_rows * across;
    // The last rows, mostly fewer, in the middle: that is where two workers meet, and neither waits long.
    const int middle = (tasks - across) / 2;
    const auto do_task = [&](int64_t place, int worker) {
        const int64_t task = place < middle            ? place
                             : place < middle + across ? place - middle + tasks - across
                                                       : place - across;
        const int down = int(task) / across, strip = int(task) % across;
        Real* workspace = p.workspace + worker * p.workspace_stride;
        const LossSums sums = p.channels == 3 ? run_strip<Real, 3>(p, down, strip, workspace)
                                              : run_strip<Real, 0>(p, down, strip, workspace);
        p.partials[3 * task] = sums.difference;
        p.partials[3 * task + 1] = sums.similarity;
        p.partials[3 * task + 2] = sums.squares;
    };
    Pieces pieces(p.pieces);
    if (!pieces.loop(tasks, p.workers, do_task)) return;
    double totals[3] = {};
    for (int task = 0; task < tasks; ++task)
        for (int k = 0; k < 3; ++k) totals[k] += p.partials[3 * task + k];
    const double numbers = double(p.width) * p.height * p.channels;
    const double l1 = totals[0] / numbers, ssim = totals[1] / numbers;
    p.terms[0] = (1 - p.ssim_weight) * l1 + p.ssim_weight * (1 - ssim);
    p.terms[1] = l1;
    p.terms[2] = ssim;
    p.terms[3] = totals[2] / numbers;
    pieces.finish();
}

SPLATSCOPE_INSTANTIATE(l1_ssim, LossParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
