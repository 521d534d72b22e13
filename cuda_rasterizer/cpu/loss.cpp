// The photometric loss, (1 - w) |x - y| + w (1 - SSIM), and its gradient by the render x.
//
// SSIM (Wang et al. 2004) with a Gaussian window, zero padding, each channel by itself. A row of an image
// with interleaved channels is one long row to the blur, whose horizontal taps are `channels` apart. As the
// variances enter only by their sum, four blurred fields do: x, y, x^2 + y^2, x y. Their derivatives are
// blurred once more: dS/dx = blur(dS/dmu) + 2 x blur(dS/dq) + y blur(dS/dr), the window being symmetric.

#include <cmath>
#include <cstring>

#include "constants.h"
#include "kernels.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

constexpr int taps = 2 * ssim_radius + 1;

template <typename Real>
struct Window {
    Real weight[taps];

    Window() {
        double sum = 0, w[taps];
        for (int i = 0; i < taps; ++i) {
            const double distance = i - ssim_radius;
            w[i] = std::exp(-distance * distance / (2 * ssim_sigma * ssim_sigma));
            sum += w[i];
        }
        for (int i = 0; i < taps; ++i) weight[i] = Real(w[i] / sum);
    }
};

template <typename Real>
void blur_row(const Window<Real>& window, const Real* __restrict__ padded, int64_t length, int channels,
              Real* __restrict__ out) {
    const Real* w = window.weight;
    for (int64_t i = 0; i < length; ++i) {
        const Real* from = padded + i;
        Real sum = w[ssim_radius] * from[ssim_radius * channels];
        for (int k = 0; k < ssim_radius; ++k)
            sum += w[k] * (from[k * channels] + from[(taps - 1 - k) * channels]);
        out[i] = sum;
    }
}

// A window of blurred rows that slides down the image: `Fields` images at once, a ring of `taps` rows each.
template <typename Real, int Fields>
class SlidingBlur {
  public:
    SlidingBlur(int64_t length, int channels, Real* workspace)
        : length_(length), channels_(channels), ring_(workspace) {
        padded_ = ring_ + Fields * taps * length;
        blurred_ = padded_ + Fields * padded_length();
        std::memset(padded_, 0, size_t(Fields * padded_length()) * sizeof(Real));
    }

    // Where the next row is to be written, field by field, before push().
    Real* input(int field) { return padded_ + field * padded_length() + ssim_radius * channels_; }

    void push(int row) {
        for (int f = 0; f < Fields; ++f)
            blur_row(window_, padded_ + f * padded_length(), length_, channels_, ring_row(f, row));
    }

    // A row outside the image is zeros.
    void push_empty(int row) {
        for (int f = 0; f < Fields; ++f) std::memset(ring_row(f, row), 0, size_t(length_) * sizeof(Real));
    }

    // Blurs down the ring, whose rows are centre - radius to centre + radius.
    void blur_down(int centre) {
        for (int f = 0; f < Fields; ++f) {
            const Real* rows[taps];
            for (int k = 0; k < taps; ++k) rows[k] = ring_row(f, centre + k - ssim_radius);
            Real* __restrict__ out = blurred_ + f * length_;
            const Real* w = window_.weight;
            for (int64_t i = 0; i < length_; ++i) {
                Real sum = w[ssim_radius] * rows[ssim_radius][i];
                for (int k = 0; k < ssim_radius; ++k) sum += w[k] * (rows[k][i] + rows[taps - 1 - k][i]);
                out[i] = sum;
            }
        }
    }

    const Real* blurred(int field) const { return blurred_ + field * length_; }

  private:
    int64_t padded_length() const { return length_ + 2 * ssim_radius * channels_; }
    Real* ring_row(int field, int row) { return ring_ + (field * taps + (row + 2 * taps) % taps) * length_; }

    Window<Real> window_;
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

// Similarity of one row; its derivatives by mu_x, q and r go to `maps` where that is given.
template <typename Real, typename Blur>
double similarity_of_row(const Blur& blur, int64_t length, Real* by_mean, Real* by_square, Real* by_product) {
    const Real c1 = Real(ssim_c1), c2 = Real(ssim_c2);
    const Real *mx = blur.blurred(0), *my = blur.blurred(1), *q = blur.blurred(2), *r = blur.blurred(3);
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) {
        const Real squares = mx[i] * mx[i] + my[i] * my[i], product = mx[i] * my[i];
        const Real a1 = 2 * product + c1, a2 = 2 * (r[i] - product) + c2;
        const Real b1 = squares + c1, b2 = q[i] - squares + c2;
        const Real inverse = Real(1) / (b1 * b2);
        const Real similarity = a1 * a2 * inverse;
        sum += double(similarity);
        if (!by_mean) continue;
        by_mean[i] = 2 * my[i] * (a2 - a1) * inverse + 2 * mx[i] * similarity * (Real(1) / b2 - Real(1) / b1);
        by_square[i] = -similarity / b2;
        by_product[i] = 2 * a1 * inverse;
    }
    return sum;
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
            Real *fx = blur.input(0), *fy = blur.input(1), *fq = blur.input(2), *fr = blur.input(3);
            for (int64_t i = 0; i < length; ++i) {
                fx[i] = x[i];
                fy[i] = y[i];
                fq[i] = x[i] * x[i] + y[i] * y[i];
                fr[i] = x[i] * y[i];
            }
        },
        [&](int row) {
            const Real *x = p.render + row * length, *y = p.target + row * length;
            for (int64_t i = 0; i < length; ++i) difference += double(std::abs(x[i] - y[i]));
            Real* map = p.gradient ? p.maps + row * length : nullptr;
            similarity += similarity_of_row<Real>(blur, length, map, map ? map + plane : nullptr,
                                                  map ? map + 2 * plane : nullptr);
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
            for (int64_t i = 0; i < length; ++i) {
                const Real sign = Real(x[i] > y[i]) - Real(x[i] < y[i]);
                const Real slope = mean[i] + 2 * x[i] * square[i] + y[i] * product[i];
                out[i] = l1_share * sign - ssim_share * slope;
            }
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
