// The whole way back from the image plane, for the splats that were seen, as many at a time as a vector has
// lanes.

#include <cstring>

#include "gradient_flags.h"
#include "kernels.h"
#include "lane_sums.h"
#include "parallel.h"
#include "splat_lanes.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

constexpr int camera_numbers = 12;

template <typename Real>
ProjectedGradient<Lanes<Real>> load_gradient(const ProjectBackwardParams<Real>& p,
                                             const SplatRows<Real>& rows) {
    ProjectedGradient<Lanes<Real>> g{};
    Lanes<Real> mean[2] = {};
    if (p.grad_means_2d) load_rows<2>(p.grad_means_2d, 2, rows, mean);
    g.mean_x = mean[0];
    g.mean_y = mean[1];
    if (p.grad_conics) load_rows<3>(p.grad_conics, 3, rows, g.conic);
    if (p.grad_depths) load_rows<1>(p.grad_depths, 1, rows, &g.depth);
    if (p.grad_effective_opacities) load_rows<1>(p.grad_effective_opacities, 1, rows, &g.opacity);
    return g;
}

// Count numbers for each splat of a tensor, if somebody asks for it.
template <int Count, typename Real>
void write_gradient(Real* array, int64_t stride, const SplatRows<Real>& rows, const Lanes<Real>* numbers,
                    int32_t bit, BlockFindings<Real>& findings) {
    if (!array) return;
    findings.template look<Count>(numbers, bit);
    store_rows<Count>(array, stride, rows, numbers);
}

// Zero for a splat that is not seen.
template <typename Real>
void clear_gradient(const ProjectBackwardParams<Real>& p, int64_t i) {
    const auto clear = [&](Real* array, int64_t numbers) {
        if (array) std::memset(array + numbers * i, 0, size_t(numbers) * sizeof(Real));
    };
    clear(p.grad_means, 3);
    clear(p.grad_quaternions, 4);
    clear(p.grad_scales, 3);
    clear(p.grad_opacities, 1);
    clear(p.grad_sh_dc, 3);
    clear(p.grad_sh_rest, 3 * p.sh_rest_coefficients);
}

// Zero for the coefficients of bands that are not in use.
template <typename Real>
void clear_unused(const ProjectBackwardParams<Real>& p, const SplatRows<Real>& rows, int64_t used) {
    const int64_t stride = 3 * p.sh_rest_coefficients;
    if (used == stride) return;
    for (int i = 0; i < rows.used; ++i)
        std::memset(p.grad_sh_rest + stride * rows.splat[i] + used, 0, size_t(stride - used) * sizeof(Real));
}

// The sum over splats of the gradient of the camera, a lane each, in the order of the matrix.
template <typename Real>
struct CameraSums {
    Lanes<Real> numbers[camera_numbers] = {};

    void add(const CameraGradient<Lanes<Real>>& g, LaneMask<Real> counts) {
        const auto add_row = [&](int row, const Vector3<Lanes<Real>>& rotation, Lanes<Real> translation) {
            const Lanes<Real> terms[4] = {rotation.x, rotation.y, rotation.z, translation};
            for (int k = 0; k < 4; ++k) numbers[4 * row + k] += select(counts, terms[k], Lanes<Real>(0));
        };
        add_row(0, g.row[0], g.translation.x);
        add_row(1, g.row[1], g.translation.y);
        add_row(2, g.row[2], g.translation.z);
    }
};

template <typename Real>
LaneMask<Real> used_lanes(const SplatRows<Real>& rows) {
    LaneMask<Real> used{};
    for (int i = 0; i < rows.used; ++i) used.mask[i] = -1;
    return used;
}

// Everything but the colours; zero where a splat has no footprint.
template <typename Real>
SplatGradient<Lanes<Real>> shape_backward(const ProjectBackwardParams<Real>& p,
                                          const Camera<Lanes<Real>>& camera, const SplatRows<Real>& rows,
                                          CameraSums<Real>& sums) {
    using Number = Lanes<Real>;
    SplatGradient<Number> g{};
    CameraGradient<Number> grad_camera{};
    const LaneMask<Real> found =
        project_splat_backward(camera, load_splats(p.splats, rows), load_gradient(p, rows), g, grad_camera);
    if (p.grad_world_to_camera) sums.add(grad_camera, found & used_lanes(rows));
    const auto kept = [&](Number number) { return select(found, number, Number(0)); };
    return {{kept(g.mean.x), kept(g.mean.y), kept(g.mean.z)},
            {kept(g.quaternion[0]), kept(g.quaternion[1]), kept(g.quaternion[2]), kept(g.quaternion[3])},
            {kept(g.scale.x), kept(g.scale.y), kept(g.scale.z)},
            kept(g.opacity)};
}

