// The way back through compositing: back to front, a tile at a time.
//
// Transmittance is recovered by division. As the gradient g of a pixel is fixed, what lies behind a splat
// enters only through one number R, the light of what is behind it along g as if nothing were in front: first
// that of the background, then R = alpha (c . g) + (1 - alpha) R. So dL/dalpha = T (c . g - R). Depth and
// alpha are channels of value z and 1 over background 0.
// Each splat leaves six moments of w = dL/dexponent and a sum per channel in a slot of its own for each tile;
// the slots of a splat are summed in a fixed order afterwards: no atomics, the same bits for any number of
// threads.

#include <cstring>

#include "alphas.h"
#include "backward_state.h"
#include "kernels.h"
#include "lane_sums.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

// What is asked for, known at compile time so that the inner loop carries nothing else.
struct Everything {
    static constexpr bool geometry = true, depth = true, absolute = true;
};
struct GeometryAndDepth {
    static constexpr bool geometry = true, depth = true, absolute = false;
};
struct GeometryAndAbsolute {
    static constexpr bool geometry = true, depth = false, absolute = true;
};
struct Geometry {
    static constexpr bool geometry = true, depth = false, absolute = false;
};
struct ColorsOnly {
    static constexpr bool geometry = false, depth = false, absolute = false;
};

