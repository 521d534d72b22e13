// The mathematics of one splat's projection, with its gradient beside it.
//
// Plain functions of numbers, for CUDA a splat at a time and for the CPU as many as a register has lanes;
// nothing here knows of threads or torch, and only `load_camera` and `load_splat` of arrays. Functions give a
// mask of the splats for which what they did means anything. EWA splatting (Zwicker et al. 2001) as 3D
// Gaussian Splatting (Kerbl et al. 2023) uses it. The projected covariance is U U^T + dilation I with U = J W
// R S, and its determinants come from |U0 x U1|^2, which loses no digits for needle-like splats, where a c -
// b^2 does.
#pragma once

#include "constants.h"
#include "elementary.h"
#include "params.h"
#include "vector_math.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// A pinhole camera: rows of the rotation, translation, focal lengths and principal point in pixels; and how
// it draws, the cut-offs of projection in the type of the numbers.
template <typename Real>
struct Camera {
    Vector3<Real> row[3];
    Vector3<Real> translation;
    Vector3<Real> centre;  // -R^T t
    Real fx, fy, cx, cy;
    Real x_low, x_high, y_low, y_high;  // limits of x/z and y/z inside the Jacobian
    Real width, height;
    Real near, dilation, alpha_floor, footprint_cap;
    bool antialiased, raw;
};

template <typename Real, typename Stored>
SPLATSCOPE_FUNCTION Camera<Real> camera_as(const SplatParams<Stored>& p) {
    Camera<Real> camera;
    Real w[12], k[6];
    for (int i = 0; i < 12; ++i) w[i] = Real(p.world_to_camera[i]);
    for (int i = 0; i < 6; ++i) k[i] = Real(p.intrinsics[i]);
    for (int i = 0; i < 3; ++i) camera.row[i] = load3(w + 4 * i);
    camera.translation = {w[3], w[7], w[11]};
    const Vector3<Real>& t = camera.translation;
    camera.centre = {-(camera.row[0].x * t.x + camera.row[1].x * t.y + camera.row[2].x * t.z),
                     -(camera.row[0].y * t.x + camera.row[1].y * t.y + camera.row[2].y * t.z),
                     -(camera.row[0].z * t.x + camera.row[1].z * t.y + camera.row[2].z * t.z)};
    camera.fx = k[0];
    camera.fy = k[4];
    camera.cx = k[2];
    camera.cy = k[5];
    camera.width = Real(p.width);
    camera.height = Real(p.height);
    const Real margin_x = Real(p.cutoffs.j_clamp) * (Real(0.5) * camera.width / camera.fx);
    const Real margin_y = Real(p.cutoffs.j_clamp) * (Real(0.5) * camera.height / camera.fy);
    camera.x_low = -(camera.cx / camera.fx + margin_x);
    camera.x_high = (camera.width - camera.cx) / camera.fx + margin_x;
    camera.y_low = -(camera.cy / camera.fy + margin_y);
    camera.y_high = (camera.height - camera.cy) / camera.fy + margin_y;
    camera.near = Real(p.cutoffs.near);
    camera.dilation = Real(p.cutoffs.dilation);
    camera.alpha_floor = Real(p.cutoffs.alpha_floor);
    camera.footprint_cap = Real(p.cutoffs.footprint_cap);
    camera.antialiased = p.antialiased != 0;
    camera.raw = p.raw != 0;
    return camera;
}

template <typename Real>
SPLATSCOPE_FUNCTION Camera<Real> load_camera(const SplatParams<Real>& p) {
    return camera_as<Real>(p);
}

// A splat as drawing takes it.
template <typename Real>
struct Splat {
    Vector3<Real> mean;
    Real quaternion[4];
    Vector3<Real> scale;
    Real opacity;
};

// Scales and opacity from what was given: as they are, or raw, by their logarithms and logit.
template <typename Real>
SPLATSCOPE_FUNCTION void activate(bool raw, Splat<Real>& splat) {
    if (!raw) return;
    Vector3<Real>& scale = splat.scale;
    scale = {portable_exponential(scale.x), portable_exponential(scale.y), portable_exponential(scale.z)};
    splat.opacity = Real(1) / (Real(1) + portable_exponential(-splat.opacity));
}

