// The photometric loss, (1 - w) |x - y| + w (1 - SSIM), its gradient by the render x, and the squared error.
//
// SSIM (Wang et al. 2004) with a Gaussian window, zero padding, each channel by itself. A row of an image
// with interleaved channels is one long row to the blur, whose horizontal taps are `channels` apart.
//
// One pass: a task takes a strip of columns and goes down its rows in groups, as many as keep the ten rows
// above from being read anew for each. Of a group the fields are blurred downwards out of the pictures
// themselves, then across into the similarity and its derivatives, which are blurred across at once and wait
// in a ring of rows until the blur downwards has all that it needs of them. What a task keeps fits the
// second-level cache.

#include <cstring>

#include "constants.h"
#include "kernels.h"
#include "parallel.h"
#include "simd.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {

inline FloatVector reciprocal(FloatVector x) {
    return broadcast(1.0f) / x;
}
inline DoubleVector reciprocal(DoubleVector x) {
    return broadcast(1.0) / x;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope

#include "structural_similarity.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

constexpr int radius = ssim_radius;
constexpr int ring_rows = loss_group + 2 * radius;
constexpr int field_count = 4;       // x, y, x^2 + y^2, x y
constexpr int derivative_count = 3;  // of the similarity, by the blurred x, x^2 + y^2, x y

template <typename Vector, typename Real>
inline Vector load_loose(const Real* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <typename Vector, typename Real>
inline void store_loose(Real* to, Vector v) {
    std::memcpy(to, &v, sizeof v);
}

// As many bytes as there are lanes.
inline FloatVector numbers_of(const uint8_t* from, FloatVector) {
#if defined(__AVX512F__)
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, bytes));
#elif defined(__AVX2__)
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
#else
    FloatVector v;
    for (int i = 0; i < Simd<float>::width; ++i) v[i] = float(from[i]);
    return v;
#endif
}
inline DoubleVector numbers_of(const uint8_t* from, DoubleVector) {
    DoubleVector v;
    for (int i = 0; i < Simd<double>::width; ++i) v[i] = double(from[i]);
    return v;
}

// Bytes in 255ths, rounded as a division is.
template <typename Real>
inline typename Simd<Real>::Vector fractions_of(typename Simd<Real>::Vector bytes) {
#if defined(__AVX2__)
    const auto whole = broadcast(Real(255)), inverse = broadcast(Real(1) / Real(255));
    const auto near = bytes * inverse;
    return fused(fused(-near, whole, bytes), inverse, near);
#else
    return bytes / broadcast(Real(255));
#endif
}

// Two neighbouring sums of the window as it slides over at(0) to at(2 radius + 1), which are read once.
template <typename Vector, typename Read>
inline void blur_pair(const Vector* weights, const Read& at, Vector& first, Vector& second) {
    Vector low = at(1), high = at(2 * radius);
    first = weights[radius] * (at(0) + high);
    second = weights[radius] * (low + at(2 * radius + 1));
#pragma GCC unroll 8
    for (int k = 1; k < radius; ++k) {
        const Vector next_low = at(k + 1), next_high = at(2 * radius - k);
        first = fused(weights[radius - k], low + next_high, first);
        second = fused(weights[radius - k], next_low + high, second);
        low = next_low;
        high = next_high;
    }
    first = fused(weights[0], low, first);
    second = fused(weights[0], high, second);
}

// One sum, of numbers that are `stride` apart.
template <typename Vector, typename Real>
inline Vector blur_across(const Vector* weights, const Real* from, int64_t stride) {
    const auto at = [&](int k) { return load_loose<Vector>(from + k * stride); };
    Vector sum = weights[radius] * (at(0) + at(2 * radius));
#pragma GCC unroll 8
    for (int k = 1; k < radius; ++k) sum = fused(weights[radius - k], at(k) + at(2 * radius - k), sum);
    return fused(weights[0], at(radius), sum);
}

// What of the lanes n, n + 1 ... lies in begin to end; 0 for the others.
template <typename Real>
inline typename Simd<Real>::Vector inside(typename Simd<Real>::Vector v, int64_t n, int64_t begin,
                                          int64_t end) {
    if (n >= begin && n + Simd<Real>::width <= end) return v;
    for (int i = 0; i < Simd<Real>::width; ++i)
        if (n + i < begin || n + i >= end) v[i] = Real(0);
    return v;
}

struct Sums {
    double difference = 0, similarity = 0, squares = 0;
};

// The work of one task. `Channels` is 0 where only the parameters know; `Bytes` says what the target is.
template <typename Real, int Channels, bool Bytes>
class Strip {
  public:
    Strip(const LossParams<Real>& p, int row_block, int column_block, Real* workspace) : p_(p) {
        const int64_t stride = stride_of();
        length_ = p.width * stride;
        row_begin_ = row_block * loss_rows;
        row_end_ = row_begin_ + loss_rows < p.height ? row_begin_ + loss_rows : p.height;
        begin_ = column_block * p.strip_width * stride;
        end_ = begin_ + p.strip_width * stride < length_ ? begin_ + p.strip_width * stride : length_;
        margin_ = p.gradient ? radius : 0;
        row_size_ = p.workspace_stride / loss_workspace_rows;
        fields_ = workspace;
        derivatives_ = fields_ + loss_group * field_count * row_size_;
        ring_ = derivatives_ + derivative_count * row_size_;
        for (int k = 0; k <= radius; ++k) weights_[k] = broadcast(Real(ssim_window[k]));
        const double per_number = 1.0 / (double(length_) * p.height);
        l1_share_ = Real((1 - p.ssim_weight) * per_number);
        ssim_share_ = Real(p.ssim_weight * per_number);
    }

