// The way back through compositing: back to front, a tile at a time.
//
// Transmittance is recovered by division. As the gradient g of a pixel is fixed, what lies behind a splat
// enters only through one number, S = sum over what is behind of T alpha (c . g), background included; then
// dL/dalpha = T (c . g) - S / (1 - alpha). Depth and alpha are channels of value z and 1 over background 0.
// Each splat leaves six moments of w = dL/dexponent and a sum per channel in a slot of its own for each tile;
// the slots of a splat are summed in a fixed order afterwards: no atomics, the same bits for any number of
// threads.

#include <cstring>

#include "kernels.h"
#include "parallel.h"
#include "tile.h"

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

template <typename Real>
struct BackwardState {
    using Integer = typename Simd<Real>::Integer;
    static constexpr int width = Simd<Real>::width;
    static constexpr int chunks = tile_size / width;

    alignas(64) Real transmittance[tile_pixels];
    alignas(64) Real behind[tile_pixels];  // S
    alignas(64) Real grad_alpha[tile_pixels];
    alignas(64) Real grad_depth[tile_pixels];
    alignas(64) Integer stops[tile_pixels];
    int32_t row_stops[chunks][tile_size];  // the longest of each vector
    int32_t longest = 0;
    Real* grad_color;  // (channels, tile_pixels), in the worker's workspace
    Real* sums;        // (channels, width): one splat's colour sums

    BackwardState(const BlendBackwardParams<Real>& p, const TileGeometry<Real>& g, Real* workspace)
        : grad_color(workspace), sums(workspace + int64_t(p.tiles.channels) * tile_pixels) {
        std::memset(row_stops, 0, sizeof row_stops);
        for (int i = 0; i < tile_pixels; ++i) {
            const int x = i % tile_size, y = i / tile_size;
            if (x < g.columns && y < g.rows)
                load_pixel(p, int64_t(g.y0 + y) * p.tiles.width + g.x0 + x, i);
            else
                clear_pixel(p.tiles.channels, i);
        }
    }

  private:
    void clear_pixel(int channels, int i) {
        transmittance[i] = Real(1);
        behind[i] = grad_alpha[i] = grad_depth[i] = Real(0);
        stops[i] = 0;
        for (int c = 0; c < channels; ++c) grad_color[c * tile_pixels + i] = Real(0);
    }

    void load_pixel(const BlendBackwardParams<Real>& p, int64_t pixel, int i) {
        const TileParams<Real>& t = p.tiles;
        clear_pixel(t.channels, i);
        transmittance[i] = p.transmittance[pixel];
        stops[i] = p.stops[pixel];
        if (p.grad_alpha) grad_alpha[i] = p.grad_alpha[pixel];
        if (p.grad_depth) grad_depth[i] = p.grad_depth[pixel];
        const Real* background =
            t.background ? t.background + (t.background_per_pixel ? pixel * t.channels : 0) : nullptr;
        Real through = Real(0);
        for (int c = 0; p.grad_color && c < t.channels; ++c) {
            const Real g = p.grad_color[pixel * t.channels + c];
            grad_color[c * tile_pixels + i] = g;
            if (background) through += g * background[c];
        }
        behind[i] = transmittance[i] * through;
        int32_t& row_stop = row_stops[i % tile_size / width][i / tile_size];
        if (p.stops[pixel] > row_stop) row_stop = p.stops[pixel];
        if (p.stops[pixel] > longest) longest = p.stops[pixel];
    }
};

// Sums of one splat over the vectors of one tile, one lane for each column of a chunk.
template <typename Real>
struct ColumnSums {
    using Vector = typename Simd<Real>::Vector;
    Vector w{}, wy{}, wyy{}, depth{}, absolute_x{}, absolute_y{};
};

