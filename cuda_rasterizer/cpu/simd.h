// One vector of the machine's own width, on GCC's vector types: arithmetic and comparisons are operators.
//
// Only what those types lack is spelled out here: fused multiply-add, the exponential, tests of a mask.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace splatscope {
namespace SPLATSCOPE_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

// 32 vectors in registers, or 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr bool many_registers = true;
#else
constexpr bool many_registers = false;
#endif

template <typename Real>
struct Simd;

template <>
struct Simd<float> {
    using Vector = float __attribute__((vector_size(vector_bytes)));
    using Integer = int32_t;
    using Bits = uint32_t __attribute__((vector_size(vector_bytes)));
    using Mask = Integer __attribute__((vector_size(vector_bytes)));
    static constexpr int width = vector_bytes / 4;
};

template <>
struct Simd<double> {
    using Vector = double __attribute__((vector_size(vector_bytes)));
    using Integer = int64_t;
    using Bits = uint64_t __attribute__((vector_size(vector_bytes)));
    using Mask = Integer __attribute__((vector_size(vector_bytes)));
    static constexpr int width = vector_bytes / 8;
};

using FloatVector = Simd<float>::Vector;
using DoubleVector = Simd<double>::Vector;
using FloatMask = Simd<float>::Mask;
using DoubleMask = Simd<double>::Mask;

// a * b + c, rounded once where the machine can.
#if defined(__AVX512F__)
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
    return _mm512_fmadd_ps(a, b, c);
}
inline DoubleVector fused(DoubleVector a, DoubleVector b, DoubleVector c) {
    return _mm512_fmadd_pd(a, b, c);
}
#elif defined(__AVX2__)
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline DoubleVector fused(DoubleVector a, DoubleVector b, DoubleVector c) {
    return _mm256_fmadd_pd(a, b, c);
}
#elif defined(__aarch64__)
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
    return vfmaq_f32(c, a, b);
}
inline DoubleVector fused(DoubleVector a, DoubleVector b, DoubleVector c) {
    return vfmaq_f64(c, a, b);
}
#else
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
    return a * b + c;
}
inline DoubleVector fused(DoubleVector a, DoubleVector b, DoubleVector c) {
    return a * b + c;
}
#endif

// The smaller and the larger of two; where a is not a number, b.
#if defined(__AVX512F__)
// With a full mask, because GCC 12 believes that the plain forms read something without a value.
inline FloatVector minimum(FloatVector a, FloatVector b) {
    return _mm512_maskz_min_ps(0xffff, a, b);
}
inline DoubleVector minimum(DoubleVector a, DoubleVector b) {
    return _mm512_maskz_min_pd(0xff, a, b);
}
inline FloatVector maximum(FloatVector a, FloatVector b) {
    return _mm512_maskz_max_ps(0xffff, a, b);
}
inline DoubleVector maximum(DoubleVector a, DoubleVector b) {
    return _mm512_maskz_max_pd(0xff, a, b);
}
#elif defined(__AVX2__)
inline FloatVector minimum(FloatVector a, FloatVector b) {
    return _mm256_min_ps(a, b);
}
inline DoubleVector minimum(DoubleVector a, DoubleVector b) {
    return _mm256_min_pd(a, b);
}
inline FloatVector maximum(FloatVector a, FloatVector b) {
    return _mm256_max_ps(a, b);
}
inline DoubleVector maximum(DoubleVector a, DoubleVector b) {
    return _mm256_max_pd(a, b);
}
#elif defined(__SSE2__)
inline FloatVector minimum(FloatVector a, FloatVector b) {
    return _mm_min_ps(a, b);
}
inline DoubleVector minimum(DoubleVector a, DoubleVector b) {
    return _mm_min_pd(a, b);
}
inline FloatVector maximum(FloatVector a, FloatVector b) {
    return _mm_max_ps(a, b);
}
inline DoubleVector maximum(DoubleVector a, DoubleVector b) {
    return _mm_max_pd(a, b);
}
#else
// Arm's own instructions treat what is not a number otherwise.
inline FloatVector minimum(FloatVector a, FloatVector b) {
    return a < b ? a : b;
}
inline DoubleVector minimum(DoubleVector a, DoubleVector b) {
    return a < b ? a : b;
}
inline FloatVector maximum(FloatVector a, FloatVector b) {
    return a > b ? a : b;
}
inline DoubleVector maximum(DoubleVector a, DoubleVector b) {
    return a > b ? a : b;
}
#endif

