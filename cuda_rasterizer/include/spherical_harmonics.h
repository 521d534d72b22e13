// Colour from spherical harmonics, with its gradient beside it.
//
// The degree comes as an argument. Where it is a constant, as in the CUDA kernels, every loop unrolls and the
// small arrays live in registers.
#pragma once

#include "constants.h"
#include "gaussian_math.h"
#include "vector_math.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

SPLATSCOPE_FUNCTION int sh_coefficients(int degree) {
    return (degree + 1) * (degree + 1);
}

// The basis in the unit direction d.
template <typename Real>
SPLATSCOPE_FUNCTION void spherical_harmonics_basis(int degree, const Vector3<Real>& d, Real* basis) {
    const Real x = d.x, y = d.y, z = d.z;
    basis[0] = Real(sh_band_0);
    if (degree < 1) return;
    const Real c1 = Real(sh_band_1);
    basis[1] = -c1 * y;
    basis[2] = c1 * z;
    basis[3] = -c1 * x;
    if (degree < 2) return;
    constexpr double k[] = {sh_band_2[0], sh_band_2[1], sh_band_2[2], sh_band_2[3], sh_band_2[4]};
    const Real xx = x * x, yy = y * y, zz = z * z;
    basis[4] = Real(k[0]) * x * y;
    basis[5] = Real(k[1]) * y * z;
    basis[6] = Real(k[2]) * (2 * zz - xx - yy);
    basis[7] = Real(k[3]) * x * z;
    basis[8] = Real(k[4]) * (xx - yy);
    if (degree < 3) return;
    constexpr double m[] = {sh_band_3[0], sh_band_3[1], sh_band_3[2], sh_band_3[3],
                            sh_band_3[4], sh_band_3[5], sh_band_3[6]};
    basis[9] = Real(m[0]) * y * (3 * xx - yy);
    basis[10] = Real(m[1]) * x * y * z;
    basis[11] = Real(m[2]) * y * (4 * zz - xx - yy);
    basis[12] = Real(m[3]) * z * (2 * zz - 3 * xx - 3 * yy);
    basis[13] = Real(m[4]) * x * (4 * zz - xx - yy);
    basis[14] = Real(m[5]) * z * (xx - yy);
    basis[15] = Real(m[6]) * x * (xx - 3 * yy);
}

// The derivative by d of the sum of w[k] basis[k].
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> spherical_harmonics_slope(int degree, const Vector3<Real>& d,
                                                            const Real* w) {
    const Real x = d.x, y = d.y, z = d.z;
    if (degree < 1) return {Real(0), Real(0), Real(0)};
    const Real c1 = Real(sh_band_1);
    Vector3<Real> slope = {-c1 * w[3], -c1 * w[1], c1 * w[2]};
    if (degree < 2) return slope;
    const Real w4 = Real(sh_band_2[0]) * w[4], w5 = Real(sh_band_2[1]) * w[5];
    const Real w6 = 2 * Real(sh_band_2[2]) * w[6], w7 = Real(sh_band_2[3]) * w[7];
    const Real w8 = 2 * Real(sh_band_2[4]) * w[8];
    slope.x += y * w4 - x * w6 + z * w7 + x * w8;
    slope.y += x * w4 + z * w5 - y * w6 - y * w8;
    slope.z += y * w5 + 2 * z * w6 + x * w7;
    if (degree < 3) return slope;
    const Real xx = x * x, yy = y * y, zz = z * z;
    const Real w9 = 3 * Real(sh_band_3[0]) * w[9], w10 = Real(sh_band_3[1]) * w[10];
    const Real w11 = Real(sh_band_3[2]) * w[11], w12 = 3 * Real(sh_band_3[3]) * w[12];
    const Real w13 = Real(sh_band_3[4]) * w[13], w14 = Real(sh_band_3[5]) * w[14];
    const Real w15 = 3 * Real(sh_band_3[6]) * w[15];
    slope.x += 2 * x * y * w9 + y * z * w10 - 2 * x * y * w11 - 2 * x * z * w12 +
               (4 * zz - 3 * xx - yy) * w13 + 2 * x * z * w14 + (xx - yy) * w15;
    slope.y += (xx - yy) * w9 + x * z * w10 + (4 * zz - xx - 3 * yy) * w11 - 2 * y * z * w12 -
               2 * x * y * w13 - 2 * y * z * w14 - 2 * x * y * w15;
    slope.z += x * y * w10 + 8 * y * z * w11 + (2 * zz - xx - yy) * w12 + 8 * x * z * w13 + (xx - yy) * w14;
    return slope;
}

