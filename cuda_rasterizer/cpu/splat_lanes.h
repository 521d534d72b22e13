// The splats of a vector, one a lane, as projection and its backward read them.
#pragma once

#include <type_traits>

#include "dialect.h"
#include "gaussian_math.h"
#include "params.h"
#include "spherical_harmonics.h"
#include "splat_rows.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Real>
inline Vector3<Lanes<Real>> load_vectors(const Real* array, int64_t stride, const SplatRows<Real>& rows) {
    Lanes<Real> columns[3];
    load_rows<3>(array, stride, rows, columns);
    return load3(columns);
}

template <typename Real>
inline Splat<Lanes<Real>> load_splats(const SplatParams<Real>& p, const SplatRows<Real>& rows) {
    Splat<Lanes<Real>> splats;
    splats.mean = load_vectors(p.means, 3, rows);
    load_rows<4>(p.quaternions, 4, rows, splats.quaternion);
    splats.scale = load_vectors(p.scales, 3, rows);
    load_rows<1>(p.opacities, 1, rows, &splats.opacity);
    activate(p.raw != 0, splats);
    return splats;
}

// The coefficients in use of one vector of splats.
template <int Degree, typename Real>
struct Coefficients {
    static constexpr int rest_size = 3 * ((Degree + 1) * (Degree + 1) - 1);
    Lanes<Real> dc[3], rest[rest_size > 0 ? rest_size : 1];

    Coefficients(const SplatParams<Real>& p, const SplatRows<Real>& rows) {
        load_rows<3>(p.sh_dc, p.sh_dc_stride, rows, dc);
        if constexpr (Degree > 0) load_rows<rest_size>(p.sh_rest, p.sh_rest_stride, rows, rest);
    }
};

// body(degree) with the degree of the harmonics as a constant, so that their loops have a length that the
// compiler knows; -1 with features.
template <typename Body>
void with_degree(int degree, const Body& body) {
    switch (degree) {
        case 0:
            return body(std::integral_constant<int, 0>{});
        case 1:
            return body(std::integral_constant<int, 1>{});
        case 2:
            return body(std::integral_constant<int, 2>{});
        case 3:
            return body(std::integral_constant<int, 3>{});
        default:
            return body(std::integral_constant<int, -1>{});
    }
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
