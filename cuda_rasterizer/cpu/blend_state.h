// The pixels of one tile while splats are composited.
#pragma once

#include <cstring>

#include "tile.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// One tile's pixels. Planes are tile_pixels numbers each, vector after vector. A pixel that has stopped, or
// lies outside the image, has the transmittance -0, so that no splat reaches it; what it had left is in
// `left`. Channels is the number of colours, or 0 where only the caller knows (see BackwardState).
template <typename Real, int Channels>
struct TileState {
    static constexpr int width = TileGeometry<Real>::width;

    alignas(64) Real transmittance[tile_pixels];
    uint32_t taking[VectorSet<Real>::size];  // a bit for each pixel of a vector that still takes light
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
        transmittance[place] = -Real(0);
        stops[place] = k;
        uint32_t& lanes = taking[place / width];
        lanes &= ~(1u << place % width);
        if (!lanes) live.remove(place / width);
    }
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
