// A strip of columns of the photometric loss, in one pass down its rows.
//
// It takes them in groups and along each in chunks, so that all but the ring stays in the nearest caches. Of
// a chunk the fields are blurred downwards out of the pictures themselves and turned, a number of each row in
// a vector. So the blurs across, too, read whole vectors that neighbours share: into the similarity, and then
// of its derivatives. These are turned back and wait in a ring of rows until the blur downwards has all that
// it needs of them.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "constants.h"
#include "lane_sums.h"
#include "loss_vectors.h"
#include "params.h"
#include "structural_similarity.h"
#include "transpose.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

struct LossSums {
    double difference = 0, similarity = 0, squares = 0;
};

// The work of one task. `Channels` is 0 where only the parameters know; `Bytes` says what the target is.
template <typename Real, int Channels, bool Bytes>
class LossStrip {
  public:
    LossStrip(const LossParams<Real>& p, int row_block, int column_block, Real* workspace) : p_(p) {
        length_ = p.width * stride();
        row_begin_ = row_block * loss_rows;
        row_end_ = std::min(row_begin_ + loss_rows, p.height);
        begin_ = column_block * p.strip_width * stride();
        end_ = std::min(begin_ + p.strip_width * stride(), length_);
        margin_ = p.gradient ? radius : 0;
        lag_ = ((margin_ + radius) * stride() + width - 1) / width * width;
        const int64_t row_size = p.workspace_stride / loss_workspace_rows;
        fields_ = workspace;
        derivatives_ = fields_ + field_count * group * row_size;
        ring_ = derivatives_ + derivative_count * group * row_size;
        for (int k = 0; k <= radius; ++k) weights_.of[k] = broadcast(Real(ssim_window[k]));
        const double per_number = 1.0 / (double(length_) * p.height);
        l1_share_ = Real((1 - p.ssim_weight) * per_number);
        ssim_share_ = Real(p.ssim_weight * per_number);
    }

    LossSums run() {
        // Derivatives are needed of `margin_` rows more than the gradient, at either end.
        for (int first = row_begin_ - margin_; first < row_end_ + margin_; first += group) {
            differences_ = squares_ = Vector{};
            for (int batch = 0; batch < batches; ++batch) {
                exist_[batch] = lanes_between<Real>(first + batch * width, 0, p_.height);
                similarities_[batch] = Vector{};
            }
            for (chunk_ = begin_ - lag_; chunk_ - lag_ < end_; chunk_ += loss_chunk) {
                blur_down(first);
                for (int batch = 0; batch < batches; ++batch) compare(batch);
                if (p_.gradient) blur_across();
                finish(first - margin_);
                keep();
            }
            for (int batch = 0; batch < batches; ++batch) {
                const Mask own = lanes_between<Real>(first + batch * width, row_begin_, row_end_);
                sums_.similarity += double(sum_of<Real>(where(own, similarities_[batch])));
            }
            sums_.difference += double(sum_of<Real>(differences_));
            sums_.squares += double(sum_of<Real>(squares_));
            slot_ = (slot_ + 1) % slots;
        }
        return sums_;
    }

  private:
    using Vector = typename Simd<Real>::Vector;
    using Mask = typename Simd<Real>::Mask;
    using Target = std::conditional_t<Bytes, uint8_t, Real>;
    static constexpr int width = Simd<Real>::width;
    static constexpr int radius = ssim_radius;
    static constexpr int field_count = 4;       // x, y, x^2 + y^2, x y
    static constexpr int derivative_count = 3;  // of the similarity, by the blurred x, x^2 + y^2, x y
    static constexpr int group = width > 8 ? width : 8;  // rows
    static constexpr int batches = group / width;
    static constexpr int around = group + 2 * radius;  // rows that the blur down of a group needs
    // Of the ring: for a group's rows and the 2 radius rows before them.
    static constexpr int slots = group < 2 * radius ? 3 : 2;
    static constexpr int at_once = width < sums_at_once ? width : sums_at_once;
    static constexpr int compared = 4;  // pixels at once, of all fields

