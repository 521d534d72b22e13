// What the loss does with single vectors: bytes read as numbers, two blurs at once, masks of lanes.
#pragma once

#include <cstdint>

#include "constants.h"
#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

inline FloatVector reciprocal(FloatVector x) {
    return broadcast(1.0f) / x;
}
inline DoubleVector reciprocal(DoubleVector x) {
    return broadcast(1.0) / x;
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

// Numbers n, n + 1 ... of a row of so many, zeros where it has none.
template <typename Real, typename Number>
__attribute__((noinline)) typename Simd<Real>::Vector numbers_within(const Number* row, int64_t n,
                                                                     int64_t length) {
    typename Simd<Real>::Vector v{};
    for (int i = 0; i < Simd<Real>::width; ++i)
        if (n + i >= 0 && n + i < length) v[i] = Real(row[n + i]);
    return v;
}

// The first `count` lanes.
template <typename Real>
__attribute__((noinline)) void store_some(Real* to, typename Simd<Real>::Vector v, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = v[i];
}

// The weights from the centre outwards. Loops copy them into a variable of their own, which stays in
// registers: in an object each store might change them, and they would be read anew.
template <typename Vector>
struct Window {
    Vector of[ssim_radius + 1];
};

// Sums of the window that are worked out side by side, a term of each after the other: a machine looks only
// so far ahead, and is to find there what waits for nothing. With AVX-512 a sum takes 3.2 cycles so, and 5.9
// where two at a time are done with first.
constexpr int sums_at_once = many_registers ? 8 : 4;

// Sums of the window as it slides: blurred[i] over at(i) to at(i + 2 ssim_radius).
template <int Count, typename Vector, typename Read>
inline void blur(const Window<Vector>& weights, const Read& at, Vector* blurred) {
    Vector sums[Count];
#pragma GCC unroll 8
    for (int i = 0; i < Count; ++i) sums[i] = weights.of[ssim_radius] * (at(i) + at(i + 2 * ssim_radius));
#pragma GCC unroll 8
    for (int k = 1; k < ssim_radius; ++k)
#pragma GCC unroll 8
        for (int i = 0; i < Count; ++i)
            sums[i] = fused(weights.of[ssim_radius - k], at(i + k) + at(i + 2 * ssim_radius - k), sums[i]);
#pragma GCC unroll 8
    for (int i = 0; i < Count; ++i) blurred[i] = fused(weights.of[0], at(i + ssim_radius), sums[i]);
}

// The lanes i for which first + i is not below `from`, but below `to`.
template <typename Real>
inline typename Simd<Real>::Mask lanes_between(int first, int from, int to) {
    using Integer = typename Simd<Real>::Integer;
    const auto numbers = lane_numbers<typename Simd<Real>::Mask>() + Integer(first);
    return (numbers >= Integer(from)) & (numbers < Integer(to));
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