template <typename Real, int Channels, typename Wanted>
inline void backward_chunk(BackwardState<Real>& state, const SplatRecord<Real>& s, const Real* color,
                           int channels, const TileGeometry<Real>& g, const Limits<Real>& limits, int chunk,
                           unsigned rows, int32_t k, const ColumnTerms<Real>& column, ColumnSums<Real>& sums,
                           typename Simd<Real>::Vector* color_sums) {
    using Vector = typename Simd<Real>::Vector;
    using Mask = typename Simd<Real>::Mask;
    const Vector threshold = broadcast(s.threshold);
    const Mask place = Mask{} + k;
    const int colors = Channels ? Channels : channels;
    for (; rows; rows &= rows - 1) {
        const int row = __builtin_ctz(rows);
        if (k >= state.row_stops[chunk][row]) continue;
        const Real dy = g.row_centers[row] - s.mean_y;
        const Vector exponent = column.exponent(s, dy);
        if (!lanes_of(exponent >= threshold)) continue;
        const Alpha<Real> alpha = evaluate_alpha(s, exponent, limits);
        const int at = row * tile_size + chunk * g.width;
        const auto drawn = alpha.hit & (place < load<Mask>(state.stops + at));
        const Vector value = drawn ? alpha.value : Vector{};
        const Vector inverse = Real(1) / (Real(1) - value);
        const Vector before = load<Vector>(state.transmittance + at) * inverse;
        const Vector weight = before * value;
        store(state.transmittance + at, before);

        Vector along = load<Vector>(state.grad_alpha + at);
        for (int c = 0; c < colors; ++c) {
            const Vector grad = load<Vector>(state.grad_color + c * tile_pixels + at);
            color_sums[c] = fused(weight, grad, color_sums[c]);
            if (Wanted::geometry) along = fused(broadcast(color[c]), grad, along);
        }
        if (!Wanted::geometry) continue;
        if (Wanted::depth) {
            const Vector grad = load<Vector>(state.grad_depth + at);
            sums.depth = fused(weight, grad, sums.depth);
            along = fused(broadcast(s.depth), grad, along);
        }
        const Vector behind = load<Vector>(state.behind + at);
        const Vector grad_alpha = before * along - behind * inverse;
        store(state.behind + at, fused(weight, along, behind));

        // At the ceiling alpha no longer follows the exponent.
        const auto follows = drawn & (alpha.unlimited < limits.ceiling);
        const Vector w = follows ? grad_alpha * value : Vector{};
        const Vector y = broadcast(dy);
        const Vector wy = w * y;
        sums.w += w;
        sums.wy += wy;
        sums.wyy = fused(wy, y, sums.wyy);
        if (Wanted::absolute) {
            // The exponent's slope along each axis, times w; signs do not matter.
            const Vector x_slope = w * fused(broadcast(2 * s.a), column.dx, broadcast(s.b * dy));
            const Vector y_slope = w * fused(broadcast(s.b), column.dx, broadcast(2 * s.c * dy));
            sums.absolute_x += x_slope < Vector{} ? -x_slope : x_slope;
            sums.absolute_y += y_slope < Vector{} ? -y_slope : y_slope;
        }
    }
}

// One splat in one tile, into its slot.
template <typename Real, int Channels, typename Wanted>
inline void backward_splat(BackwardState<Real>& state, const SplatRecord<Real>& s, const Real* color,
                           int channels, const TileGeometry<Real>& g, const Limits<Real>& limits, int32_t k,
                           Real* slot) {
    using Vector = typename Simd<Real>::Vector;
    const int colors = Channels ? Channels : channels;
    Vector local_sums[Channels ? Channels : 1];
    Vector* color_sums = Channels ? local_sums : reinterpret_cast<Vector*>(state.sums);
    for (int c = 0; c < colors; ++c) color_sums[c] = Vector{};
    Vector w{}, wx{}, wy{}, wxx{}, wxy{}, wyy{}, depth{}, absolute_x{}, absolute_y{};
    const unsigned rows = g.rows_within(s.mean_y, s.reach_y) & ((1u << g.rows) - 1);
    for (int chunk = 0; chunk < g.chunks; ++chunk) {
        if (!g.reaches(s, chunk)) continue;
        const ColumnTerms<Real> column(s, g.distances(s.mean_x, chunk));
        ColumnSums<Real> sums;
        backward_chunk<Real, Channels, Wanted>(state, s, color, channels, g, limits, chunk, rows, k, column,
                                               sums, color_sums);
        // Along a column dx is constant, so the moments in x come after the loop over rows.
        const Vector x = sums.w * column.dx;
        w += sums.w;
        wx += x;
        wxx = fused(x, column.dx, wxx);
        wy += sums.wy;
        wxy = fused(sums.wy, column.dx, wxy);
        wyy += sums.wyy;
        depth += sums.depth;
        absolute_x += sums.absolute_x;
        absolute_y += sums.absolute_y;
    }
    if (Wanted::geometry) {
        slot[0] = sum_of<Real>(w);
        slot[1] = sum_of<Real>(wx);
        slot[2] = sum_of<Real>(wy);
        slot[3] = sum_of<Real>(wxx);
        slot[4] = sum_of<Real>(wxy);
        slot[5] = sum_of<Real>(wyy);
    }
    slot += slot_moments;
    for (int c = 0; c < colors; ++c) *slot++ = sum_of<Real>(color_sums[c]);
    if (Wanted::depth) *slot++ = sum_of<Real>(depth);
    if (Wanted::absolute) {
        slot[0] = sum_of<Real>(absolute_x);
        slot[1] = sum_of<Real>(absolute_y);
    }
}

