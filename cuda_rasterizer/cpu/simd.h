// One vector of the machine's own width, on GCC's vector types: arithmetic and comparisons are operators.
//
// Only what those types lack is spelled out here: fused multiply-add, the exponential, tests of a mask.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
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

template <typename Real>
struct Simd;

template <>
struct Simd<float> {
    using Vector = float __attribute__((vector_size(vector_bytes)));
    using Integer = int32_t;
    using Mask = Integer __attribute__((vector_size(vector_bytes)));
    static constexpr int width = vector_bytes / 4;
};

template <>
struct Simd<double> {
    using Vector = double __attribute__((vector_size(vector_bytes)));
    using Integer = int64_t;
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
#else
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
    return a * b + c;
}
inline DoubleVector fused(DoubleVector a, DoubleVector b, DoubleVector c) {
    return a * b + c;
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

template <typename Real>
inline typename Simd<Real>::Vector broadcast(Real value) {
    // x - 0 is x even for -0, so this costs no operation; x + 0 would.
    return value - typename Simd<Real>::Vector{};
}

template <typename Vector, typename Real>
inline Vector load(const Real* from) {
    return *reinterpret_cast<const Vector*>(from);
}

template <typename Vector, typename Real>
inline void store(Real* to, Vector value) {
    *reinterpret_cast<Vector*>(to) = value;
}

// e^x for x in about [-87, 0]: below, the result of -87. Relative error 1.1e-7 plus rounding: 2^n e^r with
// |r| <= ln 2 / 2 and a minimax polynomial of degree 5 (fitted by us).
inline FloatVector exponential(FloatVector x) {
    const FloatVector lowest = broadcast(-87.0f);
    x = x < lowest ? lowest : x;
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const FloatVector magic = broadcast(12582912.0f);
    const FloatVector shifted = fused(x, broadcast(1.44269504089f), magic);
    const FloatVector n = shifted - magic;
    const FloatVector r = fused(n, broadcast(-0.693147180560f), x);
    FloatVector p = fused(broadcast(0.00831252f), r, broadcast(0.04189011f));
    p = fused(p, r, broadcast(0.16667114f));
    p = fused(p, r, broadcast(0.49999232f));
    p = fused(p, r, broadcast(1.0f));
    p = fused(p, r, broadcast(1.0f));
    return (FloatVector)((FloatMask)p + ((FloatMask)shifted << 23));
}

inline DoubleVector exponential(DoubleVector x) {
    for (int i = 0; i < Simd<double>::width; ++i) x[i] = std::exp(x[i]);
    return x;
}

// The sum of all lanes, always in the same order.
template <typename Real>
inline Real sum_of(typename Simd<Real>::Vector v) {
    Real lanes[Simd<Real>::width];
    __builtin_memcpy(lanes, &v, sizeof lanes);
    for (int half = Simd<Real>::width / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