// One splat in one tile, into its slot. Sums have a lane for each column of a vector.
template <typename Real, int Channels, typename Wanted>
[[gnu::always_inline]] inline void backward_splat(BackwardState<Real, Channels>& state,
                                                  const VectorSet<Real>& vectors, const SplatRecord<Real>& s,
                                                  int way, const Real* color, int channels,
                                                  const TileGeometry<Real>& g, const Limits<Real>& limits,
                                                  int32_t k, Real* slot) {
    using Vector = typename Simd<Real>::Vector;
    using Mask = typename Simd<Real>::Mask;
    const int colors = Channels ? Channels : channels;
    Vector fixed_sums[Channels ? Channels : 1], fixed_colors[Channels ? Channels : 1];
    for (int i = 0; i < Channels; ++i) fixed_colors[i] = broadcast(color[i]);
    // With a constant number of them the sums stay in registers.
    const auto color_sum = [&](int i) -> Vector& {
        return Channels ? fixed_sums[Channels ? i : 0]
                        : reinterpret_cast<Vector*>(state.workspace + channels * tile_pixels)[i];
    };
    for (int i = 0; i < colors; ++i) color_sum(i) = Vector{};
    // Of each chunk, whose columns share their distance x: w summed over its rows, that sum summed as it
    // grew, and that one in turn. The moments along y follow from them (see below).
    Vector once[g.chunks], twice[g.chunks], thrice[g.chunks];
    Vector depth_sum{}, absolute_x{}, absolute_y{};
    const Mask behind_place = Mask{} + (k + 1);
    // First every alpha, then what follows from it: the machine looks only so far ahead, and each half being
    // short, it has the next vectors under way while one waits for its exponential.
    find_alphas_again(way, s, g, limits, vectors, reinterpret_cast<Vector*>(state.alphas));
    for (int chunk = 0; chunk < g.chunks; ++chunk) {
        const Vector x = g.distances(s.mean_x, chunk);
        Vector w_sum{}, w_sums{}, w_sums_sums{};
        vectors.for_each_between(chunk, [&](int64_t vector) {
            const int64_t at = vector * g.width;
            const auto stopped = behind_place > load<Mask>(state.stops + at);
            const Vector value = where(~stopped, load<Vector>(state.alphas + at));
            const Vector inverse = Real(1) / (Real(1) - value);
            const Vector before = load<Vector>(state.transmittance + at) * inverse;
            const Vector weight = before * value;
            store(state.transmittance + at, before);

            Vector along{};
            for (int i = 0; i < colors; ++i) {
                const Vector grad = load<Vector>(state.grad_color(i) + at);
                color_sum(i) = fused(weight, grad, color_sum(i));
                if (!Wanted::geometry) continue;
                const Vector light = Channels ? fixed_colors[Channels ? i : 0] : broadcast(color[i]);
                along = i == 0 ? light * grad : fused(light, grad, along);
            }
            if (!Wanted::geometry) return;
            if (Wanted::depth) {
                const Vector grad = load<Vector>(state.grad_depth + at);
                depth_sum = fused(weight, grad, depth_sum);
                along = fused(broadcast(s.depth), grad, along);
            }
            const Vector behind = load<Vector>(state.behind + at), step = along - behind;
            store(state.behind + at, fused(value, step, behind));

            // At the ceiling alpha no longer follows the exponent.
            const Vector w = where((Mask)value < (Mask)limits.ceiling, weight * step);
            w_sum += w;
            w_sums += w_sum;
            w_sums_sums += w_sums;
            if (Wanted::absolute) {
                const Real y = g.row_centers[vector - chunk * tile_size] - s.mean_y;
                // The exponent's slope along each axis, times w; signs do not matter.
                const Vector x_slope = w * fused(broadcast(2 * s.a), x, broadcast(s.b * y));
                const Vector y_slope = w * fused(broadcast(s.b), x, broadcast(2 * s.c * y));
                absolute_x += x_slope < Vector{} ? -x_slope : x_slope;
                absolute_y += y_slope < Vector{} ? -y_slope : y_slope;
            }
        });
        once[chunk] = w_sum;
        twice[chunk] = w_sums;
        thrice[chunk] = w_sums_sums;
    }
    Vector w_sum{}, wx_sum{}, wy_sum{}, wxx_sum{}, wxy_sum{}, wyy_sum{};
    for (int chunk = 0; Wanted::geometry && chunk < g.chunks; ++chunk) {
        // A row d rows before the one behind the last, at `end`, was counted d times in `twice` and
        // d (d + 1) / 2 times in `thrice`; its y is end - d.
        const Real end = g.row_centers[0] - s.mean_y + Real(vectors.rows_end(chunk));
        const Vector x = g.distances(s.mean_x, chunk), w = once[chunk], wd = twice[chunk];
        const Vector wdd = thrice[chunk] + thrice[chunk] - wd, wx = w * x, wy = end * w - wd;
        w_sum += w;
        wx_sum += wx;
        wy_sum += wy;
        wxx_sum = fused(wx, x, wxx_sum);
        wxy_sum = fused(wy, x, wxy_sum);
        wyy_sum += end * (wy - wd) + wdd;
    }
    if constexpr (Wanted::geometry && Channels == 3) {
        const Vector sums[] = {w_sum,   wx_sum,        wy_sum,        wxx_sum,      wxy_sum,
                               wyy_sum, fixed_sums[0], fixed_sums[1], fixed_sums[2]};
        sums_of<Real>(sums, slot_moments + 3, slot);
    } else {
        const Vector sums[] = {w_sum, wx_sum, wy_sum, wxx_sum, wxy_sum, wyy_sum};
        sums_of<Real>(sums, Wanted::geometry ? slot_moments : 0, slot);
        for (int i = 0; i < colors; ++i) slot[slot_moments + i] = sum_of<Real>(color_sum(i));
    }
    slot += slot_moments + colors;
    if (Wanted::depth) *slot++ = sum_of<Real>(depth_sum);
    if (Wanted::absolute) {
        slot[0] = sum_of<Real>(absolute_x);
        slot[1] = sum_of<Real>(absolute_y);
    }
}

// Instances whose memory is asked for ahead of time.
constexpr int64_t lookahead = 6;

template <typename Real, int Channels, typename Wanted>
void backward_tile(const BlendBackwardParams<Real>& p, const TileGeometry<Real>& g, int64_t begin,
                   int64_t end, Real* workspace) {
    const TileParams<Real>& t = p.tiles;
    BackwardState<Real, Channels> state(p, g, workspace);
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    const Limits<Real> limits(t.cutoffs);
    const auto* const touches = reinterpret_cast<const Touch<Real>*>(t.touches);
    for (int64_t k = end - 1; k >= begin; --k) {
        const int32_t splat = t.instance_splats[k];
        Real* slot = p.slots + p.instance_slots[k] * p.slot_size;
        const int32_t place = int32_t(k - begin);
        if (k >= begin + lookahead) {
            __builtin_prefetch(records + t.instance_splats[k - lookahead]);
            __builtin_prefetch(p.slots + p.instance_slots[k - lookahead] * p.slot_size, 1);
        }
        if (place < state.next_stop) state.wake_vectors(place);
        const SplatRecord<Real>& s = records[splat];
        const VectorSet<Real> vectors = touches[k].vectors() & state.live;
        if (vectors.is_empty()) {
            std::memset(slot, 0, size_t(p.slot_size) * sizeof(Real));
            continue;
        }
        const Real* color = t.channels <= record_channels ? s.color : t.colors + int64_t(splat) * t.channels;
        backward_splat<Real, Channels, Wanted>(state, vectors, s, touches[k].way, color, t.channels, g,
                                               limits, place, slot);
    }
}

