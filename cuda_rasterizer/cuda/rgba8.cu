// A picture as a screen takes it: bytes, opaque.

#include "cuda_params.h"
#include "splat_rows.h"

namespace splatscope {
namespace {

constexpr int threads = 256;
constexpr int pixels_a_thread = 4;
static_assert(rgba8_block == threads * pixels_a_thread, "a block converts what its threads do");

struct alignas(16) Words {
    uint32_t number[pixels_a_thread];
};

// Limited to [0, 1] and rounded; written so that a NaN is black.
SPLATSCOPE_FUNCTION uint32_t byte_of(float value) {
    const float limited = value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f;
    return uint32_t(limited * 255.0f + 0.5f);
}

// The four bytes of a pixel, red first in memory.
SPLATSCOPE_FUNCTION uint32_t pixel_of(const float* color) {
    return byte_of(color[0]) | byte_of(color[1]) << 8 | byte_of(color[2]) << 16 | 0xff000000u;
}

}  // namespace

KERNEL(to_rgba8, Rgba8Params<float>, threads) {
    const int64_t first = (block_index() * threads + thread_index()) * pixels_a_thread;
    const bool is_aligned = reinterpret_cast<uint64_t>(p.color) % sizeof(AlignedRow<4>) == 0;
    uint32_t* rgba = reinterpret_cast<uint32_t*>(p.rgba);
    if (is_aligned && first + pixels_a_thread <= p.pixels) {
        float color[3 * pixels_a_thread];
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const AlignedRow<4> row = reinterpret_cast<const AlignedRow<4>*>(p.color + 3 * first)[k];
#pragma unroll
            for (int c = 0; c < 4; ++c) color[4 * k + c] = row.number[c];
        }
        Words words;
#pragma unroll
        for (int k = 0; k < pixels_a_thread; ++k) words.number[k] = pixel_of(color + 3 * k);
        reinterpret_cast<Words*>(rgba + first)[0] = words;
        return;
    }
    for (int64_t i = first; i < first + pixels_a_thread && i < p.pixels; ++i)
        rgba[i] = pixel_of(p.color + 3 * i);
}

}  // namespace splatscope
