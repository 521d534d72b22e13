// Splats onto the image plane in one pass, a thread a splat: activations, projection, culling, colour.

#include "dialect.h"
#include "gaussian_math.h"
#include "params.h"
#include "spherical_harmonics.h"
#include "splat_rows.h"

namespace splatscope {
using namespace SPLATSCOPE_ISA;
namespace {

constexpr int longest_row = 3 * (maximum_sh_coefficients - 1);

SPLATSCOPE_FUNCTION bool features_are_finite(const SplatParams<float>& p, int64_t i) {
    const float* row = p.features + i * p.channels;
    bool finite = true;
    for (int c = 0; c < p.channels; ++c) finite = finite && is_finite(row[c]);
    return finite;
}

// Of the seen splats of a warp; it has to come whole.
template <int degree>
SPLATSCOPE_FUNCTION Vector3<float> color_of(const SplatParams<float>& p, const Camera<float>& camera,
                                            int64_t i, bool seen, float* tile) {
    constexpr int row_size = 3 * ((degree + 1) * (degree + 1) - 1);
    if constexpr (degree > 0) {
        const float* rows = p.sh_rest + (i - lane()) * p.sh_rest_stride;
        load_rows<row_size>(rows, p.sh_rest_stride, ballot(all_lanes, seen), tile);
    }
    if (!seen) return {0.0f, 0.0f, 0.0f};
    float basis[maximum_sh_coefficients], inverse_distance;
    const Vector3<float> direction = view_direction(camera, load3(p.means + 3 * i), inverse_distance);
    spherical_harmonics_basis(degree, direction, basis);
    return spherical_harmonics_sum(degree, basis, p.sh_dc + i * p.sh_dc_stride,
                                   tile + lane() * tile_pitch(row_size));
}

SPLATSCOPE_FUNCTION Vector3<float> color_of(const SplatParams<float>& p, const Camera<float>& camera,
                                            int64_t i, bool seen, float* tile) {
    switch (p.sh_degree) {
        case 0:
            return color_of<0>(p, camera, i, seen, tile);
        case 1:
            return color_of<1>(p, camera, i, seen, tile);
        case 2:
            return color_of<2>(p, camera, i, seen, tile);
        default:
            return color_of<3>(p, camera, i, seen, tile);
    }
}

SPLATSCOPE_FUNCTION void write_splat(const ProjectParams<float>& p, int64_t i,
                                     const ProjectedSplat<float>& splat) {
    reinterpret_cast<AlignedRow<2>*>(p.means_2d)[i] = {splat.mean_x, splat.mean_y};
    p.depths[i] = splat.depth;
    p.effective_opacities[i] = splat.opacity;
    p.radii[2 * i] = int32_t(splat.radius_x);
    p.radii[2 * i + 1] = int32_t(splat.radius_y);
}

}  // namespace

KERNEL(project, ProjectParams<float>, splat_block) {
    SHARED_ARRAY(Camera<float>, camera, 1);
    SHARED_ARRAY(float, tiles, splat_block* longest_row);
    if (thread_index() == 0) camera[0] = load_camera(p.splats);
    sync_block();

    const int64_t i = block_index() * splat_block + thread_index();
    float* tile = tiles + warp_index() * (splats_a_warp * longest_row);
    ProjectedSplat<float> splat;
    bool seen = i < p.splats.count && project_splat(camera[0], load_splat(p.splats, i), splat);
    Vector3<float> color = {0.0f, 0.0f, 0.0f};
    if (p.splats.features) {
        seen = seen && features_are_finite(p.splats, i);
    } else {
        color = color_of(p.splats, camera[0], i, seen, tile);
        seen = seen && is_finite(color.x + color.y + color.z);
    }
    if (!seen) {
        splat = {};
        color = {0.0f, 0.0f, 0.0f};
    }

    const int64_t first = i - lane(), left = p.splats.count - first;
    const int rows = left < splats_a_warp ? int(left) : splats_a_warp;
    if (i < p.splats.count) write_splat(p, i, splat);
    store_rows<3>(splat.conic, p.conics + 3 * first, rows, tile);
    if (!p.colors) return;
    const float positive[3] = {maximum(color.x, 0.0f), maximum(color.y, 0.0f), maximum(color.z, 0.0f)};
    store_rows<3>(positive, p.colors + 3 * first, rows, tile);
}

}  // namespace splatscope
