// What the loss does with single vectors: bytes read as numbers, two blurs at once, masks of lanes.
#pragma once

#include <cstdint>

#include "constants.h"
#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

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

// Two neighbouring sums of the window as it slides over at(0) to at(2 ssim_radius + 1), which are read once.
template <typename Vector, typename Read>
inline void blur_pair(const Vector* weights, const Read& at, Vector& first, Vector& second) {
    Vector low = at(1), high = at(2 * ssim_radius);
    first = weights[ssim_radius] * (at(0) + high);
    second = weights[ssim_radius] * (low + at(2 * ssim_radius + 1));
#pragma GCC unroll 8
    for (int k = 1; k < ssim_radius; ++k) {
        const Vector next_low = at(k + 1), next_high = at(2 * ssim_radius - k);
        first = fused(weights[ssim_radius - k], low + next_high, first);
        second = fused(weights[ssim_radius - k], next_low + high, second);
        low = next_low;
        high = next_high;
    }
    first = fused(weights[0], low, first);
    second = fused(weights[0], high, second);
}

// The lanes i for which first + i is not below `from`, but below `to`.
template <typename Real>
inline typename Simd<Real>::Mask lanes_between(int first, int from, int to) {
    typename Simd<Real>::Mask mask{};
    for (int i = 0; i < Simd<Real>::width; ++i) mask[i] = first + i >= from && first + i < to ? -1 : 0;
    return mask;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
