// Structural similarity (Wang et al. 2004, eq. 13) of one neighbourhood, with its derivatives.
//
// As the variances enter only by their sum, four blurred fields do: x, y, x^2 + y^2, x y. The derivatives are
// blurred once more, the window being symmetric: dS/dx = blur(dS/dmu) + 2 x blur(dS/dq) + y blur(dS/dr).
// A `Number` is one, or the lanes of a vector.
#pragma once

#include "constants.h"
#include "vector_math.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Number>
struct Similarity {
    Number value;
    Number by_mean, by_square, by_product;  // by the blurred x, x^2 + y^2, x y
};

// Of the blurred x, y, x^2 + y^2 and x y; c1 and c2 are `ssim_c1` and `ssim_c2`.
template <typename Number>
SPLATSCOPE_FUNCTION Similarity<Number> similarity_of(Number mean_x, Number mean_y, Number square,
                                                     Number product, Number c1, Number c2) {
    const Number squares = mean_x * mean_x + mean_y * mean_y, means = mean_x * mean_y;
    const Number covariance = product - means;
    const Number a1 = means + means + c1, a2 = covariance + covariance + c2;
    const Number b1 = squares + c1, b2 = square - squares + c2;
    const Number inverse = reciprocal(b1 * b2);
    const Number value = a1 * a2 * inverse;
    const Number inverse_b1 = b2 * inverse, inverse_b2 = b1 * inverse;
    const Number by_mean = mean_y * (a2 - a1) * inverse + mean_x * value * (inverse_b2 - inverse_b1);
    return {value, by_mean + by_mean, -value * inverse_b2, (a1 + a1) * inverse};
}

// Of S by x, from the blurred derivatives.
template <typename Number>
SPLATSCOPE_FUNCTION Number similarity_slope(Number x, Number y, Number by_mean, Number by_square,
                                            Number by_product) {
    return by_mean + (x + x) * by_square + y * by_product;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
