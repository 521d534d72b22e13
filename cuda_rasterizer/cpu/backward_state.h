// The pixels of one tile on the way back through compositing.
#pragma once

#include <cstring>

#include "three_planes.h"
#include "tile.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// One tile's pixels. Planes are tile_pixels numbers each, vector after vector. Channels is the number of
// colours, or 0 where only the caller knows; with a constant number every plane lies at a constant distance
// from the others, so that one register walks through all of them.
template <typename Real, int Channels>
struct BackwardState {
    using Integer = typename Simd<Real>::Integer;
    static constexpr int width = Simd<Real>::width;
    static constexpr int vectors = VectorSet<Real>::size;

    alignas(64) Real transmittance[tile_pixels];
    alignas(64) Real behind[tile_pixels];  // R less the gradient of alpha, which is the same for every splat
    alignas(64) Real grad_depth[tile_pixels];
    alignas(64) Integer stops[tile_pixels];
    alignas(64) Real alphas[tile_pixels];  // of the present splat
    alignas(64) Real fixed_grad_color[Channels ? Channels * tile_pixels : 1];
    int32_t vector_stops[vectors] = {};  // the longest of each vector
    int32_t next_stop = 0;               // the longest of those vectors that are not live yet
    VectorSet<Real> live;                // those that took light from the present instance
    Real* workspace;                     // the worker's; without a constant number of channels: their planes,
                                         // and then (channels, width) sums of one splat

    BackwardState(const BlendBackwardParams<Real>& p, const TileGeometry<Real>& g, Real* workspace)
        : workspace(workspace) {
        if (g.cut) clear(p.tiles.channels);
        if (!p.grad_depth) std::memset(grad_depth, 0, sizeof grad_depth);
        if (!p.grad_color)
            std::memset(grad_color(0), 0, size_t(p.tiles.channels) * tile_pixels * sizeof(Real));
        for (int y = 0; y < g.rows; ++y) {
            const int64_t row = int64_t(g.y0 + y) * p.tiles.width + g.x0;
            int x = 0;
            for (; Channels == 3 && x + width <= g.columns; x += width)
                load_vector(p, g.place(x, y), row + x);
            for (; x < g.columns; ++x) load_pixel(p, g.place(x, y), row + x);
        }
        wake_vectors(INT32_MAX);
    }

    Real* grad_color(int channel) {
        return (Channels ? fixed_grad_color : workspace) + channel * tile_pixels;
    }

    // Makes live what took light from instance k; called when next_stop has been passed.
    void wake_vectors(int32_t k) {
        next_stop = 0;
        for (int i = 0; i < vectors; ++i) {
            if (vector_stops[i] > k)
                live.add(i, 1);
            else if (vector_stops[i] > next_stop)
                next_stop = vector_stops[i];
        }
    }

  private:
    // Pixels outside the image take no light.
    void clear(int channels) {
        for (Real& t : transmittance) t = Real(1);
        std::memset(behind, 0, sizeof behind);
        std::memset(grad_depth, 0, sizeof grad_depth);
        std::memset(stops, 0, sizeof stops);
        std::memset(grad_color(0), 0, size_t(channels) * tile_pixels * sizeof(Real));
    }

    // One vector of pixels, all of them in the image, three colours.
    void load_vector(const BlendBackwardParams<Real>& p, int at, int64_t pixel) {
        using Vector = typename Simd<Real>::Vector;
        const TileParams<Real>& t = p.tiles;
        Vector through{};
        if (p.grad_color) {
            Vector grads[3], background[3];
            split_three<Real>(p.grad_color + 3 * pixel, grads);
            if (t.background && t.background_per_pixel)
                split_three<Real>(t.background + 3 * pixel, background);
            for (int c = 0; c < 3; ++c) {
                store(grad_color(c) + at, grads[c]);
                if (!t.background) continue;
                through = fused(grads[c], t.background_per_pixel ? background[c] : broadcast(t.background[c]),
                                through);
            }
        }
        if (p.grad_alpha) through -= load_anywhere<Vector>(p.grad_alpha + pixel);
        if (p.grad_depth) store(grad_depth + at, load_anywhere<Vector>(p.grad_depth + pixel));
        store(transmittance + at, load_anywhere<Vector>(p.transmittance + pixel));
        store(behind + at, through);
        int32_t longest = 0;
        for (int i = 0; i < width; ++i) {
            const int32_t stop = p.stops[pixel + i];
            stops[at + i] = stop;
            longest = stop > longest ? stop : longest;
        }
        vector_stops[at / width] = longest;
    }

    void load_pixel(const BlendBackwardParams<Real>& p, int at, int64_t pixel) {
        const TileParams<Real>& t = p.tiles;
        const Real* background =
            t.background ? t.background + (t.background_per_pixel ? pixel * t.channels : 0) : nullptr;
        Real through = Real(0);
        for (int c = 0; p.grad_color && c < t.channels; ++c) {
            const Real grad = p.grad_color[pixel * t.channels + c];
            grad_color(c)[at] = grad;
            if (background) through += grad * background[c];
        }
        if (p.grad_alpha) through -= p.grad_alpha[pixel];
        if (p.grad_depth) grad_depth[at] = p.grad_depth[pixel];
        transmittance[at] = p.transmittance[pixel];
        behind[at] = through;
        stops[at] = p.stops[pixel];
        int32_t& vector_stop = vector_stops[at / width];
        vector_stop = p.stops[pixel] > vector_stop ? p.stops[pixel] : vector_stop;
    }
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
