// The way back through compositing: back to front, a tile a block, a pixel a thread.
//
// Transmittance is recovered by division, and what lies behind a splat enters by one number a pixel, as on
// the CPU (cpu/blend_backward.cpp). The sums of one splat over the pixels of a warp are taken together
// (transposed_sums) and leave it in one of two ways: added by one atomic each to the splat's row; or, in the
// kernels named deterministic, added up over the block's warps in their order and written to the instance's
// own slot, which sum_slots gathers later.
#include "dialect.h"
#include "tile.h"

namespace splatscope {

// What a kernel gathers of each splat. The layouts of rows stand in cuda_params.h.
struct ThreeChannels {
    static constexpr bool geometry = true, staged_colors = true, extras = false;
    static constexpr int colors = 3, sums = slot_moments + 3;
    SPLATSCOPE_FUNCTION static int place(const BackwardPassParams&, int sum) { return sum; }
};
struct ThreeChannelsAndExtras {
    static constexpr bool geometry = true, staged_colors = true, extras = true;
    static constexpr int colors = 3, sums = slot_moments + 3 + row_extras;
    SPLATSCOPE_FUNCTION static int place(const BackwardPassParams&, int sum) { return sum; }
};
// Any number of channels, without their own sums.
struct Wide {
    static constexpr bool geometry = true, staged_colors = false, extras = true;
    static constexpr int colors = 0, sums = slot_moments + row_extras;
    SPLATSCOPE_FUNCTION static int place(const BackwardPassParams& p, int sum) {
        return sum < slot_moments ? sum : p.extra_row + sum - slot_moments;
    }
};
// The sums of a chunk of channels and nothing else.
struct Colors {
    static constexpr bool geometry = false, staged_colors = false, extras = false;
    static constexpr int colors = channel_chunk, sums = channel_chunk;
    SPLATSCOPE_FUNCTION static int place(const BackwardPassParams& p, int sum) {
        const int channel = p.channel_begin + sum;
        return channel < p.tiles.channels ? p.color_row + channel : -1;
    }
};

// What the threads of a block share beside the staged splats.
struct BackwardShared {
    int64_t* rows;     // (tile_pixels): where each staged splat's sums go, in numbers
    int32_t* splats;   // (tile_pixels): for colours that are not staged
    int32_t* longest;  // (tile_warps): how far each warp's pixels saw
    float* sums;       // (tile_warps, warp_size, sums), deterministic only
    uint32_t* summed;  // (tile_warps), deterministic only: bits of the splats whose sums are there
    Limits* limits;    // (1)
};

// One pixel on its way back.
template <typename Wanted>
struct PixelState {
    float transmittance = 1.0f;
    float behind = 0.0f;  // sum over what is behind of T alpha (c . g), background included
    float grad_alpha = 0.0f, grad_depth = 0.0f;
    float grad_color[Wanted::colors > 0 ? Wanted::colors : 1] = {};
    int32_t stop = 0;

