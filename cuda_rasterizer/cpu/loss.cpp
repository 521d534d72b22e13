// The photometric loss, (1 - w) |x - y| + w (1 - SSIM), and its gradient by the render x.
//
// SSIM (Wang et al. 2004) with a Gaussian window, zero padding, each channel by itself. A row of an image
// with interleaved channels is one long row to the blur, whose horizontal taps are `channels` apart.

#include <cmath>
#include <cstring>

#include "constants.h"
#include "kernels.h"
#include "parallel.h"
#include "structural_similarity.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

constexpr int taps = 2 * ssim_radius + 1;

// One pass of the blur: the taps of out[i] are `stride` apart and begin at from[i].
template <typename Real>
void blur(const Real* __restrict__ from, int64_t length, int64_t stride, Real* __restrict__ out) {
    Real w[ssim_radius + 1];
    for (int k = 0; k <= ssim_radius; ++k) w[k] = Real(ssim_window[ssim_radius - k]);
    for (int64_t i = 0; i < length; ++i) {
        Real sum = w[ssim_radius] * from[i + ssim_radius * stride];
        for (int k = 0; k < ssim_radius; ++k)
            sum += w[k] * (from[i + k * stride] + from[i + (taps - 1 - k) * stride]);
        out[i] = sum;
    }
}

// A window of blurred rows that slides down the image: `Fields` images at once. Each keeps its last `taps`
// rows in a ring that is stored twice over, so that they always lie one behind the other in memory.
template <typename Real, int Fields>
class SlidingBlur {
  public:
    SlidingBlur(int64_t length, int channels, Real* workspace)
        : length_(length), channels_(channels), ring_(workspace) {
        padded_ = ring_ + Fields * 2 * taps * length;
        blurred_ = padded_ + Fields * padded_length();
        std::memset(padded_, 0, size_t(Fields * padded_length()) * sizeof(Real));
    }

    // Where the next row is to be written, field by field, before push().
    Real* input(int field) { return padded_ + field * padded_length() + ssim_radius * channels_; }

    void push(int row) {
        for (int f = 0; f < Fields; ++f) {
            blur(padded_ + f * padded_length(), length_, channels_, ring_row(f, row));
            std::memcpy(ring_row(f, row) + taps * length_, ring_row(f, row), size_t(length_) * sizeof(Real));
        }
    }

    // A row outside the image is zeros.
    void push_empty(int row) {
        for (int f = 0; f < Fields; ++f)
            for (int copy = 0; copy < 2; ++copy)
                std::memset(ring_row(f, row) + copy * taps * length_, 0, size_t(length_) * sizeof(Real));
    }

    // Blurs down the ring, whose rows are centre - radius to centre + radius.
    void blur_down(int centre) {
        for (int f = 0; f < Fields; ++f)
            blur(ring_row(f, centre - ssim_radius), length_, length_, blurred_ + f * length_);
    }

    const Real* blurred(int field) const { return blurred_ + field * length_; }

  private:
    int64_t padded_length() const { return length_ + 2 * ssim_radius * channels_; }
    Real* ring_row(int field, int row) { return ring_ + (field * 2 * taps + (row + taps) % taps) * length_; }

    int64_t length_;
    int channels_;
    Real *ring_, *padded_, *blurred_;
};

// fill(row) writes a row of the inputs, done(row) takes a row of the blurred fields, for rows begin to end.
template <typename Blur, typename Fill, typename Done>
void slide(Blur& blur, int begin, int end, int height, const Fill& fill, const Done& done) {
    for (int row = begin - ssim_radius; row < end + ssim_radius; ++row) {
        if (row < 0 || row >= height) {
            blur.push_empty(row);
        } else {
            fill(row);
            blur.push(row);
        }
        const int centre = row - ssim_radius;
        if (centre < begin) continue;
        blur.blur_down(centre);
        done(centre);
    }
}

// Numbers are taken in runs, so that the arithmetic of a run is a plain loop and only its sum is in double.
constexpr int64_t run_length = 64;

// The sum of up to a run of numbers, in an order that does not depend on the machine's vectors.
template <typename Real>
double sum_of_run(const Real* values, int64_t count) {
    double sums[8] = {};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int lane = 0; lane < 8; ++lane) sums[lane] += double(values[i + lane]);
    for (; i < count; ++i) sums[0] += double(values[i]);
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

template <typename Real>
double difference_of_row(const Real* __restrict__ x, const Real* __restrict__ y, int64_t length) {
    double sum = 0;
    for (int64_t begin = 0; begin < length; begin += run_length) {
        const int64_t count = length - begin < run_length ? length - begin : run_length;
        Real run[run_length];
        for (int64_t i = 0; i < count; ++i) run[i] = std::abs(x[begin + i] - y[begin + i]);
        sum += sum_of_run(run, count);
    }
    return sum;
}

