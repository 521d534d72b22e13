// Splats onto the image plane, and the whole way back.

#include <cstring>
#include <type_traits>

#include "gaussian_math.h"
#include "gradient_flags.h"
#include "kernels.h"
#include "parallel.h"
#include "spherical_harmonics.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

template <typename Real>
bool features_are_finite(const SplatParams<Real>& p, int64_t i) {
    Real sum = Real(0);
    const Real* row = p.features + i * p.channels;
    for (int c = 0; c < p.channels; ++c) sum += row[c] - row[c];
    return sum == Real(0);
}

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

template <int Degree, typename Real>
bool color_of(const ProjectParams<Real>& p, const Camera<Real>& camera, int64_t i) {
    if (Degree < 0) return features_are_finite(p.splats, i);
    const SplatParams<Real>& splats = p.splats;
    Real basis[maximum_sh_coefficients], inverse_distance;
    const Vector3<Real> direction = view_direction(camera, load3(splats.means + 3 * i), inverse_distance);
    spherical_harmonics_basis(Degree, direction, basis);
    const Vector3<Real> color = spherical_harmonics_sum(Degree, basis, splats.sh_dc + i * splats.sh_dc_stride,
                                                        splats.sh_rest + i * splats.sh_rest_stride);
    if (!is_finite(color.x + color.y + color.z)) return false;
    p.colors[3 * i] = color.x > 0 ? color.x : Real(0);
    p.colors[3 * i + 1] = color.y > 0 ? color.y : Real(0);
    p.colors[3 * i + 2] = color.z > 0 ? color.z : Real(0);
    return true;
}

template <typename Real>
void write_splat(const ProjectParams<Real>& p, int64_t i, const ProjectedSplat<Real>& splat) {
    p.means_2d[2 * i] = splat.mean_x;
    p.means_2d[2 * i + 1] = splat.mean_y;
    for (int k = 0; k < 3; ++k) p.conics[3 * i + k] = splat.conic[k];
    p.depths[i] = splat.depth;
    p.effective_opacities[i] = splat.opacity;
    p.radii[2 * i] = splat.radius_x;
    p.radii[2 * i + 1] = splat.radius_y;
}

template <typename Real>
void write_culled(const ProjectParams<Real>& p, int64_t i) {
    write_splat(p, i, ProjectedSplat<Real>{});
    if (p.colors) std::memset(p.colors + 3 * i, 0, 3 * sizeof(Real));
}

// The gradients of one splat that somebody asks for.
template <typename Real>
void write_gradient(const ProjectBackwardParams<Real>& p, int64_t i, const SplatGradient<Real>& g) {
    if (p.grad_means) std::memcpy(p.grad_means + 3 * i, &g.mean, sizeof g.mean);
    if (p.grad_quaternions) std::memcpy(p.grad_quaternions + 4 * i, g.quaternion, sizeof g.quaternion);
    if (p.grad_scales) std::memcpy(p.grad_scales + 3 * i, &g.scale, sizeof g.scale);
    if (p.grad_opacities) p.grad_opacities[i] = g.opacity;
}

template <typename Real>
ProjectedGradient<Real> load_gradient(const ProjectBackwardParams<Real>& p, int64_t i) {
    ProjectedGradient<Real> g{};
    if (p.grad_means_2d) {
        g.mean_x = p.grad_means_2d[2 * i];
        g.mean_y = p.grad_means_2d[2 * i + 1];
    }
    if (p.grad_conics)
        for (int k = 0; k < 3; ++k) g.conic[k] = p.grad_conics[3 * i + k];
    if (p.grad_depths) g.depth = p.grad_depths[i];
    if (p.grad_effective_opacities) g.opacity = p.grad_effective_opacities[i];
    return g;
}

// Coefficients that are not in use, or whose splat is not seen, have gradient zero.
template <typename Real>
void clear_coefficients(const ProjectBackwardParams<Real>& p, int64_t i) {
    if (p.grad_sh_dc) std::memset(p.grad_sh_dc + 3 * i, 0, 3 * sizeof(Real));
    if (p.grad_sh_rest) {
        const int64_t stride = 3 * p.sh_rest_coefficients;
        std::memset(p.grad_sh_rest + stride * i, 0, size_t(stride) * sizeof(Real));
    }
}

