// From the image plane back to the splats, a thread a splat, and to the camera, by sums in a fixed order.

#include "dialect.h"
#include "gaussian_math.h"
#include "params.h"
#include "spherical_harmonics.h"
#include "splat_rows.h"
#include "warp.h"

namespace splatscope {
using namespace SPLATSCOPE_ISA;
namespace {

constexpr int longest_row = 3 * (maximum_sh_coefficients - 1);
constexpr int camera_numbers = 12;
constexpr int warps = splat_block / warp_size;

// What the gradients that a thread writes tell about the step.
struct Findings {
    int32_t not_finite = 0, found = 0;

    SPLATSCOPE_FUNCTION void look(float number, int32_t bit) {
        not_finite |= is_finite(number) ? 0 : bit;
        found |= number != 0.0f ? found_gradient : 0;
    }
};

// Adds what a whole warp found. In nearly every warp that is noted already, and nothing has to be added.
SPLATSCOPE_FUNCTION void note(int32_t* flags, const Findings& findings) {
    int32_t not_finite = findings.not_finite, found = findings.found;
#pragma unroll
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
        not_finite |= shuffle_xor(all_lanes, not_finite, distance);
        found |= shuffle_xor(all_lanes, found, distance);
    }
    if (lane() != 0) return;
    if (not_finite & ~flags[0]) atomic_or(flags, not_finite);
    if (found & ~flags[1]) atomic_or(flags + 1, found);
}

SPLATSCOPE_FUNCTION ProjectedGradient<float> load_gradient(const ProjectBackwardParams<float>& p, int64_t i) {
    ProjectedGradient<float> g{};
    if (p.grad_means_2d) {
        g.mean_x = p.grad_means_2d[2 * i];
        g.mean_y = p.grad_means_2d[2 * i + 1];
    }
    if (p.grad_conics) {
#pragma unroll
        for (int k = 0; k < 3; ++k) g.conic[k] = p.grad_conics[3 * i + k];
    }
    if (p.grad_depths) g.depth = p.grad_depths[i];
    if (p.grad_effective_opacities) g.opacity = p.grad_effective_opacities[i];
    return g;
}

// The gradient of every coefficient is one number of the basis times one of the colour; so the lanes exchange
// those, and the warp writes its rows as one run. Coefficients that are not in use have gradient zero.
template <int degree>
SPLATSCOPE_FUNCTION void write_coefficients(const ProjectBackwardParams<float>& p, int64_t first, int rows,
                                            const float* basis, const Vector3<float>& g, float* tile,
                                            Findings& findings) {
    constexpr int used = (degree + 1) * (degree + 1) - 1, pitch = tile_pitch(used + 3);
    const float constant[3] = {basis[0] * g.x, basis[0] * g.y, basis[0] * g.z};
    if (p.grad_sh_dc) {
        for (float number : constant) findings.look(number, not_finite_sh_dc);
        store_rows<3>(constant, p.grad_sh_dc + 3 * first, rows, tile);
    }
    if (!p.grad_sh_rest) return;
    sync_warp(all_lanes);
    float* own = tile + lane() * pitch;
#pragma unroll
    for (int k = 0; k < used; ++k) own[k] = basis[k + 1];
    own[used] = g.x;
    own[used + 1] = g.y;
    own[used + 2] = g.z;
    sync_warp(all_lanes);
    const int size = 3 * int(p.sh_rest_coefficients);
    const int rows_a_turn = warp_size / size, columns_a_turn = warp_size % size;
    float* out = p.grad_sh_rest + size * first;
    int row = lane() / size, column = lane() % size;
    for (int number = lane(); number < size * rows; number += warp_size) {
        const int coefficient = column / 3, channel = column % 3;
        const float* of_row = tile + row * pitch;
        const float gradient = coefficient < used ? of_row[coefficient] * of_row[used + channel] : 0.0f;
        findings.look(gradient, not_finite_sh_rest);
        out[number] = gradient;
        row += rows_a_turn;
        column += columns_a_turn;
        if (column >= size) {
            column -= size;
            ++row;
        }
    }
}

// Of the seen splats of a warp; it has to come whole. Adds to mean and camera.
template <int degree>
SPLATSCOPE_FUNCTION void color_backward(const ProjectBackwardParams<float>& p, const Camera<float>& camera,
                                        int64_t i, int rows, bool seen, Vector3<float>& grad_mean,
                                        CameraGradient<float>& grad_camera, float* tile, Findings& findings) {
    constexpr int row_size = 3 * ((degree + 1) * (degree + 1) - 1);
    const SplatParams<float>& splats = p.splats;
    const int64_t first = i - lane();
    seen = seen && p.grad_colors;
    if constexpr (degree > 0) {
        load_rows<row_size>(splats.sh_rest + first * splats.sh_rest_stride, splats.sh_rest_stride,
                            ballot(all_lanes, seen), tile);
    }
    float basis[maximum_sh_coefficients] = {};
    Vector3<float> g = {0.0f, 0.0f, 0.0f};
    if (seen) {
        float inverse_distance;
        const Vector3<float> direction =
            view_direction(camera, load3(splats.means + 3 * i), inverse_distance);
        spherical_harmonics_basis(degree, direction, basis);
        g = load3(p.grad_colors + 3 * i);
        const Vector3<float> grad_direction =
            spherical_harmonics_backward(degree, direction, basis, splats.sh_dc + i * splats.sh_dc_stride,
                                         tile + lane() * tile_pitch(row_size), g);
        if constexpr (degree > 0)
            view_direction_backward(camera, direction, inverse_distance, grad_direction, grad_mean,
                                    grad_camera);
    }
    write_coefficients<degree>(p, first, rows, basis, g, tile, findings);
}

SPLATSCOPE_FUNCTION void color_backward(const ProjectBackwardParams<float>& p, const Camera<float>& camera,
                                        int64_t i, int rows, bool seen, Vector3<float>& grad_mean,
                                        CameraGradient<float>& grad_camera, float* tile, Findings& findings) {
    switch (p.splats.sh_degree) {
        case 0:
            return color_backward<0>(p, camera, i, rows, seen, grad_mean, grad_camera, tile, findings);
        case 1:
            return color_backward<1>(p, camera, i, rows, seen, grad_mean, grad_camera, tile, findings);
        case 2:
            return color_backward<2>(p, camera, i, rows, seen, grad_mean, grad_camera, tile, findings);
        default:
            return color_backward<3>(p, camera, i, rows, seen, grad_mean, grad_camera, tile, findings);
    }
}

SPLATSCOPE_FUNCTION void write_gradient(const ProjectBackwardParams<float>& p, int64_t i, int rows,
                                        const SplatGradient<float>& g, float* tile, Findings& findings) {
    const int64_t first = i - lane();
    const float mean[3] = {g.mean.x, g.mean.y, g.mean.z}, scale[3] = {g.scale.x, g.scale.y, g.scale.z};
    if (p.grad_means) {
        for (float number : mean) findings.look(number, not_finite_means);
        store_rows<3>(mean, p.grad_means + 3 * first, rows, tile);
    }
    if (p.grad_scales) {
        for (float number : scale) findings.look(number, not_finite_scales);
        store_rows<3>(scale, p.grad_scales + 3 * first, rows, tile);
    }
    if (i >= p.splats.count) return;
    if (p.grad_quaternions) {
        const float* q = g.quaternion;
        for (float number : g.quaternion) findings.look(number, not_finite_quaternions);
        reinterpret_cast<AlignedRow<4>*>(p.grad_quaternions)[i] = {q[0], q[1], q[2], q[3]};
    }
    if (!p.grad_opacities) return;
    findings.look(g.opacity, not_finite_opacities);
    p.grad_opacities[i] = g.opacity;
}

// Adds up what the threads of a block have, the warps one after the other; the threads below `camera_numbers`
// get a sum each, in the order of the matrix.
SPLATSCOPE_FUNCTION float block_sum(const CameraGradient<float>& g, float* warp_sums) {
    float numbers[camera_numbers] = {g.row[0].x, g.row[0].y, g.row[0].z, g.translation.x,
                                     g.row[1].x, g.row[1].y, g.row[1].z, g.translation.y,
                                     g.row[2].x, g.row[2].y, g.row[2].z, g.translation.z};
    const float sum = transposed_sums<camera_numbers>(numbers);
    const int owned = owned_sum<camera_numbers>();
    if (owned >= 0) warp_sums[camera_numbers * warp_index() + owned] = sum;
    sync_block();
    float total = 0.0f;
    if (thread_index() < camera_numbers)
        for (int warp = 0; warp < warps; ++warp) total += warp_sums[camera_numbers * warp + thread_index()];
    return total;
}

}  // namespace

