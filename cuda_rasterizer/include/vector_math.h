// Numbers and vectors of three, in words that the CPU's compilers and CUDA's have in common.
//
// A number (`Real`) is a float, a double, or as many of either as fit a register (cpu/dialect.h). So that one
// formula serves them all, it compares to a `Mask` and chooses with `select` where it might have branched.
#pragma once

#ifndef SPLATSCOPE_ISA
#define SPLATSCOPE_ISA portable
#endif

#ifndef SPLATSCOPE_FUNCTION  // which cuda/dialect.h and cpu/dialect.h define, together with their words
#define SPLATSCOPE_FUNCTION inline

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Real>
inline Real reciprocal(Real x) {
    return Real(1) / x;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
#endif

namespace splatscope {
namespace SPLATSCOPE_ISA {

// What a comparison gives: bool, or one for each lane.
template <typename Real>
using Mask = decltype(Real() < Real());

SPLATSCOPE_FUNCTION bool none_of(bool holds) {
    return !holds;
}
template <typename Real>
SPLATSCOPE_FUNCTION Real select(bool holds, Real a, Real b) {
    return holds ? a : b;
}
template <typename Real>
SPLATSCOPE_FUNCTION Mask<Real> is_finite(Real value) {
    return value - value == Real(0);
}

template <typename Real>
struct Vector3 {
    Real x, y, z;
};

template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> load3(const Real* p) {
    return {p[0], p[1], p[2]};
}
template <typename Real>
SPLATSCOPE_FUNCTION Real dot(const Vector3<Real>& a, const Vector3<Real>& b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> cross(const Vector3<Real>& a, const Vector3<Real>& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> times(const Vector3<Real>& a, const Vector3<Real>& b) {
    return {a.x * b.x, a.y * b.y, a.z * b.z};
}
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> combine(Real s, const Vector3<Real>& a, Real t, const Vector3<Real>& b) {
    return {s * a.x + t * b.x, s * a.y + t * b.y, s * a.z + t * b.z};
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