    int64_t stride() const { return Channels > 0 ? Channels : p_.channels; }
    int64_t reach() const { return radius * stride(); }
    // Of number n, the rows' of a group after each other: lanes are rows.
    Real* fields_at(int64_t n) const { return fields_ + (n - chunk_ + 2 * reach()) * (field_count * group); }
    Real* derivatives_at(int64_t n) const {
        return derivatives_ + (n - chunk_ + lag_ + reach()) * (derivative_count * group);
    }
    // Of the numbers n, n + 1 ..., row by row.
    Real* ring_at(int slot, int64_t n) const {
        return ring_ + ((n - begin_) / width * slots + slot) * (group * derivative_count * width);
    }

    // Numbers n, n + 1 ... of a row of a picture, zeros where the row has none.
    template <bool Whole, typename Number>
    Vector numbers_at(const Number* row, int64_t n) const {
        if constexpr (Whole && sizeof(Number) == 1) return numbers_of(row + n, Vector{});
        if constexpr (Whole && sizeof(Number) > 1) return load_anywhere<Vector>(row + n);
        return numbers_within<Real>(row, n, length_);
    }
    template <bool Whole>
    Vector target_at(const Target* row, int64_t n) const {
        const Vector numbers = numbers_at<Whole>(row, n);
        if constexpr (Bytes) return fractions_of<Real>(numbers);
        return numbers;
    }
    const Target* target() const {
        if constexpr (Bytes)
            return p_.target_bytes;
        else
            return p_.target;
    }

    // The fields of the rows `first` and following, blurred downwards.
    void blur_down(int first) {
        const int64_t to = std::min(chunk_ + loss_chunk, end_ + (margin_ + radius) * stride());
        for (int64_t n = chunk_; n < to; n += width) {
            if (n >= 0 && n + width <= length_)
                blur_columns<true>(first, n);
            else if (n + width <= 0 || n >= length_)
                std::fill(fields_at(n), fields_at(n + width), Real(0));
            else
                blur_columns<false>(first, n);
        }
    }

    // Of rows from, ... below `to`, what lies a little further on: no machine foresees so many streams.
    template <typename Number>
    void ask_for(const Number* picture, int from, int to, int64_t n) const {
        const Number* at = picture + from * length_ + n + 128 / sizeof(Number);
        for (int row = from; row < to; ++row, at += length_) __builtin_prefetch(at);
    }

    template <bool Whole>
    __attribute__((noinline)) void blur_columns(int first, int64_t n) {
        const int top = first - radius, begin = std::max(top, 0), end = std::min(top + around, p_.height);
        ask_for(p_.render, std::max(begin, first + radius), end, n);
        ask_for(target(), std::max(begin, first + radius), end, n);
        Vector rows[field_count][around];
        const auto fill = [&](int k, Vector x, Vector y) {
            rows[0][k] = x;
            rows[1][k] = y;
            rows[2][k] = fused(x, x, y * y);
            rows[3][k] = x * y;
        };
        for (int row = top; row < begin; ++row) fill(row - top, Vector{}, Vector{});
        const Real* x = p_.render + begin * length_;
        const Target* y = target() + begin * length_;
        for (int row = begin; row < end; ++row, x += length_, y += length_)
            fill(row - top, numbers_at<Whole>(x, n), target_at<Whole>(y, n));
        for (int row = std::max(begin, end); row < top + around; ++row) fill(row - top, Vector{}, Vector{});
        const Window<Vector> weights = weights_;
        Real* to = fields_at(n);
        for (int f = 0; f < field_count; ++f)
            for (int batch = 0; batch < batches; ++batch) {
                Vector blurred[width];
                const Vector* from = rows[f] + batch * width;
#pragma GCC unroll 4
                for (int k = 0; k < width; k += at_once)
                    blur<at_once>(weights, [&](int tap) { return from[k + tap]; }, blurred + k);
                transpose<Real>(blurred);
#pragma GCC unroll 16
                for (int i = 0; i < width; ++i)
                    store(to + ((i * batches + batch) * field_count + f) * width, blurred[i]);
            }
    }

    // The similarity, and its derivatives, where the fields are there for it; no derivatives beyond the
    // picture.
    void compare(int batch) {
        const int64_t from = chunk_ - reach(), to = from + loss_chunk;
        const int64_t low = std::max(begin_ - margin_ * stride(), int64_t(0));
        const int64_t high = std::min(end_ + margin_ * stride(), length_);
        compare_columns(batch, std::max(from, low), std::min(to, begin_));
        similarities_[batch] += compare_columns(batch, std::max(from, begin_), std::min(to, end_));
        compare_columns(batch, std::max(from, end_), std::min(to, high));
        if (!p_.gradient || batch > 0) return;
        if (from < low) std::fill(derivatives_at(from), derivatives_at(std::min(low, to)), Real(0));
        if (to > high) std::fill(derivatives_at(std::max(high, from)), derivatives_at(to), Real(0));
    }

