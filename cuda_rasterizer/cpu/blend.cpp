// Front-to-back compositing, a tile at a time.
//
// Splats come in batches: first the alphas of all, then they are composited. A strip of a tile takes all the
// batch in registers where it has three colours; otherwise each splat visits the vectors of pixels that it
// touches and that still take light, in the first-level cache.

#include "alpha_batch.h"
#include "blend_state.h"
#include "kernels.h"
#include "parallel.h"
#include "three_planes.h"

SPLATSCOPE_DECLARE_KERNELS(SPLATSCOPE_ISA)

namespace splatscope {
namespace SPLATSCOPE_ISA {
namespace {

// Neighbours of a column of vectors, whose pixels stay in registers while splats go over them.
template <typename Real>
struct Strip {
    using Vector = typename Simd<Real>::Vector;
    using Bits = typename Simd<Real>::Bits;
    static constexpr int width = Simd<Real>::width, count = AlphaBatch<Real>::strip;

    TileState<Real, 3>& state;
    const int first;  // of the vectors
    Vector transmittance[count], red[count], green[count], blue[count];

    Strip(TileState<Real, 3>& state, int first) : state(state), first(first) {
        load_transmittance();
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) {
            red[i] = load<Vector>(state.color(0) + (first + i) * width);
            green[i] = load<Vector>(state.color(1) + (first + i) * width);
            blue[i] = load<Vector>(state.color(2) + (first + i) * width);
        }
    }

    void load_transmittance() {
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i)
            transmittance[i] = load<Vector>(state.transmittance + (first + i) * width);
    }
    void store_transmittance() const {
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) store(state.transmittance + (first + i) * width, transmittance[i]);
    }
    void store_all() const {
        store_transmittance();
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) {
            store(state.color(0) + (first + i) * width, red[i]);
            store(state.color(1) + (first + i) * width, green[i]);
            store(state.color(2) + (first + i) * width, blue[i]);
        }
    }

    // One splat, instance k of the tile.
    void add(const Vector* alphas, const Real* color, Vector stop, int32_t k) {
        Vector left[count];
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) left[i] = transmittance[i] * (Real(1) - alphas[i]);
        // Pixels that have stopped have a sign.
        Bits least = (Bits)left[0];
#pragma GCC unroll 4
        for (int i = 1; i < count; ++i) least = smaller_bits(least, (Bits)left[i]);
        if (__builtin_expect(any_bits_below(least, (Bits)stop), 0)) stop_pixels(left, stop, k);
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) {
            const Vector weight = transmittance[i] * alphas[i];
            red[i] = fused(weight, broadcast(color[0]), red[i]);
            green[i] = fused(weight, broadcast(color[1]), green[i]);
            blue[i] = fused(weight, broadcast(color[2]), blue[i]);
            transmittance[i] = left[i];
        }
    }

  private:
    void stop_pixels(Vector* left, Vector stop, int32_t k) {
        store_transmittance();
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i)
            state.stop_pixels(first + i, lanes_below(left[i], stop) & state.taking[first + i], k);
        load_transmittance();
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) left[i] = transmittance[i] == Vector{} ? transmittance[i] : left[i];
    }
};

// Those splats of a batch that have a bit in `touching`; the batch begins with instance k of the tile.
template <typename Real>
[[gnu::noinline]] void blend_strip(TileState<Real, 3>& state, const AlphaBatch<Real>& batch, int first,
                                   uint32_t touching, const SplatRecord<Real>* records, const int32_t* list,
                                   typename Simd<Real>::Vector stop, int32_t k) {
    Strip<Real> strip(state, first);
    for (; touching; touching &= touching - 1) {
        const int i = __builtin_ctz(touching);
        strip.add(batch.of(i) + first, records[list[i]].color, stop, k + i);
    }
    strip.store_all();
}