#if defined(__AVX512F__)
inline FloatVector square_root(FloatVector x) {
    return _mm512_maskz_sqrt_ps(0xffff, x);
}
inline DoubleVector square_root(DoubleVector x) {
    return _mm512_maskz_sqrt_pd(0xff, x);
}
inline FloatVector ceiling(FloatVector x) {
    return _mm512_maskz_roundscale_ps(0xffff, x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
inline DoubleVector ceiling(DoubleVector x) {
    return _mm512_maskz_roundscale_pd(0xff, x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
#elif defined(__AVX2__)
inline FloatVector square_root(FloatVector x) {
    return _mm256_sqrt_ps(x);
}
inline DoubleVector square_root(DoubleVector x) {
    return _mm256_sqrt_pd(x);
}
inline FloatVector ceiling(FloatVector x) {
    return _mm256_ceil_ps(x);
}
inline DoubleVector ceiling(DoubleVector x) {
    return _mm256_ceil_pd(x);
}
#else
template <typename Vector>
inline Vector square_root(Vector x) {
    for (unsigned i = 0; i < sizeof(Vector) / sizeof x[0]; ++i) x[i] = std::sqrt(x[i]);
    return x;
}
template <typename Vector>
inline Vector ceiling(Vector x) {
    for (unsigned i = 0; i < sizeof(Vector) / sizeof x[0]; ++i) x[i] = std::ceil(x[i]);
    return x;
}
#endif

// Bit i of the result is lane i of the mask.
#if defined(__AVX512F__)
inline unsigned lanes_of(FloatMask m) {
    return _mm512_movepi32_mask((__m512i)m);
}
inline unsigned lanes_of(DoubleMask m) {
    return _mm512_movepi64_mask((__m512i)m);
}
#elif defined(__AVX2__)
inline unsigned lanes_of(FloatMask m) {
    return unsigned(_mm256_movemask_ps((__m256)m));
}
inline unsigned lanes_of(DoubleMask m) {
    return unsigned(_mm256_movemask_pd((__m256d)m));
}
#elif defined(__SSE2__)
inline unsigned lanes_of(FloatMask m) {
    return unsigned(_mm_movemask_ps((__m128)m));
}
inline unsigned lanes_of(DoubleMask m) {
    return unsigned(_mm_movemask_pd((__m128d)m));
}
#elif defined(__aarch64__)
inline unsigned lanes_of(FloatMask m) {
    return unsigned(vaddvq_s32(m & FloatMask{1, 2, 4, 8}));
}
inline unsigned lanes_of(DoubleMask m) {
    return unsigned(vaddvq_s64(m & DoubleMask{1, 2}));
}
#else
inline unsigned lanes_of(FloatMask m) {
    unsigned bits = 0;
    for (int i = 0; i < Simd<float>::width; ++i) bits |= unsigned(m[i] != 0) << i;
    return bits;
}
inline unsigned lanes_of(DoubleMask m) {
    unsigned bits = 0;
    for (int i = 0; i < Simd<double>::width; ++i) bits |= unsigned(m[i] != 0) << i;
    return bits;
}
#endif

// lanes_of(a < b); of the mask in between GCC makes a vector even where comparing makes bits.
#if defined(__AVX512F__)
inline unsigned lanes_below(FloatVector a, FloatVector b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
inline unsigned lanes_below(DoubleVector a, DoubleVector b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ);
}
#else
template <typename Vector>
inline unsigned lanes_below(Vector a, Vector b) {
    return lanes_of(a < b);
}
#endif

// In the order of their bits numbers that are not negative stand as they are, below all that have a sign.
template <typename Bits>
inline Bits smaller_bits(Bits a, Bits b) {
    return a < b ? a : b;
}
#if defined(__AVX512F__)
inline bool any_bits_below(Simd<float>::Bits a, Simd<float>::Bits b) {
    return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b) != 0;
}
inline bool any_bits_below(Simd<double>::Bits a, Simd<double>::Bits b) {
    return _mm512_cmplt_epu64_mask((__m512i)a, (__m512i)b) != 0;
}
#else
template <typename Bits>
inline bool any_bits_below(Bits a, Bits b) {
    return lanes_of(a < b) != 0;
}
#endif

template <typename Real>
inline typename Simd<Real>::Vector broadcast(Real value) {
    // x - 0 is x even for -0, so this costs no operation; x + 0 would.
    return value - typename Simd<Real>::Vector{};
}

// a where the mask is set, else 0.
template <typename Vector, typename Mask>
inline Vector where(Mask mask, Vector a) {
    return (Vector)(mask & (Mask)a);
}

// The smaller of two that are not negative, where low <= x <= high; else 0.
#if defined(__AVX512F__)
// Of the mask in between GCC makes a vector, and the bits have the order of the numbers.
inline FloatVector minimum_between(FloatVector x, FloatVector low, FloatVector high, FloatVector a,
                                   FloatVector b) {
    const __mmask16 hit =
        _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ);
    return (FloatVector)_mm512_maskz_min_epi32(hit, (__m512i)a, (__m512i)b);
}
inline DoubleVector minimum_between(DoubleVector x, DoubleVector low, DoubleVector high, DoubleVector a,
                                    DoubleVector b) {
    const __mmask8 hit = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ);
    return _mm512_maskz_min_pd(hit, a, b);
}
#else
template <typename Vector>
inline Vector minimum_between(Vector x, Vector low, Vector high, Vector a, Vector b) {
    return where((x >= low) & (x <= high), minimum(a, b));
}
#endif

template <typename Vector, typename Real>
inline Vector load(const Real* from) {
    return *reinterpret_cast<const Vector*>(from);
}

template <typename Vector, typename Real>
inline void store(Real* to, Vector value) {
    *reinterpret_cast<Vector*>(to) = value;
}

// The same at an address of any alignment.
template <typename Vector, typename Real>
inline Vector load_anywhere(const Real* from) {
    Vector value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <typename Vector, typename Real>
inline void store_anywhere(Real* to, Vector value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// e^x for x in [-87, 0], anything outside. Relative error 1.1e-7 plus rounding: 2^n 2^r with |r| <= 1/2 and a
// polynomial of degree 5 (fitted by us), in pairs since a chain of five would be waited for.
inline FloatVector exponential(FloatVector x) {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const FloatVector magic = broadcast(12582912.0f), log2_of_e = broadcast(1.44269504089f);
    const FloatVector shifted = fused(x, log2_of_e, magic);
    const FloatVector r = fused(x, log2_of_e, magic - shifted), square = r * r;
    const FloatVector low = fused(broadcast(0.693146976f), r, broadcast(1.0f));
    const FloatVector middle = fused(broadcast(0.0555073398f), r, broadcast(0.240222421f));
    const FloatVector high = fused(broadcast(0.00132647f), r, broadcast(0.00967151f));
    const FloatVector p = fused(fused(high, square, middle), square, low);
    return (FloatVector)((FloatMask)p + ((FloatMask)shifted << 23));
}

inline DoubleVector exponential(DoubleVector x) {
    for (int i = 0; i < Simd<double>::width; ++i) x[i] = std::exp(x[i]);
    return x;
}

// The sum of all lanes, always in the same order: halves are added until one lane is left.
template <typename Real>
inline Real sum_of(typename Simd<Real>::Vector v) {
    Real lanes[Simd<Real>::width];
    __builtin_memcpy(lanes, &v, sizeof lanes);
    for (int half = Simd<Real>::width / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
}

#if defined(__AVX2__)
using EightFloats = float __attribute__((vector_size(32)));

inline EightFloats folded(FloatVector v) {
#if defined(__AVX512F__)
    return _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0), _mm512_maskz_extractf32x8_ps(0xff, v, 1));
#else
    return v;
#endif
}

// Eight vectors at once: their sums fall into place while they are transposed.
inline void sums_of_eight(const FloatVector* v, float* out) {
    EightFloats halves[4], quarters[2];
    for (int i = 0; i < 4; ++i) {
        const EightFloats a = folded(v[i]), b = folded(v[i + 4]);
        halves[i] = _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
    }
    for (int i = 0; i < 2; ++i)
        quarters[i] = _mm256_shuffle_ps(halves[i], halves[i + 2], 0x44) +
                      _mm256_shuffle_ps(halves[i], halves[i + 2], 0xee);
    // Two lanes each of vectors 0, 2 and 1, 3 in the lower half, 4, 6 and 5, 7 in the upper one.
    const EightFloats sums =
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