    // Numbers from, ... below `to`, some of a channel at a time; the sum of their similarities.
    __attribute__((noinline)) Vector compare_columns(int batch, int64_t from, int64_t to) {
        const Window<Vector> weights = weights_;
        Vector sum{};
        int64_t block = from;
        for (; block + compared * stride() <= to; block += compared * stride())
            for (int64_t n = block; n < block + stride(); ++n)
                sum += compare_some<compared>(weights, batch, n);
        for (int64_t n = block; n < to; ++n) sum += compare_some<1>(weights, batch, n);
        return sum;
    }

    // Number n and, with more than one, those of the pixels behind it.
    template <int Count>
    [[gnu::always_inline]] Vector compare_some(const Window<Vector>& weights, int batch, int64_t n) {
        const int64_t pixel = stride() * (field_count * group);
        const Real* at = fields_at(n - reach()) + batch * field_count * width;
        Vector blurred[field_count][Count], sum{};
#pragma GCC unroll 4
        for (int f = 0; f < field_count; ++f)
            blur<Count>(weights, [&](int k) { return load<Vector>(at + k * pixel + f * width); }, blurred[f]);
#pragma GCC unroll 4
        for (int i = 0; i < Count; ++i)
            sum += similarity(batch, n + i * stride(), blurred[0][i], blurred[1][i], blurred[2][i],
                              blurred[3][i]);
        return sum;
    }

    Vector similarity(int batch, int64_t n, Vector x, Vector y, Vector square, Vector product) {
        const Vector c1 = broadcast(Real(ssim_c1)), c2 = broadcast(Real(ssim_c2));
        const Similarity<Vector> s = similarity_of(x, y, square, product, c1, c2);
        if (p_.gradient) {
            Real* to = derivatives_at(n) + batch * derivative_count * width;
            store(to, where(exist_[batch], s.by_mean));
            store(to + width, where(exist_[batch], s.by_square));
            store(to + 2 * width, where(exist_[batch], s.by_product));
        }
        return s.value;
    }

    // What is blurred takes the place of what no later sum reads, five pixels before it.
    __attribute__((noinline)) void blur_across() {
        const Window<Vector> weights = weights_;
        const int64_t from = chunk_ - lag_, to = from + loss_chunk;
        int64_t block = from;
        for (; block + at_once * stride() <= to; block += at_once * stride())
            for (int64_t n = block; n < block + stride(); ++n) blur_derivatives<at_once>(weights, n);
        for (int64_t n = block; n < to; ++n) blur_derivatives<1>(weights, n);
        for (int64_t n = std::max(from, begin_); n < std::min(to, end_); n += width)
            for (int batch = 0; batch < batches; ++batch) turn(n, batch);
    }

    // Of number n and those of the pixels behind it.
    template <int Count>
    [[gnu::always_inline]] void blur_derivatives(const Window<Vector>& weights, int64_t n) {
        const int64_t pixel = stride() * (derivative_count * group);
        Real* at = derivatives_at(n - reach());
#pragma GCC unroll 3
        for (int f = 0; f < derivative_count * batches; ++f) {
            Vector blurred[Count];
            blur<Count>(weights, [&](int k) { return load<Vector>(at + k * pixel + f * width); }, blurred);
#pragma GCC unroll 8
            for (int i = 0; i < Count; ++i) store(at + i * pixel + f * width, blurred[i]);
        }
    }

    // From lanes that are rows to rows of the ring.
    void turn(int64_t n, int batch) {
        const Real* from = derivatives_at(n - reach()) + batch * derivative_count * width;
        Real* to = ring_at(slot_, n) + batch * width * (derivative_count * width);
        for (int f = 0; f < derivative_count; ++f) {
            Vector square[width];
#pragma GCC unroll 16
            for (int i = 0; i < width; ++i)
                square[i] = load<Vector>(from + i * derivative_count * group + f * width);
            transpose<Real>(square);
#pragma GCC unroll 16
            for (int i = 0; i < width; ++i) store(to + (i * derivative_count + f) * width, square[i]);
        }
    }

