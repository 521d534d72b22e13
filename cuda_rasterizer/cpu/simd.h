// One vector of the machine's own width, on GCC's vector types: arithmetic and comparisons are operators.
//
// Only what those types lack is spelled out here: fused multiply-add, the exponential, tests of a mask.
#pragma once

#include <cmath>
#include <cstdint>

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

// 0, 1, 2, ...
template <typename Vector>
inline Vector lane_numbers() {
    Vector numbers{};
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) numbers[i] = i;
    return numbers;
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

// e^x for each x in [-87, 0], anything outside. Relative error 1.1e-7 plus rounding: 2^n 2^r with |r| <= 1/2
// and a polynomial of degree 5 (fitted by us), in pairs since a chain of five would be waited for.
template <int Count>
inline void exponentials_abreast(const FloatVector* x, FloatVector* results) {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const FloatVector magic = broadcast(12582912.0f), log2_of_e = broadcast(1.44269504089f);
    FloatVector shifted[Count], r[Count], square[Count], low[Count], middle[Count], p[Count];
    // A step of each, as they wait for their own last one only.
    const auto each = [](const auto& step) {
#pragma GCC unroll 8
        for (int i = 0; i < Count; ++i) step(i);
    };
    each([&](int i) { shifted[i] = fused(x[i], log2_of_e, magic); });
    each([&](int i) { r[i] = magic - shifted[i]; });
    each([&](int i) { r[i] = fused(x[i], log2_of_e, r[i]); });
    each([&](int i) { square[i] = r[i] * r[i]; });
    each([&](int i) { p[i] = fused(broadcast(0.00132647f), r[i], broadcast(0.00967151f)); });
    each([&](int i) { middle[i] = fused(broadcast(0.0555073398f), r[i], broadcast(0.240222421f)); });
    each([&](int i) { low[i] = fused(broadcast(0.693146976f), r[i], broadcast(1.0f)); });
    each([&](int i) { p[i] = fused(p[i], square[i], middle[i]); });
    each([&](int i) { p[i] = fused(p[i], square[i], low[i]); });
    each([&](int i) { results[i] = (FloatVector)((FloatMask)p[i] + ((FloatMask)shifted[i] << 23)); });
}
template <int Count>
inline void exponentials(const FloatVector* x, FloatVector* results) {
    constexpr int first = !many_registers ? 1 : Count < 4 ? Count : 4;
    exponentials_abreast<first>(x, results);
    if constexpr (Count > first) exponentials<Count - first>(x + first, results + first);
}
template <int Count>
inline void exponentials(const DoubleVector* x, DoubleVector* results) {
    for (int i = 0; i < Count; ++i) {
        DoubleVector result = x[i];
        for (int lane = 0; lane < Simd<double>::width; ++lane) result[lane] = std::exp(result[lane]);
        results[i] = result;
    }
}
template <typename Vector>
inline Vector exponential(Vector x) {
    Vector result;
    exponentials<1>(&x, &result);
    return result;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