// A batch of splats, strip by strip.
template <typename Real>
void blend_strips(TileState<Real, 3>& state, const AlphaBatch<Real>& batch,
                  const Touches<Real, AlphaBatch<Real>::count>& touches, const SplatRecord<Real>* records,
                  const int32_t* list, typename Simd<Real>::Vector stop, int32_t k) {
    constexpr int strip = AlphaBatch<Real>::strip;
    for (int first = 0; first < AlphaBatch<Real>::size; first += strip)
        if (const uint32_t touching = touches.touching(first, strip))
            blend_strip(state, batch, first, touching, records, list, stop, k);
}

// Adds one splat to some vectors. Channels is the number of colours, or 0 where only `channels` knows.
template <typename Real, int Channels, bool Depth>
inline void blend_splat(TileState<Real, Channels>& state, const VectorSet<Real>& vectors,
                        const typename Simd<Real>::Vector* alphas, const SplatRecord<Real>& s,
                        const Real* color, int channels, typename Simd<Real>::Vector stop, int32_t k) {
    using Vector = typename Simd<Real>::Vector;
    constexpr int width = Simd<Real>::width;
    const Vector depth = broadcast(s.depth);
    const int colors = Channels ? Channels : channels;
    const auto add = [&](int64_t vector) {
        const int64_t at = vector * width;
        const Vector alpha = alphas[vector], through = Real(1) - alpha;
        Vector before = load<Vector>(state.transmittance + at);
        const unsigned stopping = lanes_below(before * through, stop) & state.taking[vector];
        if (__builtin_expect(stopping != 0, 0)) {  // out of the way, so that the others do not jump
            state.stop_pixels(vector, stopping, k);
            before = load<Vector>(state.transmittance + at);
        }
        const Vector weight = before * alpha;
        for (int i = 0; i < colors; ++i) {
            Real* plane = state.color(i) + at;
            store(plane, fused(weight, broadcast(color[i]), load<Vector>(plane)));
        }
        if (Depth) store(state.depth + at, fused(weight, depth, load<Vector>(state.depth + at)));
        store(state.transmittance + at, before * through);
    };
    for (int chunk = 0; chunk < TileGeometry<Real>::chunks; ++chunk) vectors.for_each_between(chunk, add);
}

// Asks for the splats of the batch that begins with one instance, before they are needed.
template <typename Real>
[[gnu::always_inline]] inline void ask_for_batch(const TileParams<Real>& t, int64_t begin, int64_t end) {
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    for (int64_t k = begin; k < end && k < begin + AlphaBatch<Real>::count; ++k)
        __builtin_prefetch(records + t.instance_splats[k]);
}

template <typename Real, int Channels, bool Depth>
void blend_list(const BlendParams<Real>& p, TileState<Real, Channels>& state, const TileGeometry<Real>& g,
                int64_t begin, int64_t end) {
    const TileParams<Real>& t = p.tiles;
    const auto* records = reinterpret_cast<const SplatRecord<Real>*>(t.records);
    const Limits<Real> limits(t.cutoffs);
    auto* const touches = reinterpret_cast<Touch<Real>*>(t.touches);
    AlphaBatch<Real> batch;
    Touches<Real, batch.count> touched;
    for (int64_t k = begin; k < end && !state.live.is_empty(); k += batch.count) {
        const int64_t next = k + batch.count < end ? k + batch.count : end;
        const int used = int(next - k);
        const int32_t* const list = t.instance_splats + k;
        ask_for_batch(t, next, end);
        touched.find(g, state.live, records, list, used);
        for (int i = 0; touches && i < used; ++i) touches[k + i].note(touched.vectors(i), touched.way(i));
        batch.find(g, limits, records, list, touched);
        if constexpr (Channels == 3 && !Depth) {
            blend_strips(state, batch, touched, records, list, limits.stop, int32_t(k - begin));
            continue;
        }
        for (int i = 0; i < used; ++i) {
            const SplatRecord<Real>& s = records[list[i]];
            const Real* color =
                t.channels <= record_channels ? s.color : t.colors + int64_t(list[i]) * t.channels;
            blend_splat<Real, Channels, Depth>(state, touched.vectors(i), batch.of(i), s, color, t.channels,
                                               limits.stop, int32_t(k - begin) + i);
        }
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
    ask_for_batch(t, begin, end);
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