// Writes the gradients of the coefficients in use and adds those of mean and camera.
template <int Degree, typename Real>
void color_backward(const ProjectBackwardParams<Real>& p, const Camera<Real>& camera, int64_t i,
                    Vector3<Real>& grad_mean, CameraGradient<Real>& grad_camera) {
    const SplatParams<Real>& splats = p.splats;
    Real basis[maximum_sh_coefficients], inverse_distance;
    const Vector3<Real> direction = view_direction(camera, load3(splats.means + 3 * i), inverse_distance);
    spherical_harmonics_basis(Degree, direction, basis);
    Vector3<Real> g = load3(p.grad_colors + 3 * i);
    const Vector3<Real> grad_direction =
        spherical_harmonics_backward(Degree, direction, basis, splats.sh_dc + i * splats.sh_dc_stride,
                                     splats.sh_rest + i * splats.sh_rest_stride, g);
    if (Degree > 0)
        view_direction_backward(camera, direction, inverse_distance, grad_direction, grad_mean, grad_camera);
    if (p.grad_sh_dc) {
        const Vector3<Real> dc = {basis[0] * g.x, basis[0] * g.y, basis[0] * g.z};
        std::memcpy(p.grad_sh_dc + 3 * i, &dc, sizeof dc);
    }
    if (!p.grad_sh_rest) return;
    Real* rest = p.grad_sh_rest + 3 * p.sh_rest_coefficients * i;
    for (int k = 1; k < sh_coefficients(Degree); ++k, rest += 3) {
        rest[0] = basis[k] * g.x;
        rest[1] = basis[k] * g.y;
        rest[2] = basis[k] * g.z;
    }
}

template <int Degree, typename Real>
void backward_of_one(const ProjectBackwardParams<Real>& p, const Camera<Real>& camera, int64_t i,
                     CameraGradient<Real>& grad_camera) {
    SplatGradient<Real> g{};
    clear_coefficients(p, i);
    grad_camera = {};
    if (p.radii[2 * i] > 0) {
        project_splat_backward(p.splats, camera, i, load_gradient(p, i), g, grad_camera);
        if (p.grad_colors && Degree >= 0) color_backward<Degree>(p, camera, i, g.mean, grad_camera);
    }
    write_gradient(p, i, g);
}

template <typename Real>
void add_camera_gradient(const CameraGradient<Real>& g, Real* sum) {
    for (int row = 0; row < 3; ++row) {
        sum[4 * row] += g.row[row].x;
        sum[4 * row + 1] += g.row[row].y;
        sum[4 * row + 2] += g.row[row].z;
    }
    sum[3] += g.translation.x;
    sum[7] += g.translation.y;
    sum[11] += g.translation.z;
}

}  // namespace

template <typename Real>
void project(const ProjectParams<Real>& p) {
    const Camera<Real> camera = load_camera(p.splats);
    with_degree(p.splats.sh_degree, [&](auto degree) {
        parallel_blocks(p.splats.count, splat_block, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                ProjectedSplat<Real> splat;
                if (project_splat(p.splats, camera, i, splat) && color_of<degree()>(p, camera, i))
                    write_splat(p, i, splat);
                else
                    write_culled(p, i);
            }
        });
    });
}

template <typename Real>
void project_backward(const ProjectBackwardParams<Real>& p) {
    const Camera<Real> camera = load_camera(p.splats);
    GradientFlags flags;
    with_degree(p.splats.sh_degree, [&](auto degree) {
        parallel_blocks(p.splats.count, splat_block, [&](int64_t begin, int64_t end) {
            Real sum[12] = {};
            for (int64_t i = begin; i < end; ++i) {
                CameraGradient<Real> grad_camera;
                backward_of_one<degree()>(p, camera, i, grad_camera);
                if (p.grad_world_to_camera) add_camera_gradient(grad_camera, sum);
            }
            if (p.flags) flags.note(p, begin, end);
            if (p.grad_world_to_camera)
                std::memcpy(p.camera_partials + 12 * (begin / splat_block), sum, sizeof sum);
        });
    });
    if (p.flags) flags.add_to(p.flags);
    if (!p.grad_world_to_camera) return;
    for (int k = 0; k < 16; ++k) p.grad_world_to_camera[k] = Real(0);
    const int64_t blocks = (p.splats.count + splat_block - 1) / splat_block;
    for (int64_t block = 0; block < blocks; ++block)
        for (int k = 0; k < 12; ++k) p.grad_world_to_camera[k] += p.camera_partials[12 * block + k];
}

SPLATSCOPE_INSTANTIATE(project, ProjectParams);
SPLATSCOPE_INSTANTIATE(project_backward, ProjectBackwardParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
