// From what compositing's backward gathered to the gradients of its inputs; and the background's own.
#include "cuda_params.h"
#include "dialect.h"
#include "splat_record.h"
#include "warp.h"

namespace splatscope {

// A thread a number: each splat's slots, in the order in which its instances were emitted.
KERNEL(sum_slots, SumSlotsParams, 256) {
    const int64_t i = block_index() * block_size() + thread_index();
    if (i >= p.count * p.row_size) return;
    const int64_t splat = i / p.row_size, number = i % p.row_size;
    const int32_t tiles = p.tile_counts[splat];
    float sum = 0.0f;
    if (tiles > 0) {
        const float* slot = p.slots + int64_t(p.first_slots[splat]) * p.row_size + number;
        // Loads go ahead of the additions, which wait for each other.
#pragma unroll 8
        for (int32_t k = 0; k < tiles; ++k) sum += slot[k * p.row_size];
    }
    p.rows[i] = sum;
}

SPLATSCOPE_FUNCTION void write_moments(const SplatGradientParams& p, int64_t i, const SplatRecord& s,
                                       const float* row) {
    const float w = row[0], wx = row[1], wy = row[2];
    if (p.grad_means_2d) {
        // The exponent falls as the distance grows, and the distance is pixel minus mean.
        p.grad_means_2d[2 * i] = -(2.0f * s.a * wx + s.b * wy);
        p.grad_means_2d[2 * i + 1] = -(s.b * wx + 2.0f * s.c * wy);
    }
    if (p.grad_conics) {
        p.grad_conics[3 * i] = -0.5f * row[3];
        p.grad_conics[3 * i + 1] = -row[4];
        p.grad_conics[3 * i + 2] = -0.5f * row[5];
    }
    if (p.grad_opacities) p.grad_opacities[i] = w / s.opacity;
}

SPLATSCOPE_FUNCTION void clear_moments(const SplatGradientParams& p, int64_t i) {
    for (int k = 0; p.grad_means_2d && k < 2; ++k) p.grad_means_2d[2 * i + k] = 0.0f;
    for (int k = 0; p.grad_conics && k < 3; ++k) p.grad_conics[3 * i + k] = 0.0f;
    if (p.grad_opacities) p.grad_opacities[i] = 0.0f;
}

KERNEL(splat_gradients, SplatGradientParams, 256) {
    const int64_t i = block_index() * block_size() + thread_index();
    if (i >= p.count) return;
    const bool seen = p.tile_counts[i] > 0;
    const float* row = p.rows + i * p.row_size;
    if (p.grad_means_2d || p.grad_conics || p.grad_opacities) {
        if (seen)
            write_moments(p, i, load_record(p.records, i), row);
        else
            clear_moments(p, i);
    }
    for (int c = 0; p.grad_colors && c < p.channels; ++c)
        p.grad_colors[i * p.channels + c] = seen ? row[p.color_row + c] : 0.0f;
    if (p.grad_depths) p.grad_depths[i] = seen ? row[p.extra_row] : 0.0f;
    for (int k = 0; p.absolute_gradient && k < 2; ++k)
        p.absolute_gradient[2 * i + k] = seen ? row[p.extra_row + 1 + k] : 0.0f;
}

// The background shows through by what transmittance the splats leave.
SPLATSCOPE_FUNCTION float background_gradient_at(const BackgroundParams& p, int64_t pixel, int64_t channel) {
    return p.transmittance[pixel] * p.grad_color[pixel * p.channels + channel];
}

KERNEL(background_gradient, BackgroundParams, 256) {
    const int64_t i = block_index() * block_size() + thread_index();
    if (i < p.pixels * p.channels)
        p.grad_background[i] = background_gradient_at(p, i / p.channels, i % p.channels);
}

// Sums over a block in an order that depends on nothing.
SPLATSCOPE_FUNCTION float block_sum(float value, float* warp_sums) {
    value = warp_sum(value);
    if (lane() == 0) warp_sums[warp_index()] = value;
    sync_block();
    value = warp_sum(lane() < block_size() / warp_size ? warp_sums[lane()] : 0.0f);
    sync_block();
    return value;
}

KERNEL(background_sums, BackgroundParams, 256) {
    SHARED_ARRAY(float, warp_sums, warp_size);
    const int64_t begin = block_index() * background_pixels;
    const int64_t end = minimum(begin + background_pixels, p.pixels);
    for (int64_t channel = 0; channel < p.channels; ++channel) {
        float sum = 0.0f;
        for (int64_t pixel = begin + thread_index(); pixel < end; pixel += block_size())
            sum += background_gradient_at(p, pixel, channel);
        sum = block_sum(sum, warp_sums);
        if (thread_index() == 0) p.partials[block_index() * p.channels + channel] = sum;
    }
}

KERNEL(background_total, BackgroundParams, 256) {
    SHARED_ARRAY(float, warp_sums, warp_size);
    const int64_t blocks = (p.pixels + background_pixels - 1) / background_pixels;
    for (int64_t channel = 0; channel < p.channels; ++channel) {
        float sum = 0.0f;
        for (int64_t i = thread_index(); i < blocks; i += block_size())
            sum += p.partials[i * p.channels + channel];
        sum = block_sum(sum, warp_sums);
        if (thread_index() == 0) p.grad_background[channel] = sum;
    }
}

}  // namespace splatscope