// Unit direction from the camera's centre to the mean, and the inverse of their distance.
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> view_direction(const Camera<Real>& camera, const Vector3<Real>& mean,
                                                 Real& inverse_distance) {
    const Vector3<Real> d = {mean.x - camera.centre.x, mean.y - camera.centre.y, mean.z - camera.centre.z};
    inverse_distance = Real(1) / square_root(dot(d, d));
    return {d.x * inverse_distance, d.y * inverse_distance, d.z * inverse_distance};
}

// From the direction to the mean and the camera; adds.
template <typename Real>
SPLATSCOPE_FUNCTION void view_direction_backward(const Camera<Real>& camera, const Vector3<Real>& d,
                                                 Real inverse_distance, const Vector3<Real>& grad_direction,
                                                 Vector3<Real>& grad_mean,
                                                 CameraGradient<Real>& grad_camera) {
    const Real radial = dot(grad_direction, d);
    const Vector3<Real> grad = combine(inverse_distance, grad_direction, -radial * inverse_distance, d);
    grad_mean = combine(Real(1), grad_mean, Real(1), grad);
    // centre = -R^T t, and the direction falls as the centre moves.
    const Vector3<Real>& t = camera.translation;
    grad_camera.row[0] = combine(Real(1), grad_camera.row[0], t.x, grad);
    grad_camera.row[1] = combine(Real(1), grad_camera.row[1], t.y, grad);
    grad_camera.row[2] = combine(Real(1), grad_camera.row[2], t.z, grad);
    grad_camera.translation.x += dot(camera.row[0], grad);
    grad_camera.translation.y += dot(camera.row[1], grad);
    grad_camera.translation.z += dot(camera.row[2], grad);
}

// SH + 0.5 per channel, before the clamp at 0: of the constant coefficients `dc` and the `rest`.
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> spherical_harmonics_sum(int degree, const Real* basis, const Real* dc,
                                                          const Real* rest) {
    Vector3<Real> color = {basis[0] * dc[0] + Real(0.5), basis[0] * dc[1] + Real(0.5),
                           basis[0] * dc[2] + Real(0.5)};
    const int count = sh_coefficients(degree);
    for (int k = 1; k < count; ++k) {
        color.x += basis[k] * rest[3 * k - 3];
        color.y += basis[k] * rest[3 * k - 2];
        color.z += basis[k] * rest[3 * k - 1];
    }
    return color;
}

// Gives the derivative by the direction, and zeroes what comes back for channels that were clamped: the
// gradient of coefficient k is then basis[k] times `grad_color`.
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> spherical_harmonics_backward(int degree, const Vector3<Real>& d,
                                                               const Real* basis, const Real* dc,
                                                               const Real* rest, Vector3<Real>& grad_color) {
    const Vector3<Real> color = spherical_harmonics_sum(degree, basis, dc, rest);
    grad_color.x = select(color.x > Real(0), grad_color.x, Real(0));
    grad_color.y = select(color.y > Real(0), grad_color.y, Real(0));
    grad_color.z = select(color.z > Real(0), grad_color.z, Real(0));
    Real along[maximum_sh_coefficients];
    const int count = sh_coefficients(degree);
    for (int k = 1; k < count; ++k)
        along[k] =
            grad_color.x * rest[3 * k - 3] + grad_color.y * rest[3 * k - 2] + grad_color.z * rest[3 * k - 1];
    return spherical_harmonics_slope(degree, d, along);
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