// Fetches a tile's pixels by reading a number of each of their cache lines. Rows so far apart are fetched by
// no machine of its own accord; reads that nothing waits for are under way together, and none is left out as
// a request to fetch ahead may be.
template <typename Real>
void fetch_pixels(const BlendBackwardParams<Real>& p, const TileGeometry<Real>& g) {
    char seen = 0;
    const auto fetch = [&](const auto* numbers, int channels) {
        for (int y = 0; numbers && y < g.rows; ++y) {
            const auto* row = numbers + (int64_t(g.y0 + y) * p.tiles.width + g.x0) * channels;
            const char* end = reinterpret_cast<const char*>(row + g.columns * channels);
            for (const char* line = reinterpret_cast<const char*>(row); line < end; line += 64) seen |= *line;
            seen |= end[-1];
        }
    };
    fetch(p.grad_color, p.tiles.channels);
    fetch(p.transmittance, 1);
    fetch(p.stops, 1);
    asm volatile("" ::"r"(seen));  // so that no compiler leaves the reads out
}

template <typename Real>
using TileFunction = void (*)(const BlendBackwardParams<Real>&, const TileGeometry<Real>&, int64_t, int64_t,
                              Real*);

template <typename Real, int Channels>
TileFunction<Real> tile_function(bool geometry, bool depth, bool absolute) {
    if (!geometry) return backward_tile<Real, Channels, ColorsOnly>;
    if (depth && absolute) return backward_tile<Real, Channels, Everything>;
    if (depth) return backward_tile<Real, Channels, GeometryAndDepth>;
    if (absolute) return backward_tile<Real, Channels, GeometryAndAbsolute>;
    return backward_tile<Real, Channels, Geometry>;
}

// The background shows through by what transmittance the splats leave.
template <typename Real>
void background_of_tile(const BlendBackwardParams<Real>& p, const TileGeometry<Real>& g, int tile) {
    const TileParams<Real>& t = p.tiles;
    Real* partial = t.background_per_pixel ? nullptr : p.tile_partials + int64_t(tile) * t.channels;
    for (int c = 0; partial && c < t.channels; ++c) partial[c] = Real(0);
    for (int y = 0; y < g.rows; ++y) {
        for (int x = 0; x < g.columns; ++x) {
            const int64_t pixel = int64_t(g.y0 + y) * t.width + g.x0 + x;
            for (int c = 0; c < t.channels; ++c) {
                const Real grad =
                    p.grad_color ? p.transmittance[pixel] * p.grad_color[pixel * t.channels + c] : Real(0);
                if (partial)
                    partial[c] += grad;
                else
                    p.grad_background[pixel * t.channels + c] = grad;
            }
        }
    }
}

template <typename Real>
void sum_background(const BlendBackwardParams<Real>& p, int tiles) {
    for (int c = 0; c < p.tiles.channels; ++c) {
        Real sum = Real(0);
        for (int tile = 0; tile < tiles; ++tile) sum += p.tile_partials[int64_t(tile) * p.tiles.channels + c];
        p.grad_background[c] = sum;
    }
}

