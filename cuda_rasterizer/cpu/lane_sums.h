// Sums of all lanes of one vector, or of several at once.
#pragma once

#include <utility>

#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Vector, int... I>
inline auto sum_of_lanes(Vector v, std::integer_sequence<int, I...>) {
    constexpr int half = sizeof...(I);
    if constexpr (half == 1)
        return v[0] + v[1];
    else
        return sum_of_lanes(
            __builtin_shufflevector(v, v, I...) + __builtin_shufflevector(v, v, (I + half)...),
            std::make_integer_sequence<int, half / 2>());
}

// The sum of all lanes, always in the same order: halves are added until one lane is left.
template <typename Real>
inline Real sum_of(typename Simd<Real>::Vector v) {
    return sum_of_lanes(v, std::make_integer_sequence<int, Simd<Real>::width / 2>());
}

#if defined(__AVX512F__)
// Eight vectors at once: their sums fall into place while they are transposed.
inline void sums_of_eight(const FloatVector* v, float* out) {
    FloatVector halves[4], quarters[2];
    for (int i = 0; i < 4; ++i)
        halves[i] =
            __builtin_shufflevector(v[i], v[i + 4], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
            __builtin_shufflevector(v[i], v[i + 4], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                    31);
    // Vectors i, i + 4, i + 2, i + 6: four lanes each.
    for (int i = 0; i < 2; ++i)
        quarters[i] = __builtin_shufflevector(halves[i], halves[i + 2], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18,
                                              19, 24, 25, 26, 27) +
                      __builtin_shufflevector(halves[i], halves[i + 2], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21,
                                              22, 23, 28, 29, 30, 31);
    const FloatVector eighths = __builtin_shufflevector(quarters[0], quarters[1], 0, 1, 16, 17, 4, 5, 20, 21,
                                                        8, 9, 24, 25, 12, 13, 28, 29) +
                                __builtin_shufflevector(quarters[0], quarters[1], 2, 3, 18, 19, 6, 7, 22, 23,
                                                        10, 11, 26, 27, 14, 15, 30, 31);
    const auto sums = __builtin_shufflevector(eighths, eighths, 0, 2, 8, 10, 4, 6, 12, 14) +
                      __builtin_shufflevector(eighths, eighths, 1, 3, 9, 11, 5, 7, 13, 15);
    __builtin_memcpy(out, &sums, sizeof sums);
}
#elif defined(__AVX2__)
// Eight vectors at once: their sums fall into place while they are transposed.
inline void sums_of_eight(const FloatVector* v, float* out) {
    FloatVector halves[4], quarters[2];
    for (int i = 0; i < 4; ++i)
        halves[i] =
            _mm256_permute2f128_ps(v[i], v[i + 4], 0x20) + _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
    for (int i = 0; i < 2; ++i)
        quarters[i] = _mm256_shuffle_ps(halves[i], halves[i + 2], 0x44) +
                      _mm256_shuffle_ps(halves[i], halves[i + 2], 0xee);
    // Two lanes each of vectors 0, 2 and 1, 3 in the lower half, 4, 6 and 5, 7 in the upper one.
    const FloatVector sums =
        _mm256_shuffle_ps(quarters[0], quarters[1], 0x88) + _mm256_shuffle_ps(quarters[0], quarters[1], 0xdd);
    _mm256_storeu_ps(out, _mm256_permute_ps(sums, 0xd8));
}
#endif

#if defined(__aarch64__)
inline void sums_of_four(const FloatVector* v, float* out) {
    vst1q_f32(out, vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3])));
}
#endif

// out[i] is the sum of all lanes of v[i].
template <typename Real>
inline void sums_of(const typename Simd<Real>::Vector* v, int count, Real* out) {
    int i = 0;
#if defined(__AVX2__)
    if constexpr (sizeof(Real) == sizeof(float))
        for (; i + 8 <= count; i += 8) sums_of_eight(v + i, out + i);
#elif defined(__aarch64__)
    if constexpr (sizeof(Real) == sizeof(float))
        for (; i + 4 <= count; i += 4) sums_of_four(v + i, out + i);
#endif
    for (; i < count; ++i) out[i] = sum_of<Real>(v[i]);
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