// Similarity of one row; its derivatives by mu_x, q and r go to `maps`, a plane each, where that is given.
template <typename Real, bool WithMaps, typename Blur>
double similarity_of_row(const Blur& blur, int64_t length, Real* maps, int64_t plane) {
    double sum = 0;
    for (int64_t begin = 0; begin < length; begin += run_length) {
        const int64_t count = length - begin < run_length ? length - begin : run_length;
        const Real* __restrict__ mx = blur.blurred(0) + begin;
        const Real* __restrict__ my = blur.blurred(1) + begin;
        const Real* __restrict__ q = blur.blurred(2) + begin;
        const Real* __restrict__ r = blur.blurred(3) + begin;
        Real* __restrict__ by_mean = WithMaps ? maps + begin : nullptr;
        Real* __restrict__ by_square = WithMaps ? maps + plane + begin : nullptr;
        Real* __restrict__ by_product = WithMaps ? maps + 2 * plane + begin : nullptr;
        Real run[run_length];
        for (int64_t i = 0; i < count; ++i) {
            const Similarity<Real> s = similarity_of(mx[i], my[i], q[i], r[i]);
            run[i] = s.value;
            if (!WithMaps) continue;
            by_mean[i] = s.by_mean;
            by_square[i] = s.by_square;
            by_product[i] = s.by_product;
        }
        sum += sum_of_run(run, count);
    }
    return sum;
}

template <typename Real>
void fill_products(const Real* __restrict__ x, const Real* __restrict__ y, int64_t length,
                   Real* __restrict__ fx, Real* __restrict__ fy, Real* __restrict__ squares,
                   Real* __restrict__ product) {
    for (int64_t i = 0; i < length; ++i) {
        fx[i] = x[i];
        fy[i] = y[i];
        squares[i] = x[i] * x[i] + y[i] * y[i];
        product[i] = x[i] * y[i];
    }
}

template <typename Real>
void measure_block(const LossParams<Real>& p, int block, Real* workspace) {
    const int64_t length = int64_t(p.width) * p.channels;
    const int64_t plane = length * p.height;
    SlidingBlur<Real, 4> blur(length, p.channels, workspace);
    double difference = 0, similarity = 0;
    const int begin = block * loss_rows;
    const int end = begin + loss_rows < p.height ? begin + loss_rows : p.height;
    slide(
        blur, begin, end, p.height,
        [&](int row) {
            const Real *x = p.render + row * length, *y = p.target + row * length;
            fill_products(x, y, length, blur.input(0), blur.input(1), blur.input(2), blur.input(3));
        },
        [&](int row) {
            const Real *x = p.render + row * length, *y = p.target + row * length;
            difference += difference_of_row(x, y, length);
            similarity += p.gradient
                              ? similarity_of_row<Real, true>(blur, length, p.maps + row * length, plane)
                              : similarity_of_row<Real, false>(blur, length, nullptr, 0);
        });
    p.partials[2 * block] = difference;
    p.partials[2 * block + 1] = similarity;
}

template <typename Real>
void differentiate_block(const LossParams<Real>& p, int block, Real* workspace) {
    const int64_t length = int64_t(p.width) * p.channels;
    const int64_t plane = length * p.height;
    const Real per_number = Real(1.0 / double(plane));
    const Real l1_share = Real(1 - p.ssim_weight) * per_number, ssim_share = Real(p.ssim_weight) * per_number;
    SlidingBlur<Real, 3> blur(length, p.channels, workspace);
    const int begin = block * loss_rows;
    const int end = begin + loss_rows < p.height ? begin + loss_rows : p.height;
    slide(
        blur, begin, end, p.height,
        [&](int row) {
            for (int field = 0; field < 3; ++field)
                std::memcpy(blur.input(field), p.maps + field * plane + row * length,
                            size_t(length) * sizeof(Real));
        },
        [&](int row) {
            const Real *x = p.render + row * length, *y = p.target + row * length;
            const Real *mean = blur.blurred(0), *square = blur.blurred(1), *product = blur.blurred(2);
            Real* out = p.gradient + row * length;
            for (int64_t i = 0; i < length; ++i)
                out[i] = loss_slope(x[i], y[i], mean[i], square[i], product[i], l1_share, ssim_share);
        });
}

}  // namespace

template <typename Real>
void l1_ssim(const LossParams<Real>& p) {
    const int blocks = (p.height + loss_rows - 1) / loss_rows;
    parallel(blocks, p.workers, [&](int64_t block, int worker) {
        measure_block(p, int(block), p.workspace + worker * p.workspace_stride);
    });
    double difference = 0, similarity = 0;
    for (int block = 0; block < blocks; ++block) {
        difference += p.partials[2 * block];
        similarity += p.partials[2 * block + 1];
    }
    const double numbers = double(p.width) * p.height * p.channels;
    p.terms[1] = difference / numbers;
    p.terms[2] = similarity / numbers;
    p.terms[0] = (1 - p.ssim_weight) * p.terms[1] + p.ssim_weight * (1 - p.terms[2]);
    if (!p.gradient) return;
    parallel(blocks, p.workers, [&](int64_t block, int worker) {
        differentiate_block(p, int(block), p.workspace + worker * p.workspace_stride);
    });
}

SPLATSCOPE_INSTANTIATE(l1_ssim, LossParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
