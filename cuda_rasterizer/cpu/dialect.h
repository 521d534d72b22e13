// The words that the shared formulas are written in, on the CPU, as cuda/dialect.h has them for CUDA;
// included before them. A number (`Lanes`) is one for each of as many splats as a register has lanes.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "simd.h"

#define SPLATSCOPE_FUNCTION inline __attribute__((always_inline))

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Real>
struct LaneMask {
    typename Simd<Real>::Mask mask;

    friend SPLATSCOPE_FUNCTION LaneMask operator&(LaneMask a, LaneMask b) { return {a.mask & b.mask}; }
    friend SPLATSCOPE_FUNCTION LaneMask operator|(LaneMask a, LaneMask b) { return {a.mask | b.mask}; }
};

template <typename Real>
struct Lanes {
    using Vector = typename Simd<Real>::Vector;
    static constexpr int width = Simd<Real>::width;

    Vector vector;

    Lanes() = default;
    SPLATSCOPE_FUNCTION Lanes(Vector value) : vector(value) {}
    template <typename Number, std::enable_if_t<std::is_arithmetic<Number>::value, int> = 0>
    SPLATSCOPE_FUNCTION Lanes(Number value) : vector(broadcast(Real(value))) {}

    friend SPLATSCOPE_FUNCTION Lanes operator+(Lanes a, Lanes b) { return a.vector + b.vector; }
    friend SPLATSCOPE_FUNCTION Lanes operator-(Lanes a, Lanes b) { return a.vector - b.vector; }
    friend SPLATSCOPE_FUNCTION Lanes operator*(Lanes a, Lanes b) { return a.vector * b.vector; }
    friend SPLATSCOPE_FUNCTION Lanes operator/(Lanes a, Lanes b) { return a.vector / b.vector; }
    friend SPLATSCOPE_FUNCTION Lanes operator-(Lanes a) { return -a.vector; }
    SPLATSCOPE_FUNCTION Lanes& operator+=(Lanes other) {
        vector += other.vector;
        return *this;
    }

    friend SPLATSCOPE_FUNCTION LaneMask<Real> operator<(Lanes a, Lanes b) { return {a.vector < b.vector}; }
    friend SPLATSCOPE_FUNCTION LaneMask<Real> operator>(Lanes a, Lanes b) { return {a.vector > b.vector}; }
    friend SPLATSCOPE_FUNCTION LaneMask<Real> operator<=(Lanes a, Lanes b) { return {a.vector <= b.vector}; }
    friend SPLATSCOPE_FUNCTION LaneMask<Real> operator>=(Lanes a, Lanes b) { return {a.vector >= b.vector}; }
    friend SPLATSCOPE_FUNCTION LaneMask<Real> operator==(Lanes a, Lanes b) { return {a.vector == b.vector}; }
};

template <typename Real>
SPLATSCOPE_FUNCTION bool none_of(LaneMask<Real> holds) {
    return lanes_of(holds.mask) == 0;
}
template <typename Real>
SPLATSCOPE_FUNCTION Lanes<Real> select(LaneMask<Real> holds, Lanes<Real> a, Lanes<Real> b) {
    return Lanes<Real>(holds.mask ? a.vector : b.vector);
}
template <typename Real>
SPLATSCOPE_FUNCTION Lanes<Real> square_root(Lanes<Real> x) {
    return square_root(x.vector);
}
template <typename Real>
SPLATSCOPE_FUNCTION Lanes<Real> ceiling(Lanes<Real> x) {
    return ceiling(x.vector);
}

// The bits of float lanes, and back.
using LaneBits = uint32_t __attribute__((vector_size(vector_bytes)));

SPLATSCOPE_FUNCTION LaneBits float_bits(Lanes<float> x) {
    return (LaneBits)x.vector;
}
SPLATSCOPE_FUNCTION Lanes<float> bits_float(LaneBits bits) {
    return (FloatVector)bits;
}

// Of double the C library's, one lane after the other: only tests are in double.
inline Lanes<double> portable_exponential(Lanes<double> x) {
    for (int i = 0; i < x.width; ++i) x.vector[i] = std::exp(x.vector[i]);
    return x;
}
inline Lanes<double> portable_logarithm(Lanes<double> x) {
    for (int i = 0; i < x.width; ++i) x.vector[i] = std::log(x.vector[i]);
    return x;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
