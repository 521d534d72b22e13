// Front-to-back compositing, a tile a block, a pixel a thread.
//
// A warp whose pixels have all stopped visits nothing more; a block leaves when all have.
#include "dialect.h"
#include "tile.h"

namespace splatscope {

// Where a pass finds the colours of a splat: with all three channels they come staged with it, with a chunk
// of any number of channels they are read from their own array, with none beyond the last.
template <bool is_chunk>
SPLATSCOPE_FUNCTION void colors_of(const BlendPassParams& p, const Float4& paint, int32_t splat, int channels,
                                   float* color) {
    if constexpr (is_chunk) {
        const float* from = p.blend.tiles.colors + int64_t(splat) * p.blend.tiles.channels + p.channel_begin;
#pragma unroll
        for (int c = 0; c < channel_chunk; ++c) color[c] = c < channels ? from[c] : 0.0f;
    } else {
        color[0] = paint.y;
        color[1] = paint.z;
        color[2] = paint.w;
    }
}

template <bool with_depth, int channel_count>
SPLATSCOPE_FUNCTION void write_pixel(const BlendPassParams& p, const Pixel& pixel, int channels,
                                     float transmittance, const float* color, float depth, int32_t stop) {
    const TileParams<float>& t = p.blend.tiles;
    const float* background = background_at(t, pixel.index);
    float* to = p.blend.color + pixel.index * t.channels + p.channel_begin;
#pragma unroll
    for (int c = 0; c < channel_count; ++c) {
        if (c >= channels) continue;
        to[c] = color[c] + (background ? transmittance * background[p.channel_begin + c] : 0.0f);
    }
    if (p.channel_begin > 0) return;
    p.blend.alpha[pixel.index] = 1.0f - transmittance;
    if constexpr (with_depth) p.blend.depth[pixel.index] = depth;
    if (p.blend.transmittance) p.blend.transmittance[pixel.index] = transmittance;
    if (p.blend.stops) p.blend.stops[pixel.index] = stop;
}

template <bool is_chunk, bool with_depth>
SPLATSCOPE_FUNCTION void blend_tile(const BlendPassParams& p, const StagedSplats& staged, int32_t* splats,
                                    Limits* shared_limits) {
    constexpr int channel_count = is_chunk ? channel_chunk : 3;
    const TileParams<float>& t = p.blend.tiles;
    const int channels = is_chunk ? minimum(t.channels - p.channel_begin, channel_chunk) : 3;
    const int tile = t.tile_order[block_index()];
    const TileCorner corner(tile, t.width);
    const Pixel pixel = pixel_of_thread(corner, t.width, t.height);
    const int64_t begin = t.tile_offsets[tile];
    const int32_t length = int32_t(t.tile_offsets[tile + 1] - begin);
    if (thread_index() == 0) *shared_limits = load_limits(t.cutoffs);

    // Negative once the pixel has stopped: no later splat passes the test against the limit, which is only
    // below zero where nothing is to stop.
    float transmittance = pixel.inside ? 1.0f : -1.0f;
    float depth = 0.0f;
    float color[channel_count] = {};
    int32_t stop = length;
    // The next splat is known one batch ahead, so that its record is not waited for twice.
    int32_t next = thread_index() < length ? t.instance_splats[begin + thread_index()] : 0;
    for (int32_t batch = 0; batch < length; batch += tile_pixels) {
        if (sync_block_count(transmittance < 0.0f) == tile_pixels) break;
        const int32_t splat = next;
        const int32_t ahead = batch + tile_pixels + thread_index();
        if (ahead < length) next = t.instance_splats[begin + ahead];
        if (thread_index() < length - batch) {
            staged.stage(t, corner, splat);
            if constexpr (is_chunk) splats[thread_index()] = splat;
        } else {
            staged.warps[thread_index()] = 0;
        }
        sync_block();
        const Limits limits = *shared_limits;
        const int count = minimum(length - batch, tile_pixels);
        for (int first = 0; first < count; first += warp_size) {
            if (all_lanes_hold(all_lanes, transmittance < 0.0f)) break;
            for (unsigned visits = staged.visits(first); visits; visits &= visits - 1) {
                const int i = first + first_bit(visits);
                const Alpha alpha = evaluate_alpha(staged.shapes[i], staged.extents[i], pixel, limits);
                if (!alpha.hit) continue;
                const float after = transmittance * (1.0f - alpha.value);
                if (!(after >= limits.stop)) {
                    if (transmittance > 0.0f) stop = batch + i;
                    transmittance = -absolute(transmittance);
                    continue;
                }
                const float weight = transmittance * alpha.value;
                const Float4 paint = staged.paints[i];
                float paint_color[channel_count];
                colors_of<is_chunk>(p, paint, is_chunk ? splats[i] : 0, channels, paint_color);
#pragma unroll
                for (int c = 0; c < channel_count; ++c) color[c] = fused(weight, paint_color[c], color[c]);
                if constexpr (with_depth) depth = fused(weight, paint.x, depth);
                transmittance = after;
            }
        }
    }
    if (pixel.inside)
        write_pixel<with_depth, channel_count>(p, pixel, channels, absolute(transmittance), color, depth,
                                               stop);
}

KERNEL(blend, BlendPassParams, 256) {
    SHARED_ARRAY(Float4, shapes, tile_pixels);
    SHARED_ARRAY(Float4, extents, tile_pixels);
    SHARED_ARRAY(Float4, paints, tile_pixels);
    SHARED_ARRAY(uint32_t, warps, tile_pixels);
    SHARED_ARRAY(Limits, limits, 1);
    blend_tile<false, false>(p, {shapes, extents, paints, warps}, nullptr, limits);
}

KERNEL(blend_depth, BlendPassParams, 256) {
    SHARED_ARRAY(Float4, shapes, tile_pixels);
    SHARED_ARRAY(Float4, extents, tile_pixels);
    SHARED_ARRAY(Float4, paints, tile_pixels);
    SHARED_ARRAY(uint32_t, warps, tile_pixels);
    SHARED_ARRAY(Limits, limits, 1);
    blend_tile<false, true>(p, {shapes, extents, paints, warps}, nullptr, limits);
}

KERNEL(blend_channels, BlendPassParams, 256) {
    SHARED_ARRAY(Float4, shapes, tile_pixels);
    SHARED_ARRAY(Float4, extents, tile_pixels);
    SHARED_ARRAY(Float4, paints, tile_pixels);
    SHARED_ARRAY(uint32_t, warps, tile_pixels);
    SHARED_ARRAY(int32_t, splats, tile_pixels);
    SHARED_ARRAY(Limits, limits, 1);
    blend_tile<true, false>(p, {shapes, extents, paints, warps}, splats, limits);
}

KERNEL(blend_channels_depth, BlendPassParams, 256) {
    SHARED_ARRAY(Float4, shapes, tile_pixels);
    SHARED_ARRAY(Float4, extents, tile_pixels);
    SHARED_ARRAY(Float4, paints, tile_pixels);
    SHARED_ARRAY(uint32_t, warps, tile_pixels);
    SHARED_ARRAY(int32_t, splats, tile_pixels);
    SHARED_ARRAY(Limits, limits, 1);
    blend_tile<true, true>(p, {shapes, extents, paints, warps}, splats, limits);
}

}  // namespace splatscope
