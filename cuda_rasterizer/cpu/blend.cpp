// Front-to-back compositing, a tile at a time.
//
// A tile's state (transmittance, colours, depth where it is wanted) lives in the first-level cache. Each
// splat of the list visits the vectors of pixels in which it can count and which still take light.

#include <cstring>

#include "alphas.h"
#include "kernels.h"
#include "parallel.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

// One tile's pixels. Planes are tile_pixels numbers each, vector after vector. A pixel that has stopped, or
// lies outside the image, has the transmittance 0, so that no splat reaches it; what it had left is in
// `left`. Channels is the number of colours, or 0 where only the caller knows (see BackwardState).
template <typename Real, int Channels>
struct TileState {
    static constexpr int width = TileGeometry<Real>::width;

    alignas(64) Real transmittance[tile_pixels];
    uint32_t taking[VectorSet<Real>::size];  // a bit for each pixel of a vector that still takes light
    alignas(64) Real alphas[tile_pixels];    // of the present splat
    alignas(64) Real fixed_colors[Channels ? Channels * tile_pixels : 1];
    alignas(64) Real left[tile_pixels];
    alignas(64) Real depth[tile_pixels];  // untouched where nobody asks for it
    Real* workspace;  // the worker's; without a constant number of channels: the colours' planes
    int32_t stops[tile_pixels];
    VectorSet<Real> live;  // the vectors with such pixels

    TileState(const TileGeometry<Real>& g, int channels, bool with_depth, int32_t list_length,
              Real* workspace)
        : workspace(workspace) {
        if (with_depth) std::memset(depth, 0, sizeof depth);
        std::memset(color(0), 0, size_t(channels) * tile_pixels * sizeof(Real));
        std::memset(left, 0, sizeof left);
        for (Real& t : transmittance) t = Real(1);
        for (int32_t& stop : stops) stop = list_length;
        for (uint32_t& lanes : taking) lanes = (1u << width) - 1;
        for (int chunk = 0; chunk < g.chunks; ++chunk)
            live.add(chunk * tile_size, (uint64_t(1) << tile_size) - 1);
        for (int y = 0; y < tile_size && g.cut; ++y)
            for (int x = y < g.rows ? g.columns : 0; x < tile_size; ++x) stop_pixel(g.place(x, y), 0);
    }

    Real* color(int channel) { return (Channels ? fixed_colors : workspace) + channel * tile_pixels; }
    const Real* color(int channel) const {
        return (Channels ? fixed_colors : workspace) + channel * tile_pixels;
    }

    // Rare: some pixels of a vector stop before instance k.
    void stop_pixels(int64_t vector, unsigned lanes, int32_t k) {
        for (; lanes; lanes &= lanes - 1) stop_pixel(vector * width + __builtin_ctz(lanes), k);
    }

  private:
    void stop_pixel(int64_t place, int32_t k) {
        left[place] = transmittance[place];
        transmittance[place] = Real(0);
        stops[place] = k;
        uint32_t& lanes = taking[place / width];
        lanes &= ~(1u << place % width);
        if (!lanes) live.remove(place / width);
    }
};

// Adds one splat to some vectors; how its alphas were found is returned. Channels is the number of colours,
// or 0 where only `channels` knows.
template <typename Real, int Channels, bool Depth>
inline int blend_splat(TileState<Real, Channels>& state, const VectorSet<Real>& vectors,
                       const SplatRecord<Real>& s, const RowDistances<Real>& rows, const Real* color,
                       int channels, const TileGeometry<Real>& g, const Limits<Real>& limits, int32_t k) {
    using Vector = typename Simd<Real>::Vector;
    const Vector depth = broadcast(s.depth);
    const int colors = Channels ? Channels : channels;
    Vector fixed_colors[Channels ? Channels : 1];
    for (int i = 0; i < Channels; ++i) fixed_colors[i] = broadcast(color[i]);
    // First every alpha, then what follows from it (see backward_splat).
    const int way = find_alphas(s, g, rows, limits, vectors, reinterpret_cast<Vector*>(state.alphas));
    const auto add = [&](int64_t vector) {
        const int64_t at = vector * g.width;
        const Vector alpha = load<Vector>(state.alphas + at), through = Real(1) - alpha;
        Vector before = load<Vector>(state.transmittance + at);
        const unsigned stopping = lanes_below(before * through, limits.stop) & state.taking[vector];
        if (__builtin_expect(stopping != 0, 0)) {  // out of the way, so that the others do not jump
            state.stop_pixels(vector, stopping, k);
            before = load<Vector>(state.transmittance + at);
        }
        const Vector weight = before * alpha;
        for (int i = 0; i < colors; ++i) {
            Real* plane = state.color(i) + at;
            const Vector light = Channels ? fixed_colors[Channels ? i : 0] : broadcast(color[i]);
            store(plane, fused(weight, light, load<Vector>(plane)));
        }
        if (Depth) store(state.depth + at, fused(weight, depth, load<Vector>(state.depth + at)));
        store(state.transmittance + at, before * through);
    };
    for (int chunk = 0; chunk < g.chunks; ++chunk) vectors.for_each_between(chunk, add);
    return way;
}

