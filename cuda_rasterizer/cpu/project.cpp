// Splats onto the image plane, as many at a time as a vector has lanes: first where they stand and what they
// cover, for all of a block, then the colours of those that are seen.

#include <cstring>

#include "kernels.h"
#include "parallel.h"
#include "splat_lanes.h"

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

// Truncated to 32 bits, which for float have the size of a number.
template <typename Real>
void store_radii(int32_t* radii, const SplatRows<Real>& rows, Lanes<Real> x, Lanes<Real> y) {
    if constexpr (sizeof(Real) == sizeof(int32_t)) {
        const Lanes<Real> bits[2] = {(FloatVector) __builtin_convertvector(x.vector, FloatMask),
                                     (FloatVector) __builtin_convertvector(y.vector, FloatMask)};
        store_rows<2>(reinterpret_cast<Real*>(radii), 2, rows, bits);
    } else {
        for (int i = 0; i < rows.width; ++i) {
            radii[2 * rows.splat[i]] = int32_t(x.vector[i]);
            radii[2 * rows.splat[i] + 1] = int32_t(y.vector[i]);
        }
    }
}

// Zero where a splat is not seen.
template <typename Real>
void write_splats(const ProjectParams<Real>& p, const SplatRows<Real>& rows, LaneMask<Real> seen,
                  const ProjectedSplat<Lanes<Real>>& splats) {
    const auto shown = [&](Lanes<Real> number) { return select(seen, number, Lanes<Real>(0)); };
    const Lanes<Real> means[2] = {shown(splats.mean_x), shown(splats.mean_y)};
    const Lanes<Real> conics[3] = {shown(splats.conic[0]), shown(splats.conic[1]), shown(splats.conic[2])};
    const Lanes<Real> depths = shown(splats.depth), opacities = shown(splats.opacity);
    store_rows<2>(p.means_2d, 2, rows, means);
    store_rows<3>(p.conics, 3, rows, conics);
    store_rows<1>(p.depths, 1, rows, &depths);
    store_rows<1>(p.effective_opacities, 1, rows, &opacities);
    store_radii(p.radii, rows, shown(splats.radius_x), shown(splats.radius_y));
}

template <typename Real>
void cull(const ProjectParams<Real>& p, int64_t i) {
    std::memset(p.means_2d + 2 * i, 0, 2 * sizeof(Real));
    std::memset(p.conics + 3 * i, 0, 3 * sizeof(Real));
    p.depths[i] = p.effective_opacities[i] = Real(0);
    p.radii[2 * i] = p.radii[2 * i + 1] = 0;
    if (p.colors) std::memset(p.colors + 3 * i, 0, 3 * sizeof(Real));
}

template <int Degree, typename Real>
void write_colors(const ProjectParams<Real>& p, const Camera<Lanes<Real>>& camera,
                  const SplatRows<Real>& rows) {
    using Number = Lanes<Real>;
    const Coefficients<Degree, Real> coefficients(p.splats, rows);
    Number basis[maximum_sh_coefficients], inverse_distance;
    const Vector3<Number> direction =
        view_direction(camera, load_vectors(p.splats.means, 3, rows), inverse_distance);
    spherical_harmonics_basis(Degree, direction, basis);
    const Vector3<Number> color = spherical_harmonics_sum(Degree, basis, coefficients.dc, coefficients.rest);
    const Number zero = Number(0),
                 positive[3] = {select(color.x > zero, color.x, zero), select(color.y > zero, color.y, zero),
                                select(color.z > zero, color.z, zero)};
    store_rows<3>(p.colors, 3, rows, positive);
    const unsigned finite = lanes_of(is_finite(color.x + color.y + color.z).mask);
    for (int i = 0; i < rows.used; ++i)
        if (!(finite >> i & 1)) cull(p, rows.splat[i]);
}

// What one block has seen, by its offset in the block.
struct SeenSplats {
    int32_t offsets[splat_block];
    int count = 0;
};

template <typename Real>
void project_block(const ProjectParams<Real>& p, const Camera<Lanes<Real>>& camera, int64_t begin,
                   int64_t end, SeenSplats& seen) {
    for (int64_t first = begin; first < end; first += Lanes<Real>::width) {
        const auto rows = SplatRows<Real>::from(first, end);
        ProjectedSplat<Lanes<Real>> projected{};
        const LaneMask<Real> shown = project_splat(camera, load_splats(p.splats, rows), projected);
        write_splats(p, rows, shown, projected);
        const unsigned lanes = lanes_of(shown.mask);
        for (int i = 0; i < rows.used; ++i) {
            seen.offsets[seen.count] = int32_t(first - begin) + i;
            seen.count += lanes >> i & 1;
        }
    }
}

template <int Degree, typename Real>
void color_block(const ProjectParams<Real>& p, const Camera<Lanes<Real>>& camera, int64_t begin, int64_t end,
                 const SeenSplats& seen) {
    if constexpr (Degree < 0) {
        for (int k = 0; k < seen.count; ++k)
            if (!features_are_finite(p.splats, begin + seen.offsets[k])) cull(p, begin + seen.offsets[k]);
    } else {
        std::memset(p.colors + 3 * begin, 0, size_t(3 * (end - begin)) * sizeof(Real));
        constexpr int width = Lanes<Real>::width;
        for (int k = 0; k < seen.count; k += width) {
            const int ahead = k + rows_ahead * width;
            if constexpr (Degree > 0) {
                for (int i = ahead; i < ahead + width && i < seen.count; ++i)
                    ask_for_row<Coefficients<Degree, Real>::rest_size, 0>(
                        p.splats.sh_rest + (begin + seen.offsets[i]) * p.splats.sh_rest_stride);
            }
            write_colors<Degree>(p, camera, SplatRows<Real>::from(begin, seen.offsets, k, seen.count));
        }
    }
}

}  // namespace

template <typename Real>
void project(const ProjectParams<Real>& p) {
    Pieces pieces(p.pieces);
    with_degree(p.splats.sh_degree, [&](auto degree) {
        const auto do_block = [&](int64_t begin, int64_t end) {
            const auto camera = camera_as<Lanes<Real>>(p.splats);
            SeenSplats seen;
            project_block(p, camera, begin, end, seen);
            color_block<degree()>(p, camera, begin, end, seen);
        };
        if (pieces.blocks(p.splats.count, splat_block, do_block)) pieces.finish();
    });
}

SPLATSCOPE_INSTANTIATE(project, ProjectParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