// Writes the gradients of the coefficients in use and adds those of mean and camera.
template <int Degree, typename Real>
void color_backward(const ProjectBackwardParams<Real>& p, const Camera<Lanes<Real>>& camera,
                    const SplatRows<Real>& rows, Vector3<Lanes<Real>>& grad_mean, CameraSums<Real>& sums,
                    BlockFindings<Real>& findings) {
    using Number = Lanes<Real>;
    Coefficients<Degree, Real> coefficients(p.splats, rows);
    Number basis[maximum_sh_coefficients], inverse_distance;
    const Vector3<Number> direction =
        view_direction(camera, load_vectors(p.splats.means, 3, rows), inverse_distance);
    spherical_harmonics_basis(Degree, direction, basis);
    Vector3<Number> g = load_vectors(p.grad_colors, 3, rows);
    const Vector3<Number> grad_direction =
        spherical_harmonics_backward(Degree, direction, basis, coefficients.dc, coefficients.rest, g);
    if (Degree > 0) {
        CameraGradient<Number> grad_camera{};
        view_direction_backward(camera, direction, inverse_distance, grad_direction, grad_mean, grad_camera);
        if (p.grad_world_to_camera) sums.add(grad_camera, used_lanes(rows));
    }
    const Number dc[3] = {basis[0] * g.x, basis[0] * g.y, basis[0] * g.z};
    write_gradient<3>(p.grad_sh_dc, 3, rows, dc, not_finite_sh_dc, findings);
    if (!p.grad_sh_rest) return;
    constexpr int numbers = Coefficients<Degree, Real>::rest_size;
    if constexpr (Degree > 0) {
        for (int k = 0; k < numbers; k += 3) {
            coefficients.rest[k] = basis[k / 3 + 1] * g.x;
            coefficients.rest[k + 1] = basis[k / 3 + 1] * g.y;
            coefficients.rest[k + 2] = basis[k / 3 + 1] * g.z;
        }
        write_gradient<numbers>(p.grad_sh_rest, 3 * p.sh_rest_coefficients, rows, coefficients.rest,
                                not_finite_sh_rest, findings);
    }
    clear_unused(p, rows, numbers);
}

// Of the splats of one vector, all of which were seen.
template <int Degree, typename Real>
void backward_of(const ProjectBackwardParams<Real>& p, const Camera<Lanes<Real>>& camera,
                 const SplatRows<Real>& rows, CameraSums<Real>& sums, BlockFindings<Real>& findings) {
    SplatGradient<Lanes<Real>> g = shape_backward(p, camera, rows, sums);
    if constexpr (Degree >= 0) {
        if (p.grad_colors) color_backward<Degree>(p, camera, rows, g.mean, sums, findings);
    }
    const Lanes<Real> mean[3] = {g.mean.x, g.mean.y, g.mean.z}, scale[3] = {g.scale.x, g.scale.y, g.scale.z};
    write_gradient<3>(p.grad_means, 3, rows, mean, not_finite_means, findings);
    write_gradient<4>(p.grad_quaternions, 4, rows, g.quaternion, not_finite_quaternions, findings);
    write_gradient<3>(p.grad_scales, 3, rows, scale, not_finite_scales, findings);
    write_gradient<1>(p.grad_opacities, 1, rows, &g.opacity, not_finite_opacities, findings);
}

// Rows of coefficients are three lines each, of memory that the caches do not hold with many splats.
template <int Degree, typename Real>
void ask_for_coefficients(const ProjectBackwardParams<Real>& p, const SplatRows<Real>& rows) {
    if constexpr (Degree > 0) {
        constexpr int numbers = Coefficients<Degree, Real>::rest_size;
        for (int i = 0; i < rows.used; ++i) {
            ask_for_row<numbers, 0>(p.splats.sh_rest + rows.splat[i] * p.splats.sh_rest_stride);
            if (p.grad_sh_rest)
                ask_for_row<numbers, 1>(p.grad_sh_rest + rows.splat[i] * 3 * p.sh_rest_coefficients);
        }
    }
}

template <int Degree, typename Real>
void backward_of_block(const ProjectBackwardParams<Real>& p, int64_t begin, int64_t end,
                       GradientFlags& flags) {
    const auto camera = camera_as<Lanes<Real>>(p.splats);
    int32_t seen[splat_block];
    int count = 0;
    for (int64_t i = begin; i < end; ++i) {
        const bool shown = p.radii[2 * i] > 0;
        seen[count] = int32_t(i - begin);
        count += shown;
        // Without a gradient of the colours those of the coefficients are zero.
        if (!shown || !p.grad_colors) clear_gradient(p, i);
    }
    CameraSums<Real> sums;
    BlockFindings<Real> findings;
    constexpr int width = Lanes<Real>::width;
    for (int k = 0; k < count; k += width) {
        const int ahead = k + rows_ahead * width;
        if (p.grad_colors && ahead < count)
            ask_for_coefficients<Degree>(p, SplatRows<Real>::from(begin, seen, ahead, count));
        backward_of<Degree>(p, camera, SplatRows<Real>::from(begin, seen, k, count), sums, findings);
    }
    flags.note(findings, count > 0);
    if (!p.grad_world_to_camera) return;
    Real* partials = p.camera_partials + camera_numbers * (begin / splat_block);
    for (int k = 0; k < camera_numbers; ++k) partials[k] = sum_of<Real>(sums.numbers[k].vector);
}

}  // namespace

template <typename Real>
void project_backward(const ProjectBackwardParams<Real>& p) {
    GradientFlags flags;
    Pieces pieces(p.pieces);
    bool is_done = false;
    with_degree(p.splats.sh_degree, [&](auto degree) {
        is_done = pieces.blocks(p.splats.count, splat_block, [&](int64_t begin, int64_t end) {
            backward_of_block<degree()>(p, begin, end, flags);
        });
    });
    if (p.flags) flags.add_to(p.flags);
    if (!is_done) return;
    pieces.finish();
    if (!p.grad_world_to_camera) return;
    for (int k = 0; k < 16; ++k) p.grad_world_to_camera[k] = Real(0);
    const int64_t blocks = (p.splats.count + splat_block - 1) / splat_block;
    for (int64_t block = 0; block < blocks; ++block)
        for (int k = 0; k < camera_numbers; ++k)
            p.grad_world_to_camera[k] += p.camera_partials[camera_numbers * block + k];
}

SPLATSCOPE_INSTANTIATE(project_backward, ProjectBackwardParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