    SPLATSCOPE_FUNCTION PixelState(const BackwardPassParams& p, const Pixel& pixel) {
        if (!pixel.inside) return;
        transmittance = p.transmittance[pixel.index];
        stop = p.stops[pixel.index];
        const int channels = p.tiles.channels;
        const float* color = p.grad_color ? p.grad_color + pixel.index * channels : nullptr;
        const int first = Wanted::geometry ? 0 : p.channel_begin;
#pragma unroll
        for (int c = 0; c < Wanted::colors; ++c)
            grad_color[c] = color && first + c < channels ? color[first + c] : 0.0f;
        if (!Wanted::geometry) return;
        if (Wanted::staged_colors && p.grad_alpha) grad_alpha = p.grad_alpha[pixel.index];
        if (Wanted::extras && Wanted::staged_colors && p.grad_depth) grad_depth = p.grad_depth[pixel.index];
        const float* background = background_at(p.tiles, pixel.index);
        float through = 0.0f;
#pragma unroll 1
        for (int c = 0; color && background && c < channels; ++c) through += color[c] * background[c];
        behind = transmittance * through;
    }
};

// A number of the pixel's, kept, or where registers are dear (without staged colours) read anew.
template <typename Wanted>
SPLATSCOPE_FUNCTION float gradient_of(float kept, const float* gradient, const Pixel& pixel) {
    if constexpr (Wanted::staged_colors) return kept;
    return gradient && pixel.inside ? gradient[pixel.index] : 0.0f;
}

// alpha's gradient but for what is behind: (c, z, 1) . g of one splat.
template <typename Wanted>
SPLATSCOPE_FUNCTION float gradient_along(const BackwardPassParams& p, const PixelState<Wanted>& state,
                                         const Pixel& pixel, const Float4& paint, int32_t splat) {
    float along = gradient_of<Wanted>(state.grad_alpha, p.grad_alpha, pixel);
    if constexpr (Wanted::staged_colors) {
        along = fused(paint.y, state.grad_color[0], along);
        along = fused(paint.z, state.grad_color[1], along);
        along = fused(paint.w, state.grad_color[2], along);
    } else if (p.grad_color && pixel.inside) {
        const float* grad = p.grad_color + pixel.index * p.tiles.channels;
        const float* color = p.tiles.colors + int64_t(splat) * p.tiles.channels;
        // Unrolled, it would take registers from all the rest.
#pragma unroll 1
        for (int c = 0; c < p.tiles.channels; ++c) along = fused(color[c], grad[c], along);
    }
    if (Wanted::extras)
        along = fused(paint.x, gradient_of<Wanted>(state.grad_depth, p.grad_depth, pixel), along);
    return along;
}

// One splat at one pixel: moves the pixel in front of it and says what it adds to the splat's sums.
template <typename Wanted>
SPLATSCOPE_FUNCTION void step_back(const BackwardPassParams& p, PixelState<Wanted>& state, const Pixel& pixel,
                                   const Float4& shape, const Float4& extent, const Float4& paint,
                                   int32_t splat, const Alpha& alpha, bool drawn, float ceiling_limit,
                                   float* sums) {
    const float value = drawn ? alpha.value : 0.0f;
    const float left = 1.0f - value, rough = reciprocal(left);
    // One step of Newton's: hundreds of these are multiplied, and what each is off by would add up.
    const float inverse = fused(rough, fused(-left, rough, 1.0f), rough);
    const float before = state.transmittance * inverse;
    const float weight = before * value;
    state.transmittance = before;
    constexpr int color_sums = Wanted::geometry ? slot_moments : 0;
#pragma unroll
    for (int c = 0; c < Wanted::colors; ++c) sums[color_sums + c] = weight * state.grad_color[c];
    if constexpr (Wanted::geometry) {
        const float along = gradient_along(p, state, pixel, paint, splat);
        const float grad_alpha = before * along - state.behind * inverse;
        state.behind = fused(weight, along, state.behind);
        // At the ceiling alpha no longer follows the exponent.
        const float w = drawn && alpha.unlimited < ceiling_limit ? grad_alpha * value : 0.0f;
        const float wx = w * alpha.dx, wy = w * alpha.dy;
        sums[0] = w;
        sums[1] = wx;
        sums[2] = wy;
        sums[3] = wx * alpha.dx;
        sums[4] = wy * alpha.dx;
        sums[5] = wy * alpha.dy;
        if constexpr (Wanted::extras) {
            float* extras = sums + slot_moments + Wanted::colors;
            extras[0] = weight * gradient_of<Wanted>(state.grad_depth, p.grad_depth, pixel);
            // The exponent's slope along each axis, times w; signs do not matter.
            extras[1] = absolute(w * fused(2.0f * shape.z, alpha.dx, shape.w * alpha.dy));
            extras[2] = absolute(w * fused(shape.w, alpha.dx, 2.0f * extent.x * alpha.dy));
        }
    }
}

// Instances that no pixel of the tile saw have slots of zeros.
template <typename Wanted>
SPLATSCOPE_FUNCTION void clear_unseen(const BackwardPassParams& p, int64_t begin, int32_t longest,
                                      int32_t length) {
    const int64_t numbers = int64_t(length - longest) * Wanted::sums;
    for (int64_t i = thread_index(); i < numbers; i += tile_pixels) {
        const int place = Wanted::place(p, int(i % Wanted::sums));
        const int64_t instance = begin + longest + i / Wanted::sums;
        if (place >= 0) p.rows[p.instance_slots[instance] * p.row_size + place] = 0.0f;
    }
}

// The sums of `count` staged splats from `first` on, over the warps in their order, into the splats' slots.
template <typename Wanted>
SPLATSCOPE_FUNCTION void write_slots(const BackwardPassParams& p, const BackwardShared& shared, int first,
                                     int count) {
    for (int i = thread_index(); i < count * Wanted::sums; i += tile_pixels) {
        const int splat = i / Wanted::sums;
        const int place = Wanted::place(p, i % Wanted::sums);
        float sum = 0.0f;
        for (int warp = 0; warp < tile_warps; ++warp) {
            if (shared.summed[warp] >> splat & 1u) sum += shared.sums[warp * warp_size * Wanted::sums + i];
        }
        if (place >= 0) p.rows[shared.rows[first + splat] + place] = sum;
    }
}

// One warp and up to 32 staged splats from `first` on; `unseen` of them from the front lie behind all that
// its pixels saw.
template <typename Wanted, bool deterministic>
SPLATSCOPE_FUNCTION void visit_splats(const BackwardPassParams& p, const StagedSplats& staged,
                                      const BackwardShared& shared, PixelState<Wanted>& state,
                                      const Pixel& pixel, const Limits& limits, int first, int32_t last_place,
                                      int own_sum, int own_place) {
    uint32_t summed = 0;
    const int32_t unseen = last_place - first - shared.longest[warp_index()] + 1;
    const unsigned seen = unseen <= 0 ? all_lanes : unseen >= warp_size ? 0u : all_lanes << unseen;
    for (unsigned visits = staged.visits(first) & seen; visits; visits &= visits - 1) {
        const int bit = first_bit(visits);
        const int i = first + bit;
        const Float4 shape = staged.shapes[i], extent = staged.extents[i];
        const Alpha alpha = evaluate_alpha(shape, extent, pixel, limits);
        const bool drawn = alpha.hit && last_place - i < state.stop;
        if (!any_lane(all_lanes, drawn)) continue;
        float sums[Wanted::sums];
        step_back(p, state, pixel, shape, extent, staged.paints[i],
                  Wanted::staged_colors ? 0 : shared.splats[i], alpha, drawn, limits.ceiling, sums);
        const float sum = transposed_sums<Wanted::sums>(sums);
        if constexpr (deterministic) {
            if (own_sum >= 0) shared.sums[(warp_index() * warp_size + bit) * Wanted::sums + own_sum] = sum;
            summed |= 1u << bit;
        } else {
            if (own_place >= 0) atomic_add(p.rows + shared.rows[i] + own_place, sum);
        }
    }
    if (deterministic && lane() == 0) shared.summed[warp_index()] = summed;
}

template <typename Wanted, bool deterministic>
SPLATSCOPE_FUNCTION void blend_tile_backward(const BackwardPassParams& p, const StagedSplats& staged,
                                             const BackwardShared& shared) {
    const TileParams<float>& t = p.tiles;
    const int tile = t.tile_order[block_index()];
    const int64_t begin = t.tile_offsets[tile];
    const int32_t length = int32_t(t.tile_offsets[tile + 1] - begin);
    if (length == 0) return;
    const TileCorner corner(tile, t.width);
    const Pixel pixel = pixel_of_thread(corner, t.width, t.height);
    PixelState<Wanted> state(p, pixel);
    const int32_t longest_of_warp = warp_maximum(state.stop);
    if (lane() == 0) shared.longest[warp_index()] = longest_of_warp;
    if (thread_index() == 0) *shared.limits = load_limits(t.cutoffs);
    sync_block();
    const Limits limits = *shared.limits;
    const int32_t longest = warp_maximum(shared.longest[lane() % tile_warps]);
    if constexpr (deterministic) clear_unseen<Wanted>(p, begin, longest, length);
    const int own_sum = owned_sum<Wanted::sums>();
    const int own_place = own_sum >= 0 ? Wanted::place(p, own_sum) : -1;

    // Staged splat i of a batch stands at place `last_place - i` of the list.
    for (int32_t last_place = longest - 1; last_place >= 0; last_place -= tile_pixels) {
        const int32_t place = last_place - thread_index();
        sync_block();
        if (place >= 0) {
            const int32_t splat = t.instance_splats[begin + place];
            const int64_t row = deterministic ? p.instance_slots[begin + place] : splat;
            staged.stage(t, corner, splat);
            shared.rows[thread_index()] = row * p.row_size;
            if constexpr (!Wanted::staged_colors) shared.splats[thread_index()] = splat;
        } else {
            staged.warps[thread_index()] = 0;
        }
        sync_block();
        const int count = minimum(last_place + 1, tile_pixels);
        for (int first = 0; first < count; first += warp_size) {
            visit_splats<Wanted, deterministic>(p, staged, shared, state, pixel, limits, first, last_place,
                                                own_sum, own_place);
            if constexpr (deterministic) {
                sync_block();
                write_slots<Wanted>(p, shared, first, minimum(count - first, warp_size));
                sync_block();
            }
        }
    }
}

// The shared arrays of a kernel, and its body.
#define BACKWARD_BODY(Wanted, deterministic, splat_count, sum_count)                \
    SHARED_ARRAY(Float4, shapes, tile_pixels);                                      \
    SHARED_ARRAY(Float4, extents, tile_pixels);                                     \
    SHARED_ARRAY(Float4, paints, tile_pixels);                                      \
    SHARED_ARRAY(uint32_t, warps, tile_pixels);                                     \
    SHARED_ARRAY(int64_t, rows, tile_pixels);                                       \
    SHARED_ARRAY(int32_t, splats, splat_count);                                     \
    SHARED_ARRAY(int32_t, longest, tile_warps);                                     \
    SHARED_ARRAY(float, sums, sum_count);                                           \
    SHARED_ARRAY(uint32_t, summed, tile_warps);                                     \
    SHARED_ARRAY(Limits, limits, 1);                                                \
    blend_tile_backward<Wanted, deterministic>(p, {shapes, extents, paints, warps}, \
                                               {rows, splats, longest, sums, summed, limits})

KERNEL(blend_backward, BackwardPassParams, 256) {
    BACKWARD_BODY(ThreeChannels, false, 1, 1);
}

KERNEL(blend_backward_full, BackwardPassParams, 256) {
    BACKWARD_BODY(ThreeChannelsAndExtras, false, 1, 1);
}

KERNEL(blend_backward_wide, BackwardPassParams, 256) {
    BACKWARD_BODY(Wide, false, tile_pixels, 1);
}

KERNEL(blend_backward_colors, BackwardPassParams, 256) {
    BACKWARD_BODY(Colors, false, tile_pixels, 1);
}

KERNEL(blend_backward_deterministic, BackwardPassParams, 256) {
    BACKWARD_BODY(ThreeChannels, true, 1, tile_pixels * ThreeChannels::sums);
}

KERNEL(blend_backward_full_deterministic, BackwardPassParams, 256) {
    BACKWARD_BODY(ThreeChannelsAndExtras, true, 1, tile_pixels * ThreeChannelsAndExtras::sums);
}

KERNEL(blend_backward_wide_deterministic, BackwardPassParams, 256) {
    BACKWARD_BODY(Wide, true, tile_pixels, tile_pixels * Wide::sums);
}

KERNEL(blend_backward_colors_deterministic, BackwardPassParams, 256) {
    BACKWARD_BODY(Colors, true, tile_pixels, tile_pixels * Colors::sums);
}

}  // namespace splatscope