template <typename Real>
SPLATSCOPE_FUNCTION Splat<Real> load_splat(const SplatParams<Real>& p, int64_t i) {
    const Real* q = p.quaternions + 4 * i;
    Splat<Real> splat = {
        load3(p.means + 3 * i), {q[0], q[1], q[2], q[3]}, load3(p.scales + 3 * i), p.opacities[i]};
    activate(p.raw != 0, splat);
    return splat;
}

// Everything between a splat and its conic; forward and backward compute it by this one function.
template <typename Real>
struct Footprint {
    Vector3<Real> point;        // camera space
    Vector3<Real> rotation[3];  // rows of R(q / |q|)
    Vector3<Real> t0, t1;       // rows of J W
    Vector3<Real> u0, u1;       // rows of J W R S
    Vector3<Real> normal;       // u0 x u1
    Real q[4];                  // normalised
    Real inverse_norm;
    Real x_ratio, y_ratio;  // x/z and y/z as the Jacobian takes them
    Mask<Real> x_clamped, y_clamped;
    Real a, b, c;  // dilated covariance [[a, b], [b, c]]
    Real determinant_before, determinant;
};

template <typename Real>
SPLATSCOPE_FUNCTION Mask<Real> quaternion_to_rotation(const Real* q_raw, Footprint<Real>& f) {
    const Real norm2 = q_raw[0] * q_raw[0] + q_raw[1] * q_raw[1] + q_raw[2] * q_raw[2] + q_raw[3] * q_raw[3];
    f.inverse_norm = Real(1) / square_root(norm2);
    for (int i = 0; i < 4; ++i) f.q[i] = q_raw[i] * f.inverse_norm;
    const Real w = f.q[0], x = f.q[1], y = f.q[2], z = f.q[3];
    f.rotation[0] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)};
    f.rotation[1] = {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)};
    f.rotation[2] = {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)};
    return (norm2 >= Real(minimum_quaternion_norm_squared)) & is_finite(norm2);
}

template <typename Real>
SPLATSCOPE_FUNCTION Real limited(Real value, Real low, Real high) {
    return select(value < low, low, select(value > high, high, value));
}

// J W R S, a row of it, from a row t of J W.
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> through_rotation_and_scale(const Footprint<Real>& f, const Vector3<Real>& t,
                                                             const Vector3<Real>& scale) {
    const Vector3<Real>* r = f.rotation;
    return {(t.x * r[0].x + t.y * r[1].x + t.z * r[2].x) * scale.x,
            (t.x * r[0].y + t.y * r[1].y + t.z * r[2].y) * scale.y,
            (t.x * r[0].z + t.y * r[1].z + t.z * r[2].z) * scale.z};
}

// Not where the splat is behind the near plane, has no direction, or covers nothing that is finite.
template <typename Real>
SPLATSCOPE_FUNCTION Mask<Real> compute_footprint(const Camera<Real>& camera, const Splat<Real>& splat,
                                                 Footprint<Real>& f) {
    const Vector3<Real>&mean = splat.mean, &scale = splat.scale;
    f.point = {dot(camera.row[0], mean) + camera.translation.x,
               dot(camera.row[1], mean) + camera.translation.y,
               dot(camera.row[2], mean) + camera.translation.z};
    const Real z = f.point.z;
    const Mask<Real> ahead = (z > camera.near) & is_finite(z + f.point.x + f.point.y);
    const Mask<Real> found = ahead & quaternion_to_rotation(splat.quaternion, f);

    const Real x_ratio = f.point.x / z, y_ratio = f.point.y / z;
    f.x_clamped = (x_ratio < camera.x_low) | (x_ratio > camera.x_high);
    f.y_clamped = (y_ratio < camera.y_low) | (y_ratio > camera.y_high);
    f.x_ratio = limited(x_ratio, camera.x_low, camera.x_high);
    f.y_ratio = limited(y_ratio, camera.y_low, camera.y_high);
    const Real jx = camera.fx / z, jy = camera.fy / z;
    f.t0 = combine(jx, camera.row[0], -jx * f.x_ratio, camera.row[2]);
    f.t1 = combine(jy, camera.row[1], -jy * f.y_ratio, camera.row[2]);
    f.u0 = through_rotation_and_scale(f, f.t0, scale);
    f.u1 = through_rotation_and_scale(f, f.t1, scale);

    const Real dilation = camera.dilation;
    const Real variance_x = dot(f.u0, f.u0), variance_y = dot(f.u1, f.u1);
    f.normal = cross(f.u0, f.u1);
    f.determinant_before = dot(f.normal, f.normal);
    f.a = variance_x + dilation;
    f.b = dot(f.u0, f.u1);
    f.c = variance_y + dilation;
    f.determinant = f.determinant_before + dilation * (variance_x + variance_y) + dilation * dilation;
    // Backward divides by it, so that its inverse must be a number too; neither 0 nor what is next to it.
    return found & is_finite(f.determinant) & is_finite(Real(1) / f.determinant);
}

