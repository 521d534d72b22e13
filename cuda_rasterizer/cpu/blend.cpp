// Front-to-back compositing, a tile at a time.
//
// A tile's state (transmittance, colours, depth where it is wanted) lives in the first-level cache. Each
// splat of the list visits the vectors of pixels in which it can count and which still take light. A pixel
// that has stopped is marked by a negative transmittance, which no later test can pass.

#include <cstring>

#include "kernels.h"
#include "parallel.h"
#include "tile.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

// One tile's pixels. Planes are tile_pixels numbers each, vector after vector.
template <typename Real>
struct TileState {
    alignas(64) Real transmittance[tile_pixels];
    alignas(64) Real depth[tile_pixels];  // untouched where nobody asks for it
    Real* color;                          // (channels, tile_pixels), in the worker's workspace
    int32_t stops[tile_pixels];
    VectorSet<Real> live;  // those that still take light

    TileState(const TileGeometry<Real>& g, int channels, bool with_depth, int32_t list_length,
              Real* workspace)
        : color(workspace) {
        if (with_depth) std::memset(depth, 0, sizeof depth);
        std::memset(color, 0, size_t(channels) * tile_pixels * sizeof(Real));
        for (Real& t : transmittance) t = Real(1);
        for (int32_t& stop : stops) stop = list_length;
        for (int y = 0; y < tile_size && g.cut; ++y) {
            for (int x = y < g.rows ? g.columns : 0; x < tile_size; ++x) {
                transmittance[g.place(x, y)] = Real(-1);
                stops[g.place(x, y)] = 0;
            }
        }
        for (int chunk = 0; chunk < g.chunks; ++chunk)
            if (chunk * g.width < g.columns) live.add(chunk * tile_size, (uint64_t(1) << g.rows) - 1);
    }

    // Rare: some pixels of a vector stop before instance k.
    void stop_pixels(int vector, unsigned lanes, int32_t k) {
        constexpr int width = TileGeometry<Real>::width;
        Real* t = transmittance + vector * width;
        bool any_left = false;
        for (int i = 0; i < width; ++i) {
            if (lanes >> i & 1) {
                t[i] = -t[i];
                stops[vector * width + i] = k;
            }
            any_left |= t[i] > Real(0);
        }
        if (!any_left) live.remove(vector);
    }
};

// Adds one splat to some vectors. Channels is the number of colours, or 0 where only `channels` knows.
template <typename Real, int Channels, bool Depth>
inline void blend_splat(TileState<Real>& state, const VectorSet<Real>& vectors, const SplatRecord<Real>& s,
                        const RowDistances<Real>& rows, const Real* color, int channels,
                        const TileGeometry<Real>& g, const Limits<Real>& limits, int32_t k) {
    using Vector = typename Simd<Real>::Vector;
    const Vector depth = broadcast(s.depth);
    const int colors = Channels ? Channels : channels;
    Vector fixed_colors[Channels ? Channels : 1];
    for (int i = 0; i < Channels; ++i) fixed_colors[i] = broadcast(color[i]);
    // First every alpha, then what follows from it (see backward_splat).
    Vector alphas[VectorSet<Real>::size];
    int count = 0;
    const ColumnTerms<Real> columns(s, g);
    const AlphaTerms<Real> terms(s, limits);
    vectors.for_each([&](int vector) {
        const Vector y = broadcast(rows.y[vector % tile_size]);
        alphas[count++] = terms.alpha(columns.exponent(vector / tile_size, terms.c, y));
    });
    count = 0;
    vectors.for_each([&](int vector) {
        const int at = vector * g.width;
        const Vector alpha = alphas[count++];
        const Vector before = load<Vector>(state.transmittance + at);
        const Vector after = before * (Real(1) - alpha);
        const auto drawn = after >= limits.stop;
        const Vector weight = where(drawn, before * alpha);
        for (int i = 0; i < colors; ++i) {
            Real* plane = state.color + i * tile_pixels + at;
            const Vector light = Channels ? fixed_colors[Channels ? i : 0] : broadcast(color[i]);
            store(plane, fused(weight, light, load<Vector>(plane)));
        }
        if (Depth) store(state.depth + at, fused(weight, depth, load<Vector>(state.depth + at)));
        store(state.transmittance + at, drawn ? after : before);
        const unsigned stopping = lanes_of(~drawn & (before > Vector{}));
        if (stopping) state.stop_pixels(vector, stopping, k);
    });
}