// Instances whose memory is asked for ahead of time.
constexpr int64_t lookahead = 6;

template <typename Real, int Channels, typename Wanted>
void backward_list(const BlendBackwardParams<Real>& p, BackwardState<Real>& state,
                   const TileGeometry<Real>& g, int64_t begin, int64_t end) {
    const TileParams<Real>& t = p.tiles;
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    const Limits<Real> limits(t.cutoffs);
    for (int64_t k = end - 1; k >= begin; --k) {
        const int32_t splat = t.instance_splats[k];
        Real* slot = p.slots + p.instance_slots[k] * p.slot_size;
        const int32_t place = int32_t(k - begin);
        if (place >= state.longest) {
            std::memset(slot, 0, size_t(p.slot_size) * sizeof(Real));
            continue;
        }
        if (k >= begin + lookahead) {
            __builtin_prefetch(records + t.instance_splats[k - lookahead]);
            __builtin_prefetch(p.slots + p.instance_slots[k - lookahead] * p.slot_size, 1);
        }
        const SplatRecord<Real>& s = records[splat];
        const Real* color = t.channels <= record_channels ? s.color : t.colors + int64_t(splat) * t.channels;
        backward_splat<Real, Channels, Wanted>(state, s, color, t.channels, g, limits, place, slot);
    }
}

template <typename Real>
using ListFunction = void (*)(const BlendBackwardParams<Real>&, BackwardState<Real>&,
                              const TileGeometry<Real>&, int64_t, int64_t);

template <typename Real, int Channels>
ListFunction<Real> list_function(bool geometry, bool depth, bool absolute) {
    if (!geometry) return backward_list<Real, Channels, ColorsOnly>;
    if (depth && absolute) return backward_list<Real, Channels, Everything>;
    if (depth) return backward_list<Real, Channels, GeometryAndDepth>;
    if (absolute) return backward_list<Real, Channels, GeometryAndAbsolute>;
    return backward_list<Real, Channels, Geometry>;
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
void sum_slots(const BlendBackwardParams<Real>& p, int64_t i, int64_t first, int count, Real* out) {
    for (int m = 0; m < count; ++m) out[m] = Real(0);
    for (int64_t k = p.splat_offsets[i]; k < p.splat_offsets[i + 1]; ++k) {
        const Real* slot = p.slots + k * p.slot_size + first;
        for (int m = 0; m < count; ++m) out[m] += slot[m];
    }
}

template <typename Real>
void write_splats(const BlendBackwardParams<Real>& p, bool geometry) {
    const int channels = p.tiles.channels;
    const int64_t behind_channels = slot_moments + channels;
    const int64_t absolute = behind_channels + (p.grad_depth ? 1 : 0);
    parallel_blocks(p.tiles.count, splat_block, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Real moments[slot_moments];
            if (geometry) {
                sum_slots(p, i, 0, slot_moments, moments);
                write_moments(p, i, moments);
            }
            if (p.grad_colors) sum_slots(p, i, slot_moments, channels, p.grad_colors + i * channels);
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
    const ListFunction<Real> backward = t.channels == 3 ? list_function<Real, 3>(geometry, depth, absolute)
                                                        : list_function<Real, 0>(geometry, depth, absolute);
    const bool splats = geometry || p.grad_colors;
    const int tiles = ((t.width + tile_size - 1) / tile_size) * ((t.height + tile_size - 1) / tile_size);
    parallel(tiles, t.workers, [&](int64_t index, int worker) {
        const int tile = t.tile_order[index];
        const TileGeometry<Real> g(tile, t.width, t.height);
        if (p.grad_background) background_of_tile(p, g, tile);
        const int64_t begin = t.tile_offsets[tile], end = t.tile_offsets[tile + 1];
        if (!splats || begin == end) return;
        BackwardState<Real> state(p, g, t.workspace + worker * t.workspace_stride);
        backward(p, state, g, begin, end);
    });
    if (p.grad_background && !t.background_per_pixel) sum_background(p, tiles);
    if (splats) write_splats(p, geometry);
}

SPLATSCOPE_INSTANTIATE(blend_backward, BlendBackwardParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