// Factor on the opacity that keeps a splat's energy in spite of the dilation (Mip-Splatting, Yu et al. 2024).
template <typename Real>
SPLATSCOPE_FUNCTION Real antialias_factor(const Footprint<Real>& f) {
    const Real floor = Real(minimum_antialias_factor * minimum_antialias_factor);
    const Real ratio = f.determinant_before / f.determinant;
    return square_root(select(ratio > floor, ratio, floor));
}

template <typename Real>
struct ProjectedSplat {
    Real mean_x, mean_y;
    Real conic[3];
    Real depth, opacity;
    Real radius_x, radius_y;  // whole numbers
};

template <typename Real>
SPLATSCOPE_FUNCTION Real radius_of(Real reach, Real variance) {
    const Real radius = ceiling(reach * square_root(variance)), largest = Real(maximum_radius);
    return select(radius < largest, radius, largest);
}

// Not where the splat is culled; the rules stand in projected.py.
template <typename Real>
SPLATSCOPE_FUNCTION Mask<Real> project_splat(const Camera<Real>& camera, const Splat<Real>& splat,
                                             ProjectedSplat<Real>& out) {
    const Vector3<Real>& scale = splat.scale;
    Footprint<Real> f;
    Mask<Real> seen = is_finite(scale.x + scale.y + scale.z) & is_finite(splat.opacity);
    seen = seen & compute_footprint(camera, splat, f);
    if (none_of(seen)) return seen;
    out.opacity = camera.antialiased ? splat.opacity * antialias_factor(f) : splat.opacity;
    const Real floor = camera.alpha_floor;
    seen = seen & (out.opacity >= floor) & (out.opacity > Real(0));

    out.mean_x = camera.fx * (f.point.x / f.point.z) + camera.cx;
    out.mean_y = camera.fy * (f.point.y / f.point.z) + camera.cy;
    out.depth = f.point.z;
    out.conic[0] = f.c / f.determinant;
    out.conic[1] = -f.b / f.determinant;
    out.conic[2] = f.a / f.determinant;
    seen = seen & is_finite(out.conic[0] + out.conic[1] + out.conic[2] + out.mean_x + out.mean_y);

    const Real reach_of_alpha = square_root(Real(2) * portable_logarithm(out.opacity / floor));
    const Real cap = camera.footprint_cap, reach = select(reach_of_alpha < cap, reach_of_alpha, cap);
    const Real rx = radius_of(reach, f.a), ry = radius_of(reach, f.c);
    out.radius_x = rx;
    out.radius_y = ry;
    return seen & (rx > Real(0)) & (ry > Real(0)) & (out.mean_x + rx > Real(0)) &
           (out.mean_x - rx < camera.width) & (out.mean_y + ry > Real(0)) & (out.mean_y - ry < camera.height);
}

// What comes back from compositing for one splat.
template <typename Real>
struct ProjectedGradient {
    Real mean_x, mean_y;
    Real conic[3];
    Real depth, opacity;
};

template <typename Real>
struct SplatGradient {
    Vector3<Real> mean;
    Real quaternion[4];
    Vector3<Real> scale;
    Real opacity;
};

// Gradient of world_to_camera: three rows of the rotation, and the translation.
template <typename Real>
struct CameraGradient {
    Vector3<Real> row[3];
    Vector3<Real> translation;
};