template <typename Real, int Channels, bool Depth>
void blend_list(const BlendParams<Real>& p, TileState<Real>& state, const TileGeometry<Real>& g,
                int64_t begin, int64_t end) {
    const TileParams<Real>& t = p.tiles;
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    const Limits<Real> limits(t.cutoffs);
    for (int64_t k = begin; k < end && !state.live.is_empty(); ++k) {
        const int32_t splat = t.instance_splats[k];
        if (k + 8 < end) __builtin_prefetch(records + t.instance_splats[k + 8]);
        const SplatRecord<Real>& s = records[splat];
        const Real* color = t.channels <= record_channels ? s.color : t.colors + int64_t(splat) * t.channels;
        const RowDistances<Real> rows(s, g);
        const VectorSet<Real> vectors = vectors_of(g, s, rows) & state.live;
        blend_splat<Real, Channels, Depth>(state, vectors, s, rows, color, t.channels, g, limits,
                                           int32_t(k - begin));
    }
}

template <typename Real>
const Real* background_of(const TileParams<Real>& t, int64_t pixel) {
    if (!t.background) return nullptr;
    return t.background_per_pixel ? t.background + pixel * t.channels : t.background;
}

// One vector of pixels, all of them in the image, three colours.
template <typename Real>
inline void write_vector(const BlendParams<Real>& p, const TileState<Real>& state, int at, int64_t pixel) {
    using Vector = typename Simd<Real>::Vector;
    const Vector transmittance = load<Vector>(state.transmittance + at);
    const Vector left = maximum(transmittance, -transmittance);
    Vector colors[3], behind[3] = {};
    if (p.tiles.background) {
        const Real* background = background_of(p.tiles, pixel);
        if (p.tiles.background_per_pixel)
            split_three<Real>(background, behind);
        else
            for (int c = 0; c < 3; ++c) behind[c] = broadcast(background[c]);
    }
    for (int c = 0; c < 3; ++c)
        colors[c] = load<Vector>(state.color + c * tile_pixels + at) + left * behind[c];
    join_three<Real>(p.color + 3 * pixel, colors);
    store_anywhere(p.alpha + pixel, Real(1) - left);
    if (p.transmittance) store_anywhere(p.transmittance + pixel, left);
    if (p.depth) store_anywhere(p.depth + pixel, load<Vector>(state.depth + at));
    if (p.stops) std::memcpy(p.stops + pixel, state.stops + at, Simd<Real>::width * sizeof(int32_t));
}

template <typename Real>
inline void write_pixel(const BlendParams<Real>& p, const TileState<Real>& state, int at, int64_t pixel) {
    const int channels = p.tiles.channels;
    const Real left = std::abs(state.transmittance[at]);
    const Real* background = background_of(p.tiles, pixel);
    for (int c = 0; c < channels; ++c)
        p.color[pixel * channels + c] =
            state.color[c * tile_pixels + at] + (background ? left * background[c] : Real(0));
    p.alpha[pixel] = Real(1) - left;
    if (p.transmittance) p.transmittance[pixel] = left;
    if (p.depth) p.depth[pixel] = state.depth[at];
    if (p.stops) p.stops[pixel] = state.stops[at];
}

template <typename Real>
void write_tile(const BlendParams<Real>& p, const TileState<Real>& state, const TileGeometry<Real>& g) {
    for (int y = 0; y < g.rows; ++y) {
        const int64_t row = int64_t(g.y0 + y) * p.tiles.width + g.x0;
        int x = 0;
        for (; p.tiles.channels == 3 && x + g.width <= g.columns; x += g.width)
            write_vector(p, state, g.place(x, y), row + x);
        for (; x < g.columns; ++x) write_pixel(p, state, g.place(x, y), row + x);
    }
}

template <typename Real, int Channels, bool Depth>
void blend_tile(const BlendParams<Real>& p, int tile, int worker) {
    const TileParams<Real>& t = p.tiles;
    const int64_t begin = t.tile_offsets[tile], end = t.tile_offsets[tile + 1];
    const TileGeometry<Real> geometry(tile, t.width, t.height);
    TileState<Real> state(geometry, t.channels, Depth, int32_t(end - begin),
                          t.workspace + worker * t.workspace_stride);
    blend_list<Real, Channels, Depth>(p, state, geometry, begin, end);
    write_tile(p, state, geometry);
}

template <typename Real, bool Depth>
auto tile_function_of(const TileParams<Real>& t) {
    return t.channels == 3 ? blend_tile<Real, 3, Depth> : blend_tile<Real, 0, Depth>;
}

}  // namespace

template <typename Real>
void blend(const BlendParams<Real>& p) {
    const TileParams<Real>& t = p.tiles;
    const auto tile_function = p.depth ? tile_function_of<Real, true>(t) : tile_function_of<Real, false>(t);
    const int tiles = ((t.width + tile_size - 1) / tile_size) * ((t.height + tile_size - 1) / tile_size);
    Pieces pieces(p.pieces);
    const auto do_tile = [&](int64_t index, int worker) { tile_function(p, t.tile_order[index], worker); };
    if (pieces.loop(tiles, t.workers, do_tile)) pieces.finish();
}

SPLATSCOPE_INSTANTIATE(blend, BlendParams);

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
