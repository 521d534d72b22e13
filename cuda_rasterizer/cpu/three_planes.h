// Between pixels of three numbers in a row and a vector for each of the three.
#pragma once

#include <utility>

#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Where number `n` of three vectors in a row comes from while two of them are shuffled, and when the third
// joins.
constexpr int of_two(int n, int width) {
    return n < 2 * width ? n : 0;
}
constexpr int with_third(int lane, int n, int width) {
    return n < 2 * width ? lane : n - width;
}

template <int Plane, typename Vector, int... Lane>
inline Vector plane_of_three(Vector a, Vector b, Vector c, std::integer_sequence<int, Lane...>) {
    constexpr int width = sizeof...(Lane);
    const Vector two = __builtin_shufflevector(a, b, of_two(3 * Lane + Plane, width)...);
    return __builtin_shufflevector(two, c, with_third(Lane, 3 * Lane + Plane, width)...);
}

// Lane i of planes[c] is from[3 i + c].
template <typename Real>
inline void split_three(const Real* from, typename Simd<Real>::Vector* planes) {
    using Vector = typename Simd<Real>::Vector;
    constexpr std::make_integer_sequence<int, Simd<Real>::width> lanes;
    const Vector a = load_anywhere<Vector>(from), b = load_anywhere<Vector>(from + Simd<Real>::width),
                 c = load_anywhere<Vector>(from + 2 * Simd<Real>::width);
    planes[0] = plane_of_three<0>(a, b, c, lanes);
    planes[1] = plane_of_three<1>(a, b, c, lanes);
    planes[2] = plane_of_three<2>(a, b, c, lanes);
}

// Lane i of part `Part` is number n = Part * width + i of the whole, which is lane n / 3 of plane n % 3.
template <int Part, typename Vector, int... Lane>
inline Vector part_of_three(const Vector* planes, std::integer_sequence<int, Lane...>) {
    constexpr int width = sizeof...(Lane);
    const Vector two = __builtin_shufflevector(
        planes[0], planes[1], ((Part * width + Lane) / 3 + (Part * width + Lane) % 3 % 2 * width)...);
    return __builtin_shufflevector(
        two, planes[2], ((Part * width + Lane) % 3 == 2 ? width + (Part * width + Lane) / 3 : Lane)...);
}

// to[3 i + c] is lane i of planes[c].
template <typename Real>
inline void join_three(Real* to, const typename Simd<Real>::Vector* planes) {
    constexpr int width = Simd<Real>::width;
    constexpr std::make_integer_sequence<int, width> lanes;
    store_anywhere(to, part_of_three<0>(planes, lanes));
    store_anywhere(to + width, part_of_three<1>(planes, lanes));
    store_anywhere(to + 2 * width, part_of_three<2>(planes, lanes));
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
