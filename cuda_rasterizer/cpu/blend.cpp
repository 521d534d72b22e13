// Front-to-back compositing, a tile at a time.
//
// A tile's state (transmittance, depth, colours) lives in the first-level cache. Each splat of the list
// visits the rows within its reach, a vector of pixels at once; rows whose pixels have all stopped are
// skipped. A pixel that has stopped is marked by a negative transmittance, which no later test can pass.

#include <cstring>

#include "kernels.h"
#include "parallel.h"
#include "tile.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

// One tile's pixels. Planes are tile_pixels numbers each, row after row.
template <typename Real>
struct TileState {
    alignas(64) Real transmittance[tile_pixels];
    alignas(64) Real depth[tile_pixels];
    Real* color;  // (channels, tile_pixels), in the worker's workspace
    int32_t stops[tile_pixels];
    unsigned live[TileGeometry<Real>::chunks];  // rows (bits) of each chunk that still take light

    TileState(const TileGeometry<Real>& g, int channels, int32_t list_length, Real* workspace)
        : color(workspace) {
        std::memset(depth, 0, sizeof depth);
        std::memset(color, 0, size_t(channels) * tile_pixels * sizeof(Real));
        for (int i = 0; i < tile_pixels; ++i) {
            const bool inside = i % tile_size < g.columns && i / tile_size < g.rows;
            transmittance[i] = inside ? Real(1) : Real(-1);
            stops[i] = inside ? list_length : 0;
        }
        const unsigned rows = (1u << g.rows) - 1;
        for (int c = 0; c < g.chunks; ++c) live[c] = c * g.width < g.columns ? rows : 0;
    }

    bool done() const {
        unsigned any = 0;
        for (unsigned rows : live) any |= rows;
        return any == 0;
    }

    // Rare: some pixels of a vector stop before instance k.
    void stop_pixels(int chunk, int row, unsigned lanes, int32_t k) {
        constexpr int width = TileGeometry<Real>::width;
        Real* t = transmittance + row * tile_size + chunk * width;
        bool any_left = false;
        for (int i = 0; i < width; ++i) {
            if (lanes >> i & 1) {
                t[i] = -t[i];
                stops[row * tile_size + chunk * width + i] = k;
            }
            any_left |= t[i] > Real(0);
        }
        if (!any_left) live[chunk] &= ~(1u << row);
    }
};

// Adds one splat to the rows of one chunk. Channels is the number of colours, or 0 where only `channels`
// knows.
template <typename Real, int Channels>
inline void blend_chunk(TileState<Real>& state, const SplatRecord<Real>& s, const Real* color, int channels,
                        const TileGeometry<Real>& g, const Limits<Real>& limits, int chunk, unsigned rows,
                        int32_t k) {
    using Vector = typename Simd<Real>::Vector;
    const ColumnTerms<Real> column(s, g.distances(s.mean_x, chunk));
    const Vector threshold = broadcast(s.threshold);
    const int colors = Channels ? Channels : channels;
    for (; rows; rows &= rows - 1) {
        const int row = __builtin_ctz(rows);
        const Vector exponent = column.exponent(s, g.row_centers[row] - s.mean_y);
        if (!lanes_of(exponent >= threshold)) continue;
        const Alpha<Real> alpha = evaluate_alpha(s, exponent, limits);
        const int at = row * tile_size + chunk * g.width;
        const Vector before = load<Vector>(state.transmittance + at);
        const Vector after = before * (Real(1) - alpha.value);
        const auto drawn = alpha.hit & (after >= limits.stop);
        const Vector weight = drawn ? before * alpha.value : Vector{};
        for (int c = 0; c < colors; ++c) {
            Real* plane = state.color + c * tile_pixels + at;
            store(plane, fused(weight, broadcast(color[c]), load<Vector>(plane)));
        }
        store(state.depth + at, fused(weight, broadcast(s.depth), load<Vector>(state.depth + at)));
        store(state.transmittance + at, drawn ? after : before);
        const unsigned stopping = lanes_of(alpha.hit & ~drawn & (before > Vector{}));
        if (stopping) state.stop_pixels(chunk, row, stopping, k);
    }
}

template <typename Real, int Channels>
void blend_list(const BlendParams<Real>& p, TileState<Real>& state, const TileGeometry<Real>& g,
                int64_t begin, int64_t end) {
    const TileParams<Real>& t = p.tiles;
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    const Limits<Real> limits(t.cutoffs);
    for (int64_t k = begin; k < end; ++k) {
        const int32_t splat = t.instance_splats[k];
        if (k + 8 < end) __builtin_prefetch(records + t.instance_splats[k + 8]);
        const SplatRecord<Real>& s = records[splat];
        const Real* color = t.channels <= record_channels ? s.color : t.colors + int64_t(splat) * t.channels;
        const unsigned rows = g.rows_within(s.mean_y, s.reach_y);
        unsigned visited = 0;
        for (int chunk = 0; chunk < g.chunks; ++chunk) {
            const unsigned live = rows & state.live[chunk];
            visited |= state.live[chunk];
            if (live && g.reaches(s, chunk))
                blend_chunk<Real, Channels>(state, s, color, t.channels, g, limits, chunk, live,
                                            int32_t(k - begin));
        }
        if (!visited) return;
    }
}

template <typename Real>
const Real* background_of(const TileParams<Real>& t, int64_t pixel) {
    if (!t.background) return nullptr;
    return t.background_per_pixel ? t.background + pixel * t.channels : t.background;
}

template <typename Real>
void write_tile(const BlendParams<Real>& p, const TileState<Real>& state, const TileGeometry<Real>& g) {
    const TileParams<Real>& t = p.tiles;
    for (int y = 0; y < g.rows; ++y) {
        for (int x = 0; x < g.columns; ++x) {
            const int at = y * tile_size + x;
            const int64_t pixel = int64_t(g.y0 + y) * t.width + g.x0 + x;
            const Real left = std::abs(state.transmittance[at]);
            const Real* background = background_of(t, pixel);
            for (int c = 0; c < t.channels; ++c) {
                const Real behind = background ? left * background[c] : Real(0);
                p.color[pixel * t.channels + c] = state.color[c * tile_pixels + at] + behind;
            }
            p.alpha[pixel] = Real(1) - left;
            p.depth[pixel] = state.depth[at];
            if (p.transmittance) p.transmittance[pixel] = left;
            if (p.stops) p.stops[pixel] = state.stops[at];
        }
    }
}

}  // namespace

template <typename Real>
void blend(const BlendParams<Real>& p) {
    const TileParams<Real>& t = p.tiles;
    const int tiles = ((t.width + tile_size - 1) / tile_size) * ((t.height + tile_size - 1) / tile_size);
    parallel(tiles, t.workers, [&](int64_t index, int worker) {
        const int tile = t.tile_order[index];
        const int64_t begin = t.tile_offsets[tile], end = t.tile_offsets[tile + 1];
        const TileGeometry<Real> geometry(tile, t.width, t.height);
        TileState<Real> state(geometry, t.channels, int32_t(end - begin),
                              t.workspace + worker * t.workspace_stride);
        if (t.channels == 3)
            blend_list<Real, 3>(p, state, geometry, begin, end);
        else
            blend_list<Real, 0>(p, state, geometry, begin, end);
        write_tile(p, state, geometry);
    });
}

SPLATSCOPE_INSTANTIATE(blend, BlendParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