KERNEL(project_backward, ProjectBackwardParams<float>, splat_block) {
    SHARED_ARRAY(Camera<float>, camera, 1);
    SHARED_ARRAY(float, tiles, splat_block* longest_row);
    SHARED_ARRAY(float, warp_sums, warps* camera_numbers);
    if (thread_index() == 0) camera[0] = load_camera(p.splats);
    sync_block();

    const int64_t i = block_index() * splat_block + thread_index();
    const int64_t left = p.splats.count - (i - lane());
    const int rows = left < splats_a_warp ? int(left) : splats_a_warp;
    float* tile = tiles + warp_index() * (splats_a_warp * longest_row);
    const bool seen = i < p.splats.count && p.radii[2 * i] > 0;
    SplatGradient<float> g = {};
    CameraGradient<float> grad_camera = {};
    if (seen) project_splat_backward(camera[0], load_splat(p.splats, i), load_gradient(p, i), g, grad_camera);
    Findings findings;
    findings.found = seen ? found_seen : 0;
    if (!p.splats.features) color_backward(p, camera[0], i, rows, seen, g.mean, grad_camera, tile, findings);
    write_gradient(p, i, rows, g, tile, findings);
    if (p.flags) note(p.flags, findings);
    if (!p.grad_world_to_camera) return;
    const float sum = block_sum(grad_camera, warp_sums);
    if (thread_index() < camera_numbers)
        p.camera_partials[camera_numbers * block_index() + thread_index()] = sum;
}

KERNEL(sum_camera_gradient, ProjectBackwardParams<float>, splat_block) {
    SHARED_ARRAY(float, warp_sums, warps* camera_numbers);
    const int64_t blocks = (p.splats.count + splat_block - 1) / splat_block;
    CameraGradient<float> g = {};
    for (int64_t block = thread_index(); block < blocks; block += splat_block) {
        const float* part = p.camera_partials + camera_numbers * block;
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            g.row[k].x += part[4 * k];
            g.row[k].y += part[4 * k + 1];
            g.row[k].z += part[4 * k + 2];
        }
        g.translation.x += part[3];
        g.translation.y += part[7];
        g.translation.z += part[11];
    }
    const float sum = block_sum(g, warp_sums);
    if (thread_index() < 16)
        p.grad_world_to_camera[thread_index()] = thread_index() < camera_numbers ? sum : 0.0f;
}

}  // namespace splatscope