// From the conic (and the antialiasing factor) to U.
template <typename Real>
SPLATSCOPE_FUNCTION void covariance_backward(const Footprint<Real>& f, const ProjectedGradient<Real>& g,
                                             bool antialiased, Real opacity, Vector3<Real>& grad_u0,
                                             Vector3<Real>& grad_u1, Real& grad_opacity) {
    const Real inverse = Real(1) / f.determinant;
    const Real conic_a = f.c * inverse, conic_b = -f.b * inverse, conic_c = f.a * inverse;
    Real grad_determinant = -(g.conic[0] * conic_a + g.conic[1] * conic_b + g.conic[2] * conic_c) * inverse;
    Real grad_before = Real(0);
    grad_opacity = g.opacity;
    if (antialiased) {
        const Real factor = antialias_factor(f);
        const Real ratio = f.determinant_before * inverse;
        grad_opacity = g.opacity * factor;
        grad_before = select(ratio > Real(minimum_antialias_factor * minimum_antialias_factor),
                             g.opacity * opacity / (Real(2) * factor) * inverse, Real(0));
        grad_determinant = grad_determinant - grad_before * ratio;
    }
    const Real grad_a = g.conic[2] * inverse + grad_determinant * f.c;
    const Real grad_c = g.conic[0] * inverse + grad_determinant * f.a;
    const Real grad_b = -g.conic[1] * inverse - Real(2) * grad_determinant * f.b;
    grad_u0 = combine(Real(2) * grad_a, f.u0, grad_b, f.u1);
    grad_u1 = combine(grad_b, f.u0, Real(2) * grad_c, f.u1);
    if (antialiased) {
        grad_u0 = combine(Real(1), grad_u0, Real(2) * grad_before, cross(f.u1, f.normal));
        grad_u1 = combine(Real(1), grad_u1, Real(2) * grad_before, cross(f.normal, f.u0));
    }
}

// From R to the raw quaternion, through its normalisation: the result is orthogonal to it.
template <typename Real>
SPLATSCOPE_FUNCTION void rotation_backward(const Footprint<Real>& f, const Vector3<Real> grad[3],
                                           Real* grad_quaternion) {
    const Real w = f.q[0], x = f.q[1], y = f.q[2], z = f.q[3];
    Real g[4];
    g[0] = 2 * (x * (grad[2].y - grad[1].z) + y * (grad[0].z - grad[2].x) + z * (grad[1].x - grad[0].y));
    g[1] = 2 * (y * (grad[0].y + grad[1].x) + z * (grad[0].z + grad[2].x) + w * (grad[2].y - grad[1].z) -
                2 * x * (grad[1].y + grad[2].z));
    g[2] = 2 * (x * (grad[0].y + grad[1].x) + z * (grad[1].z + grad[2].y) + w * (grad[0].z - grad[2].x) -
                2 * y * (grad[0].x + grad[2].z));
    g[3] = 2 * (x * (grad[0].z + grad[2].x) + y * (grad[1].z + grad[2].y) + w * (grad[1].x - grad[0].y) -
                2 * z * (grad[0].x + grad[1].y));
    const Real along = w * g[0] + x * g[1] + y * g[2] + z * g[3];
    for (int i = 0; i < 4; ++i) grad_quaternion[i] = (g[i] - along * f.q[i]) * f.inverse_norm;
}