template <typename Real, int Channels, bool Depth>
void blend_list(const BlendParams<Real>& p, TileState<Real, Channels>& state, const TileGeometry<Real>& g,
                int64_t begin, int64_t end) {
    const TileParams<Real>& t = p.tiles;
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    const Limits<Real> limits(t.cutoffs);
    auto* const touches = reinterpret_cast<Touch<Real>*>(t.touches);
    for (int64_t k = begin; k < end && !state.live.is_empty(); ++k) {
        const int32_t splat = t.instance_splats[k];
        if (k + 8 < end) __builtin_prefetch(records + t.instance_splats[k + 8]);
        const SplatRecord<Real>& s = records[splat];
        const Real* color = t.channels <= record_channels ? s.color : t.colors + int64_t(splat) * t.channels;
        const RowDistances<Real> rows(s, g);
        const VectorSet<Real> vectors = vectors_of(g, s, rows) & state.live;
        if (touches) touches[k].note(vectors);
        if (vectors.is_empty()) continue;
        const int way = blend_splat<Real, Channels, Depth>(state, vectors, s, rows, color, t.channels, g,
                                                           limits, int32_t(k - begin));
        if (touches) touches[k].way = way;
    }
}

template <typename Real>
const Real* background_of(const TileParams<Real>& t, int64_t pixel) {
    if (!t.background) return nullptr;
    return t.background_per_pixel ? t.background + pixel * t.channels : t.background;
}

// One vector of pixels, all of them in the image, three colours.
template <typename Real, int Channels>
inline void write_vector(const BlendParams<Real>& p, const TileState<Real, Channels>& state, int at,
                         int64_t pixel) {
    using Vector = typename Simd<Real>::Vector;
    const Vector left = load<Vector>(state.transmittance + at) + load<Vector>(state.left + at);
    Vector colors[3], behind[3] = {};
    if (p.tiles.background) {
        const Real* background = background_of(p.tiles, pixel);
        if (p.tiles.background_per_pixel)
            split_three<Real>(background, behind);
        else
            for (int c = 0; c < 3; ++c) behind[c] = broadcast(background[c]);
    }
    for (int c = 0; c < 3; ++c) colors[c] = load<Vector>(state.color(c) + at) + left * behind[c];
    join_three<Real>(p.color + 3 * pixel, colors);
    store_anywhere(p.alpha + pixel, Real(1) - left);
    if (p.transmittance) store_anywhere(p.transmittance + pixel, left);
    if (p.depth) store_anywhere(p.depth + pixel, load<Vector>(state.depth + at));
    if (p.stops) std::memcpy(p.stops + pixel, state.stops + at, Simd<Real>::width * sizeof(int32_t));
}

template <typename Real, int Channels>
inline void write_pixel(const BlendParams<Real>& p, const TileState<Real, Channels>& state, int at,
                        int64_t pixel) {
    const int channels = p.tiles.channels;
    const Real left = state.transmittance[at] + state.left[at];
    const Real* background = background_of(p.tiles, pixel);
    for (int c = 0; c < channels; ++c)
        p.color[pixel * channels + c] = state.color(c)[at] + (background ? left * background[c] : Real(0));
    p.alpha[pixel] = Real(1) - left;
    if (p.transmittance) p.transmittance[pixel] = left;
    if (p.depth) p.depth[pixel] = state.depth[at];
    if (p.stops) p.stops[pixel] = state.stops[at];
}

template <typename Real, int Channels>
void write_tile(const BlendParams<Real>& p, const TileState<Real, Channels>& state,
                const TileGeometry<Real>& g) {
    for (int y = 0; y < g.rows; ++y) {
        const int64_t row = int64_t(g.y0 + y) * p.tiles.width + g.x0;
        int x = 0;
        for (; Channels == 3 && x + g.width <= g.columns; x += g.width)
            write_vector(p, state, g.place(x, y), row + x);
        for (; x < g.columns; ++x) write_pixel(p, state, g.place(x, y), row + x);
    }
}

template <typename Real, int Channels, bool Depth>
void blend_tile(const BlendParams<Real>& p, int tile, int worker) {
    const TileParams<Real>& t = p.tiles;
    const int64_t begin = t.tile_offsets[tile], end = t.tile_offsets[tile + 1];
    const TileGeometry<Real> geometry(tile, t.width, t.height);
    TileState<Real, Channels> state(geometry, t.channels, Depth, int32_t(end - begin),
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
