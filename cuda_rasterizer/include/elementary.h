// The exponential and the logarithm of float in plain operations, none of them fused, so that every
// instruction set, CUDA and its emulator give the same bits for a splat.
#pragma once

#include "vector_math.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
constexpr float ln2_high = 0.693145751953125f, ln2_low = 1.4286068e-06f;

// e^x, within 2 units in the last place; 0 instead of what is no normal number. Minimax in [-ln 2 / 2, ln 2 /
// 2], fitted by us to 3e-9.
template <typename Real>
SPLATSCOPE_FUNCTION Real portable_exponential(Real x) {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const Real magic = Real(12582912.0f);
    const Real shifted = x * Real(1.44269504f) + magic;
    const Real n = shifted - magic;
    const Real r = (x - n * Real(ln2_high)) - n * Real(ln2_low);
    Real p = Real(0.0013814539f) * r + Real(0.008368745f);
    p = p * r + Real(0.04166839f);
    p = p * r + Real(0.16666521f);
    p = p * r + Real(0.49999994f);
    p = p * r * r + r + Real(1);
    Real scaled = bits_float(float_bits(p) + (float_bits(shifted) << 23));
    scaled = select(x < Real(-87.33654f), Real(0), scaled);
    // Above, the product is infinity; and what is not a number stays so.
    return select(x <= Real(88.72283f), scaled, x * Real(3e38f));
}

// ln x of x >= 1, within 2 units in the last place: exponent and mantissa m in [sqrt(1/2), sqrt 2), then
// 2 artanh s of s = (m - 1) / (m + 1), minimax, fitted by us to 1e-9.
template <typename Real>
SPLATSCOPE_FUNCTION Real portable_logarithm(Real x) {
    const auto exponent = (float_bits(x) - 0x3f3504f3u) >> 23;  // of sqrt(1/2)
    const Real m = bits_float(float_bits(x) - (exponent << 23));
    // An integer below 2^23 in the low bits of that number.
    const Real n = bits_float(exponent | 0x4b000000u) - Real(8388608.0f);
    const Real s = (m - Real(1)) / (m + Real(1)), z = s * s;
    const Real p = (Real(0.29872409f) * z + Real(0.39977524f)) * z + Real(0.66666776f);
    const Real of_mantissa = s * (Real(2) + z * p);
    const Real found = n * Real(ln2_high) + (n * Real(ln2_low) + of_mantissa);
    return select(is_finite(x), found, x);
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