// From the moments of one splat, over all its tiles, to the gradients of what compositing read.
template <typename Real>
void write_moments(const BlendBackwardParams<Real>& p, int64_t i, const Real* sum) {
    const SplatRecord<Real>& s = reinterpret_cast<const SplatRecord<Real>*>(p.tiles.records)[i];
    const Real w = sum[0], wx = sum[1], wy = sum[2];
    if (p.grad_means_2d) {
        // The exponent falls as the distance grows, and the distance is pixel minus mean.
        p.grad_means_2d[2 * i] = -(2 * s.a * wx + s.b * wy);
        p.grad_means_2d[2 * i + 1] = -(s.b * wx + 2 * s.c * wy);
    }
    if (p.grad_conics) {
        p.grad_conics[3 * i] = Real(-0.5) * sum[3];
        p.grad_conics[3 * i + 1] = -sum[4];
        p.grad_conics[3 * i + 2] = Real(-0.5) * sum[5];
    }
    if (p.grad_opacities) p.grad_opacities[i] = s.absent != Real(0) ? Real(0) : w / s.opacity;
}

// out = the sum of `count` numbers of each slot of splat i, from `first` on.
template <typename Real>
inline void sum_slots(const BlendBackwardParams<Real>& p, int64_t i, int64_t first, int count, Real* out) {
    for (int m = 0; m < count; ++m) out[m] = Real(0);
    for (int64_t k = p.splat_offsets[i]; k < p.splat_offsets[i + 1]; ++k) {
        const Real* slot = p.slots + k * p.slot_size + first;
        for (int m = 0; m < count; ++m) out[m] += slot[m];
    }
}

template <typename Real>
bool write_splats(const BlendBackwardParams<Real>& p, bool geometry, Pieces& pieces) {
    const int channels = p.tiles.channels;
    const int64_t behind_channels = slot_moments + channels;
    const int64_t absolute = behind_channels + (p.grad_depth ? 1 : 0);
    const bool usual = geometry && p.grad_colors && channels == 3;
    return pieces.blocks(p.tiles.count, splat_block, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            if (usual) {  // in one pass of a length that is known here
                Real sums[slot_moments + 3];
                sum_slots(p, i, 0, slot_moments + 3, sums);
                write_moments(p, i, sums);
                std::memcpy(p.grad_colors + 3 * i, sums + slot_moments, 3 * sizeof(Real));
            } else {
                Real moments[slot_moments];
                if (geometry) {
                    sum_slots(p, i, 0, slot_moments, moments);
                    write_moments(p, i, moments);
                }
                if (p.grad_colors) sum_slots(p, i, slot_moments, channels, p.grad_colors + i * channels);
            }
            if (p.grad_depths) sum_slots(p, i, behind_channels, 1, p.grad_depths + i);
            if (p.absolute_gradient) sum_slots(p, i, absolute, 2, p.absolute_gradient + 2 * i);
        }
    });
}

}  // namespace

template <typename Real>
void blend_backward(const BlendBackwardParams<Real>& p) {
    const TileParams<Real>& t = p.tiles;
    const bool absolute = p.absolute_gradient != nullptr;
    const bool depth = p.grad_depth != nullptr;
    const bool geometry = absolute || p.grad_means_2d || p.grad_conics || p.grad_opacities || p.grad_depths;
    const TileFunction<Real> backward = t.channels == 3 ? tile_function<Real, 3>(geometry, depth, absolute)
                                                        : tile_function<Real, 0>(geometry, depth, absolute);
    const bool splats = geometry || p.grad_colors;
    const int tiles = ((t.width + tile_size - 1) / tile_size) * ((t.height + tile_size - 1) / tile_size);
    const auto do_tile = [&](int64_t index, int worker) {
        const int tile = t.tile_order[index];
        const TileGeometry<Real> g(tile, t.width, t.height);
        if (p.grad_background) background_of_tile(p, g, tile);
        const int64_t begin = t.tile_offsets[tile], end = t.tile_offsets[tile + 1];
        if (!splats || begin == end) return;
        fetch_pixels(p, g);
        backward(p, g, begin, end, t.workspace + worker * t.workspace_stride);
    };
    Pieces pieces(p.pieces);
    if (!pieces.loop(tiles, t.workers, do_tile)) return;
    if (splats && !write_splats(p, geometry, pieces)) return;
    if (p.grad_background && !t.background_per_pixel) sum_background(p, tiles);
    pieces.finish();
}

SPLATSCOPE_INSTANTIATE(blend_backward, BlendBackwardParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