    // Differences, and the gradient, of the rows whose neighbours' derivatives are in the ring by now.
    void finish(int first) {
        const int from = std::max(first, row_begin_), to = std::min(first + group, row_end_);
        if (from >= to) return;
        Vector by[group * derivative_count];
        for (int64_t n = std::max(chunk_ - lag_, begin_); n < std::min(chunk_ - lag_ + loss_chunk, end_);
             n += width) {
            if (p_.gradient) {
                ask_for(p_.gradient, from, to, n);
                blur_ring(n, by);
            }
            if (n + width <= end_)
                finish_rows<true>(from, to, n, by + (from - first) * derivative_count);
            else
                finish_rows<false>(from, to, n, by + (from - first) * derivative_count);
        }
    }

    // The derivatives, of a group's rows one after the other, blurred downwards.
    __attribute__((noinline)) void blur_ring(int64_t n, Vector* by) const {
        const Real* rows[slots];
        for (int i = 0; i < slots; ++i) rows[i] = ring_at((slot_ + 1 + i) % slots, n);
        constexpr int step = derivative_count * width;
        const Window<Vector> weights = weights_;
        for (int f = 0; f < derivative_count; ++f)
#pragma GCC unroll 4
            for (int k = 0; k < group; k += at_once) {
                Vector blurred[at_once];
                blur<at_once>(
                    weights,
                    [&](int tap) {
                        const int row = k + tap - 2 * radius + (slots - 1) * group;
                        return load<Vector>(rows[row / group] + row % group * step + f * width);
                    },
                    blurred);
#pragma GCC unroll 8
                for (int i = 0; i < at_once; ++i) by[(k + i) * derivative_count + f] = blurred[i];
            }
    }

    template <bool Whole>
    __attribute__((noinline)) void finish_rows(int from, int to, int64_t n, const Vector* by) {
        // Lanes beyond the strip do not count.
        const Mask own = Whole ? Mask{} : lanes_between<Real>(0, 0, int(end_ - n));
        const Vector zero{}, one = broadcast(Real(1));
        const Vector l1 = broadcast(l1_share_), ssim = broadcast(ssim_share_);
        const bool slopes = p_.gradient;
        const int64_t length = length_;
        const Real* x_at = p_.render + from * length;
        const Target* y_at = target() + from * length;
        Real* to_at = slopes ? p_.gradient + from * length + n : nullptr;
        Vector differences = differences_, squares = squares_;
        for (int row = from; row < to; ++row, x_at += length, y_at += length) {
            const Vector x = numbers_at<Whole>(x_at, n), y = target_at<Whole>(y_at, n);
            const Vector off = Whole ? x - y : where(own, x - y);
            const Vector clamped = minimum(maximum(x, zero), one) - y;
            const Vector off_screen = Whole ? clamped : where(own, clamped);
            differences += maximum(off, -off);
            squares = fused(off_screen, off_screen, squares);
            if (!slopes) continue;
            const Vector slope =
                (where(x > y, l1) - where(x < y, l1)) - ssim * similarity_slope(x, y, by[0], by[1], by[2]);
            if (Whole)
                store_anywhere(to_at, slope);
            else
                store_some<Real>(to_at, slope, end_ - n);
            to_at += length;
            by += derivative_count;
        }
        differences_ = differences;
        squares_ = squares;
    }

    // What the next chunk needs of this one moves to where that looks for it.
    void keep() {
        const Real* fields = fields_at(chunk_ + loss_chunk - 2 * reach());
        std::copy(fields, fields + 2 * reach() * (field_count * group), fields_);
        const Real* derivatives = derivatives_at(chunk_ + loss_chunk - lag_ - reach());
        std::copy(derivatives, derivatives + lag_ * (derivative_count * group), derivatives_);
    }

    const LossParams<Real>& p_;
    int row_begin_, row_end_;       // of the picture, and so below
    int64_t begin_, end_, length_;  // numbers of a row
    int64_t margin_;                // pixels around, of which derivatives are needed
    int64_t lag_;                   // of the gradient behind the fields, in whole vectors
    int64_t chunk_;                 // where the fields of a chunk begin
    int slot_ = 0;                  // of the ring, for this group
    Real *fields_, *derivatives_, *ring_;
    Mask exist_[batches];
    Vector similarities_[batches], differences_, squares_;
    Window<Vector> weights_;
    Real l1_share_, ssim_share_;
    LossSums sums_;
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