    Sums run() {
        // Derivatives are needed of `margin_` rows more than the gradient, at either end.
        for (int first = row_begin_ - margin_; first < row_end_ + margin_; first += loss_group) {
            blur_down(first);
            for (int k = 0; k < loss_group; ++k) compare(first + k, k);
            if (!p_.gradient) continue;
            const int ready = first + loss_group - radius;
            const int from = ready - loss_group > row_begin_ ? ready - loss_group : row_begin_;
            write_gradient(from, ready < row_end_ ? ready : row_end_);
        }
        return sums_;
    }

  private:
    using Vector = typename Simd<Real>::Vector;
    static constexpr int width = Simd<Real>::width;

    int64_t stride_of() const { return Channels > 0 ? Channels : p_.channels; }
    Real* field(int row_of_group, int f) const {
        return fields_ + (row_of_group * field_count + f) * row_size_;
    }
    Real* ring_row(int row) const {
        return ring_ + (row + ring_rows) % ring_rows * derivative_count * row_size_;
    }
    bool exists(int row) const { return row >= 0 && row < p_.height; }

    // Numbers n, n + 1 ... of a row of a picture, zeros where the row has none.
    template <bool Whole>
    Vector render_at(int row, int64_t n) const {
        const Real* from = p_.render + row * length_;
        if (Whole) return load_loose<Vector>(from + n);
        Vector v{};
        for (int i = 0; i < width; ++i)
            if (n + i >= 0 && n + i < length_) v[i] = from[n + i];
        return v;
    }
    template <bool Whole>
    Vector target_at(int row, int64_t n) const {
        Vector v{};
        if (Bytes) {
            const uint8_t* from = p_.target_bytes + row * length_;
            if (Whole) {
                v = numbers_of(from + n, v);
            } else {
                for (int i = 0; i < width; ++i)
                    if (n + i >= 0 && n + i < length_) v[i] = Real(from[n + i]);
            }
            return fractions_of<Real>(v);
        }
        const Real* from = p_.target + row * length_;
        if (Whole) return load_loose<Vector>(from + n);
        for (int i = 0; i < width; ++i)
            if (n + i >= 0 && n + i < length_) v[i] = from[n + i];
        return v;
    }
    bool is_whole(int64_t n) const { return n >= 0 && n + width <= length_; }

    // The fields of the rows `first` and following, blurred downwards.
    void blur_down(int first) {
        const int64_t side = (margin_ + radius) * stride_of();
        for (int64_t at = 0; at < end_ - begin_ + 2 * side; at += width) {
            const int64_t n = begin_ - side + at;
            if (is_whole(n))
                blur_column<true>(first, n, at);
            else
                blur_column<false>(first, n, at);
        }
    }

    template <bool Whole>
    void blur_column(int first, int64_t n, int64_t at) {
        Vector rows[field_count][ring_rows];
        for (int k = 0; k < ring_rows; ++k) {
            const int row = first - radius + k;
            Vector x{}, y{};
            if (exists(row)) {
                x = render_at<Whole>(row, n);
                y = target_at<Whole>(row, n);
            }
            rows[0][k] = x;
            rows[1][k] = y;
            rows[2][k] = fused(x, x, y * y);
            rows[3][k] = x * y;
        }
        for (int f = 0; f < field_count; ++f)
            for (int k = 0; k < loss_group; k += 2) {
                Vector one, other;
                blur_pair(weights_, [&](int tap) { return rows[f][k + tap]; }, one, other);
                store_loose(field(k, f) + at, one);
                store_loose(field(k + 1, f) + at, other);
            }
    }

    // A row's similarity; its derivatives, blurred across, go to the ring.
    void compare(int row, int row_of_group) {
        if (row >= row_end_ + margin_) return;
        if (!exists(row)) {
            if (p_.gradient)
                std::memset(ring_row(row), 0, size_t(derivative_count * row_size_) * sizeof(Real));
            return;
        }
        const bool counts = row >= row_begin_ && row < row_end_;
        const int64_t side = margin_ * stride_of();
        Vector similarities{};
        for (int64_t at = 0; at < end_ - begin_ + 2 * side; at += width) {
            const int64_t n = begin_ - side + at;
            if (n >= begin_ && n + width <= end_)
                similarities += compare_vector<true>(row_of_group, n, at);
            else
                similarities += compare_vector<false>(row_of_group, n, at);
        }
        if (counts) {
            sums_.similarity += double(sum_of<Real>(similarities));
            add_differences(row);
        }
        if (!p_.gradient) return;
        for (int f = 0; f < derivative_count; ++f) {
            const Real* from = derivatives_ + f * row_size_;
            Real* to = ring_row(row) + f * row_size_;
            for (int64_t at = 0; at < end_ - begin_; at += width)
                store_loose(to + at, blur_across(weights_, from + at, stride_of()));
        }
    }