// From the rows of J W and the pixel mean to the camera-space point and the rotation of the camera.
template <typename Real>
SPLATSCOPE_FUNCTION Vector3<Real> camera_point_backward(const Camera<Real>& camera, const Footprint<Real>& f,
                                                        const ProjectedGradient<Real>& g,
                                                        const Vector3<Real>& grad_t0,
                                                        const Vector3<Real>& grad_t1,
                                                        CameraGradient<Real>& grad_camera) {
    const Real inverse_z = Real(1) / f.point.z;
    const Real jx = camera.fx * inverse_z, jy = camera.fy * inverse_z;
    const Real grad_j00 = dot(grad_t0, camera.row[0]), grad_j02 = dot(grad_t0, camera.row[2]);
    const Real grad_j11 = dot(grad_t1, camera.row[1]), grad_j12 = dot(grad_t1, camera.row[2]);
    grad_camera.row[0] = combine(jx, grad_t0, Real(0), grad_t0);
    grad_camera.row[1] = combine(jy, grad_t1, Real(0), grad_t1);
    grad_camera.row[2] = combine(-jx * f.x_ratio, grad_t0, -jy * f.y_ratio, grad_t1);

    // J02 = -fx x / z^2: where x/z is clamped it is -fx limit / z, which no longer depends on x.
    const Real x_share = select(f.x_clamped, Real(0), Real(1)),
               y_share = select(f.y_clamped, Real(0), Real(1));
    Vector3<Real> grad;
    grad.x = jx * (g.mean_x - x_share * grad_j02 * inverse_z);
    grad.y = jy * (g.mean_y - y_share * grad_j12 * inverse_z);
    grad.z = g.depth - inverse_z * (jx * f.point.x * g.mean_x + jy * f.point.y * g.mean_y) -
             inverse_z * (jx * grad_j00 + jy * grad_j11) +
             inverse_z * (jx * (Real(1) + x_share) * f.x_ratio * grad_j02 +
                          jy * (Real(1) + y_share) * f.y_ratio * grad_j12);
    return grad;
}

// The whole way back from the image plane, to what was given: with `raw` by logarithms and logit. Not where
// the splat has no footprint. Colours have their own (spherical_harmonics.h).
template <typename Real>
SPLATSCOPE_FUNCTION Mask<Real> project_splat_backward(const Camera<Real>& camera, const Splat<Real>& splat,
                                                      const ProjectedGradient<Real>& g,
                                                      SplatGradient<Real>& out,
                                                      CameraGradient<Real>& grad_camera) {
    const Vector3<Real>&mean = splat.mean, &scale = splat.scale;
    const Real opacity = splat.opacity;
    Footprint<Real> f;
    const Mask<Real> found = compute_footprint(camera, splat, f);
    if (none_of(found)) return found;
    Vector3<Real> grad_u0, grad_u1;
    covariance_backward(f, g, camera.antialiased, opacity, grad_u0, grad_u1, out.opacity);

    // U = T R S with T = J W.
    const Vector3<Real>* r = f.rotation;
    const Vector3<Real> s0 = times(grad_u0, scale), s1 = times(grad_u1, scale);
    const Vector3<Real> grad_t0 = {dot(r[0], s0), dot(r[1], s0), dot(r[2], s0)};
    const Vector3<Real> grad_t1 = {dot(r[0], s1), dot(r[1], s1), dot(r[2], s1)};
    const Vector3<Real> grad_rotation[3] = {combine(f.t0.x, s0, f.t1.x, s1), combine(f.t0.y, s0, f.t1.y, s1),
                                            combine(f.t0.z, s0, f.t1.z, s1)};
    rotation_backward(f, grad_rotation, out.quaternion);
    const Vector3<Real> one = {Real(1), Real(1), Real(1)};
    const Vector3<Real> v0 = through_rotation_and_scale(f, f.t0, one);
    const Vector3<Real> v1 = through_rotation_and_scale(f, f.t1, one);
    out.scale = {v0.x * grad_u0.x + v1.x * grad_u1.x, v0.y * grad_u0.y + v1.y * grad_u1.y,
                 v0.z * grad_u0.z + v1.z * grad_u1.z};
    if (camera.raw) {
        out.scale = times(out.scale, scale);
        out.opacity = out.opacity * (opacity * (Real(1) - opacity));
    }

    const Vector3<Real> grad_point = camera_point_backward(camera, f, g, grad_t0, grad_t1, grad_camera);
    out.mean = combine(grad_point.x, camera.row[0], grad_point.y, camera.row[1]);
    out.mean = combine(Real(1), out.mean, grad_point.z, camera.row[2]);
    grad_camera.translation = grad_point;
    grad_camera.row[0] = combine(Real(1), grad_camera.row[0], grad_point.x, mean);
    grad_camera.row[1] = combine(Real(1), grad_camera.row[1], grad_point.y, mean);
    grad_camera.row[2] = combine(Real(1), grad_camera.row[2], grad_point.z, mean);
    return found;
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
