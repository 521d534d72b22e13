// Structural similarity (Wang et al. 2004, eq. 13) of one neighbourhood, with its derivatives.
//
// As the variances enter only by their sum, four blurred fields do: x, y, x^2 + y^2, x y. The derivatives are
// blurred once more, the window being symmetric: dS/dx = blur(dS/dmu) + 2 x blur(dS/dq) + y blur(dS/dr).
#pragma once

#include "constants.h"
#include "vector_math.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Real>
struct Similarity {
    Real value;
    Real by_mean, by_square, by_product;  // by the blurred x, x^2 + y^2, x y
};

template <typename Real>
SPLATSCOPE_FUNCTION Similarity<Real> similarity_of(Real mean_x, Real mean_y, Real square, Real product) {
    const Real squares = mean_x * mean_x + mean_y * mean_y, means = mean_x * mean_y;
    const Real a1 = 2 * means + Real(ssim_c1), a2 = 2 * (product - means) + Real(ssim_c2);
    const Real b1 = squares + Real(ssim_c1), b2 = square - squares + Real(ssim_c2);
    const Real inverse = reciprocal(b1 * b2);
    const Real value = a1 * a2 * inverse;
    const Real inverse_b1 = b2 * inverse, inverse_b2 = b1 * inverse;
    return {value, 2 * mean_y * (a2 - a1) * inverse + 2 * mean_x * value * (inverse_b2 - inverse_b1),
            -value * inverse_b2, 2 * a1 * inverse};
}

// Of a render x and a target y, from the blurred derivatives: by x, of (1 - w) |x - y| - w S.
template <typename Real>
SPLATSCOPE_FUNCTION Real loss_slope(Real x, Real y, Real by_mean, Real by_square, Real by_product,
                                    Real l1_share, Real ssim_share) {
    const Real sign = Real(x > y) - Real(x < y);
    return l1_share * sign - ssim_share * (by_mean + 2 * x * by_square + y * by_product);
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