    // The similarities of the numbers n, n + 1 ... as far as they are the strip's own.
    template <bool Own>
    Vector compare_vector(int row_of_group, int64_t n, int64_t at) {
        const auto blurred = [&](int f) {
            return blur_across(weights_, field(row_of_group, f) + at, stride_of());
        };
        const Vector c1 = broadcast(Real(ssim_c1)), c2 = broadcast(Real(ssim_c2));
        const Similarity<Vector> s = similarity_of(blurred(0), blurred(1), blurred(2), blurred(3), c1, c2);
        if (p_.gradient) {
            const Vector found[derivative_count] = {s.by_mean, s.by_square, s.by_product};
            for (int f = 0; f < derivative_count; ++f)
                store_loose(derivatives_ + f * row_size_ + at,
                            Own ? found[f] : inside<Real>(found[f], n, 0, length_));
        }
        return Own ? s.value : inside<Real>(s.value, n, begin_, end_);
    }

    void add_differences(int row) {
        const Vector zero{}, one = broadcast(Real(1));
        Vector differences{}, squares{};
        for (int64_t n = begin_; n < end_; n += width) {
            const bool whole = is_whole(n);
            const Vector x = whole ? render_at<true>(row, n) : render_at<false>(row, n);
            const Vector y = whole ? target_at<true>(row, n) : target_at<false>(row, n);
            const Vector off = inside<Real>(x - y, n, begin_, end_);
            const Vector off_screen = inside<Real>(minimum(maximum(x, zero), one) - y, n, begin_, end_);
            differences += maximum(off, -off);
            squares = fused(off_screen, off_screen, squares);
        }
        sums_.difference += double(sum_of<Real>(differences));
        sums_.squares += double(sum_of<Real>(squares));
    }

    // Of rows whose neighbours' derivatives are in the ring.
    void write_gradient(int from, int to) {
        for (int row = from; row < to; row += 2) {
            const Real* rows[2 * radius + 2];
            for (int k = 0; k < 2 * radius + 2; ++k) rows[k] = ring_row(row - radius + k);
            int64_t n = begin_;
            for (; n + width <= end_; n += width) write_pair<true>(row, n, rows, row + 1 < to);
            for (; n < end_; n += width) write_pair<false>(row, n, rows, row + 1 < to);
        }
    }

    // The gradients of the numbers n, n + 1 ... of a row and, where asked for, of the next one.
    template <bool Whole>
    void write_pair(int row, int64_t n, const Real* const* rows, bool both) {
        Vector one[derivative_count], other[derivative_count];
#pragma GCC unroll 3
        for (int f = 0; f < derivative_count; ++f) {
            const int64_t at = f * row_size_ + n - begin_;
            blur_pair(weights_, [&](int k) { return load_loose<Vector>(rows[k] + at); }, one[f], other[f]);
        }
        write_slopes<Whole>(row, n, one);
        if (both) write_slopes<Whole>(row + 1, n, other);
    }

    template <bool Whole>
    void write_slopes(int row, int64_t n, const Vector* by) {
        const Vector x = render_at<Whole>(row, n), y = target_at<Whole>(row, n);
        const Vector l1 = broadcast(l1_share_);
        const Vector slope = (where(x > y, l1) - where(x < y, l1)) -
                             broadcast(ssim_share_) * similarity_slope(x, y, by[0], by[1], by[2]);
        Real* to = p_.gradient + row * length_ + n;
        if (Whole) return store_loose(to, slope);
        for (int i = 0; n + i < end_; ++i) to[i] = slope[i];
    }

    const LossParams<Real>& p_;
    int row_begin_, row_end_;       // of the picture, and so below
    int64_t begin_, end_, length_;  // numbers of a row
    int64_t margin_;                // pixels around, of which derivatives are needed
    int64_t row_size_;
    Real *fields_, *derivatives_, *ring_;
    Vector weights_[radius + 1];
    Real l1_share_, ssim_share_;
    Sums sums_;
};

template <typename Real, int Channels>
Sums run_strip(const LossParams<Real>& p, int row_block, int column_block, Real* workspace) {
    if (p.target_bytes) return Strip<Real, Channels, true>(p, row_block, column_block, workspace).run();
    return Strip<Real, Channels, false>(p, row_block, column_block, workspace).run();
}

}  // namespace

template <typename Real>
void l1_ssim(const LossParams<Real>& p) {
    const int across = (p.width + p.strip_width - 1) / p.strip_width;
    const int tasks = (p.height + loss_rows - 1) / loss_rows * across;
    const auto do_task = [&](int64_t task, int worker) {
        const int down = int(task) / across, strip = int(task) % across;
        Real* workspace = p.workspace + worker * p.workspace_stride;
        const Sums sums = p.channels == 3 ? run_strip<Real, 3>(p, down, strip, workspace)
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
