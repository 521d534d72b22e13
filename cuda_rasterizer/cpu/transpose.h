// Squares of as many vectors as a vector has lanes, turned over their diagonal.
#pragma once

#include <utility>

#include "simd.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Lanes Pattern::from(lane) of two vectors, those of the second counted on from those of the first.
template <typename Pattern, typename Vector, int... Lane>
inline Vector lanes_by(Vector a, Vector b, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(a, b, Pattern::from(Lane)...);
}

// The lanes whose number has not, or has, the bit `Step`: of the first vector, then of the second.
template <int Width, int Step, bool Has>
struct Halves {
    static constexpr int from(int lane) {
        return (lane & Step ? Width + lane - Step : lane) + (Has ? Step : 0);
    }
};
// Within each four the even, or the odd, lanes of the first vector, then of the second.
template <int Width, bool Odd>
struct EveryOther {
    static constexpr int from(int lane) {
        return (lane & 2 ? Width : 0) + (lane & ~3) + 2 * (lane & 1) + Odd;
    }
};

template <typename First, typename Second, typename Vector>
inline void exchange(Vector& a, Vector& b) {
    constexpr std::make_integer_sequence<int, sizeof(Vector) / sizeof a[0]> lanes;
    const Vector first = lanes_by<First>(a, b, lanes);
    b = lanes_by<Second>(a, b, lanes);
    a = first;
}

// Blocks of Step lanes change places with those of the vectors Step further on, down to the sixteen bytes in
// which every machine can move lanes as it likes.
template <typename Real, int Step>
inline void transpose_blocks(typename Simd<Real>::Vector* v) {
    constexpr int width = Simd<Real>::width, within = 16 / sizeof(Real);
    if constexpr (Step >= within) {
#pragma GCC unroll 16
        for (int i = 0; i < width; ++i)
            if (!(i & Step))
                exchange<Halves<width, Step, false>, Halves<width, Step, true>>(v[i], v[i + Step]);
        transpose_blocks<Real, Step / 2>(v);
    }
}

// Lane i of v[k] becomes lane k of v[i].
template <typename Real>
inline void transpose(typename Simd<Real>::Vector* v) {
    constexpr int width = Simd<Real>::width;
    transpose_blocks<Real, width / 2>(v);
    if constexpr (sizeof(Real) == 8) {
#pragma GCC unroll 16
        for (int i = 0; i < width; i += 2)
            exchange<Halves<width, 1, false>, Halves<width, 1, true>>(v[i], v[i + 1]);
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < width; i += 4) {
            exchange<Halves<width, 2, false>, Halves<width, 2, true>>(v[i], v[i + 1]);
            exchange<Halves<width, 2, false>, Halves<width, 2, true>>(v[i + 2], v[i + 3]);
            exchange<EveryOther<width, false>, EveryOther<width, true>>(v[i], v[i + 2]);
            exchange<EveryOther<width, false>, EveryOther<width, true>>(v[i + 1], v[i + 3]);
            // Now in the order of columns 0, 2, 1, 3.
            std::swap(v[i + 1], v[i + 2]);
        }
    }
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
