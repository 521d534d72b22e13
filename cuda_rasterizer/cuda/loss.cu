// The photometric loss, (1 - w) |x - y| + w (1 - SSIM), and its gradient by the render x.
//
// A block works down a strip of the picture, a thread a column of the interleaved row. A row passes through
// shared memory once, where each thread blurs across; downwards every thread keeps the sums of the ten rows
// that its newest number still adds to, so that the blur down is one fused multiplication and addition a tap.

#include "cuda_params.h"
#include "structural_similarity.h"
#include "warp.h"

namespace splatscope {
using namespace SPLATSCOPE_ISA;
namespace {

constexpr int taps = 2 * ssim_radius + 1;
constexpr int warps = loss_columns / warp_size;
constexpr int longest_tile = loss_columns + 2 * ssim_radius * loss_channels;
constexpr int reads = 2;  // numbers of a row that a thread brings in
static_assert(longest_tile <= reads * loss_columns, "a block brings in a row of its tile");

// Of the tap `k` in 0 to 10; a constant where k is.
SPLATSCOPE_FUNCTION float weight_of(int k) {
    constexpr float window[] = {float(ssim_window[0]), float(ssim_window[1]), float(ssim_window[2]),
                                float(ssim_window[3]), float(ssim_window[4]), float(ssim_window[5])};
    return window[k < ssim_radius ? ssim_radius - k : k - ssim_radius];
}

SPLATSCOPE_FUNCTION int blocks_of(int count, int size) {
    return (count + size - 1) / size;
}

// What this thread has to do: numbers are counted within a row of the picture, -1 where there is none.
struct Share {
    int begin, end;   // rows of the strip
    int channels;     // of the chunk: the distance of neighbouring taps within the tile
    int own;          // the number whose neighbourhood this thread blurs
    int read[reads];  // those that it brings into the tile
    int tile_size;
    int64_t row_size;  // of the picture

    SPLATSCOPE_FUNCTION explicit Share(const LossParams<float>& p) {
        const int columns = blocks_of(p.width * minimum(p.channels, loss_channels), loss_columns);
        const int strips = blocks_of(p.height, loss_strip);
        const int block = int(block_index()), rest = block / columns;
        const int first_channel = rest / strips * loss_channels;
        begin = rest % strips * loss_strip;
        end = minimum(begin + loss_strip, p.height);
        channels = minimum(p.channels - first_channel, loss_channels);
        row_size = int64_t(p.width) * p.channels;
        tile_size = loss_columns + 2 * ssim_radius * channels;
        const int first = block % columns * loss_columns;
        own = place(p, first_channel, first + thread_index());
#pragma unroll
        for (int k = 0; k < reads; ++k) {
            const int in_tile = k * loss_columns + thread_index();
            read[k] =
                in_tile < tile_size ? place(p, first_channel, first - ssim_radius * channels + in_tile) : -1;
        }
    }

    // Where the number `n` of the chunk's own rows lies in a row of the picture.
    SPLATSCOPE_FUNCTION int place(const LossParams<float>& p, int first_channel, int n) const {
        if (n < 0 || n >= p.width * channels) return -1;
        return n / channels * p.channels + first_channel + n % channels;
    }
};

// A byte in 255ths, rounded as a division is.
SPLATSCOPE_FUNCTION float fraction_of(uint8_t byte) {
    return float(byte) / 255.0f;
}

// The numbers of a row that this thread brings in, zeros outside the picture.
SPLATSCOPE_FUNCTION void read_row(const Share& share, const float* picture, int row, int height,
                                  float* numbers) {
    const bool exists = row >= 0 && row < height;
    const float* from = picture + row * share.row_size;
#pragma unroll
    for (int k = 0; k < reads; ++k) {
        numbers[k] = 0.0f;
        if (exists && share.read[k] >= 0) numbers[k] = load_read_only(from + share.read[k]);
    }
}

// The numbers of a row of the target, which may be bytes.
SPLATSCOPE_FUNCTION void read_target(const Share& share, const LossParams<float>& p, int row,
                                     float* numbers) {
    if (p.target) return read_row(share, p.target, row, p.height, numbers);
    const bool exists = row >= 0 && row < p.height;
    const uint8_t* from = p.target_bytes + row * share.row_size;
#pragma unroll
    for (int k = 0; k < reads; ++k) {
        numbers[k] = 0.0f;
        if (exists && share.read[k] >= 0) numbers[k] = fraction_of(load_read_only(from + share.read[k]));
    }
}

// Takes the newest number in; gives the blurred one of the row `ssim_radius` above.
SPLATSCOPE_FUNCTION float blur_down(float number, float* pending) {
    const float blurred = fused(weight_of(0), number, pending[0]);
#pragma unroll
    for (int k = 1; k + 1 < taps; ++k) pending[k - 1] = fused(weight_of(k), number, pending[k]);
    pending[taps - 2] = weight_of(taps - 1) * number;
    return blurred;
}

// What is blurred of one number: x, y, x^2 + y^2, x y.
struct alignas(16) Fields {
    float field[4];
};

SPLATSCOPE_FUNCTION Fields fields_of(float x, float y) {
    return {x, y, fused(x, x, y * y), x * y};
}

// The common distance as a constant, so that no address of a tap has to be worked out.
struct Three {
    SPLATSCOPE_FUNCTION constexpr operator int() const { return 3; }
};

template <typename Distance>
SPLATSCOPE_FUNCTION void blur_fields(const Fields* own, Distance distance, float* sums) {
#pragma unroll
    for (int f = 0; f < 4; ++f) sums[f] = 0.0f;
#pragma unroll
    for (int k = 0; k < taps; ++k) {
        const Fields fields = own[k * distance];
#pragma unroll
        for (int f = 0; f < 4; ++f) sums[f] = fused(weight_of(k), fields.field[f], sums[f]);
    }
}

SPLATSCOPE_FUNCTION void blur_across(const Fields* own, int channels, float* sums) {
    if (channels == 3)
        blur_fields(own, Three(), sums);
    else
        blur_fields(own, channels, sums);
}

template <typename Distance>
SPLATSCOPE_FUNCTION float blur_numbers(const float* own, Distance distance) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < taps; ++k) sum = fused(weight_of(k), own[k * distance], sum);
    return sum;
}

SPLATSCOPE_FUNCTION float blur_across(const float* own, int channels) {
    return channels == 3 ? blur_numbers(own, Three()) : blur_numbers(own, channels);
}

// The sum over the block in a fixed order; whole in thread 0. `warp_sums` is shared, and free again after.
SPLATSCOPE_FUNCTION double block_sum(double value, double* warp_sums) {
    value = warp_sum(value);
    if (lane() == 0) warp_sums[warp_index()] = value;
    sync_block();
    double total = 0.0;
    if (thread_index() == 0)
        for (int warp = 0; warp < warps; ++warp) total += warp_sums[warp];
    sync_block();
    return total;
}

}  // namespace

KERNEL(measure_loss, LossParams<float>, loss_columns) {
    SHARED_ARRAY(Fields, tiles, 2 * longest_tile);
    SHARED_ARRAY(double, warp_sums, warps);
    const Share share(p);
    const int64_t plane = share.row_size * p.height;
    float pending[4][taps - 1] = {};
    float difference = 0.0f, similarity = 0.0f, squares = 0.0f;
    float x[reads], y[reads];
    read_row(share, p.render, share.begin - ssim_radius, p.height, x);
    read_target(share, p, share.begin - ssim_radius, y);
    // Two tiles in turn: while one is read, the next row is written to the other.
    for (int turn = 0; turn < share.end - share.begin + 2 * ssim_radius; ++turn) {
        Fields* tile = tiles + (turn & 1) * longest_tile;
#pragma unroll
        for (int k = 0; k < reads; ++k) {
            const int in_tile = k * loss_columns + thread_index();
            if (in_tile < share.tile_size) tile[in_tile] = fields_of(x[k], y[k]);
        }
        sync_block();
        const int row = share.begin - ssim_radius + turn;
        read_row(share, p.render, row + 1, p.height, x);
        read_target(share, p, row + 1, y);

        const Fields* own = tile + thread_index();
        const Fields centre = own[ssim_radius * share.channels];
        if (row >= share.begin && row < share.end) {
            const float off_screen = minimum(maximum(centre.field[0], 0.0f), 1.0f) - centre.field[1];
            difference += absolute(centre.field[0] - centre.field[1]);
            squares = fused(off_screen, off_screen, squares);
        }
        float fields[4];
        blur_across(own, share.channels, fields);
#pragma unroll
        for (int f = 0; f < 4; ++f) fields[f] = blur_down(fields[f], pending[f]);
        const int blurred_row = row - ssim_radius;
        if (blurred_row < share.begin || share.own < 0) continue;
        const Similarity<float> s =
            similarity_of(fields[0], fields[1], fields[2], fields[3], float(ssim_c1), float(ssim_c2));
        similarity += s.value;
        if (!p.maps) continue;
        float* map = p.maps + blurred_row * share.row_size + share.own;
        map[0] = s.by_mean;
        map[plane] = s.by_square;
        map[2 * plane] = s.by_product;
    }
    const double differences = block_sum(share.own < 0 ? 0.0 : double(difference), warp_sums);
    const double similarities = block_sum(double(similarity), warp_sums);
    const double all_squares = block_sum(share.own < 0 ? 0.0 : double(squares), warp_sums);
    if (thread_index() == 0) {
        double* sums = p.partials + 3 * block_index();
        sums[0] = differences;
        sums[1] = similarities;
        sums[2] = all_squares;
    }
}

KERNEL(sum_loss, LossPassParams, loss_columns) {
    SHARED_ARRAY(double, warp_sums, warps);
    const LossParams<float>& loss = p.loss;
    double difference = 0.0, similarity = 0.0, squares = 0.0;
    for (int64_t block = thread_index(); block < p.blocks; block += loss_columns) {
        difference += loss.partials[3 * block];
        similarity += loss.partials[3 * block + 1];
        squares += loss.partials[3 * block + 2];
    }
    difference = block_sum(difference, warp_sums);
    similarity = block_sum(similarity, warp_sums);
    squares = block_sum(squares, warp_sums);
    if (thread_index() != 0) return;
    const double numbers = double(loss.width) * loss.height * loss.channels;
    const double l1 = difference / numbers, ssim = similarity / numbers;
    loss.terms[0] = (1.0 - loss.ssim_weight) * l1 + loss.ssim_weight * (1.0 - ssim);
    loss.terms[1] = l1;
    loss.terms[2] = ssim;
    loss.terms[3] = squares / numbers;
    if (p.flags && !is_finite(float(loss.terms[0]))) p.flags[0] |= not_finite_loss;
}

KERNEL(differentiate_loss, LossPassParams, loss_columns) {
    SHARED_ARRAY(float, tiles, 2 * 3 * longest_tile);
    const LossParams<float>& loss = p.loss;
    const Share share(loss);
    const int64_t plane = share.row_size * loss.height;
    const float per_number = p.grad_loss[0] / float(plane);
    const float ssim_share = float(loss.ssim_weight) * per_number;
    const float l1_share = float(1.0 - loss.ssim_weight) * per_number;
    float pending[3][taps - 1] = {};
    float numbers[3][reads];
#pragma unroll
    for (int f = 0; f < 3; ++f)
        read_row(share, loss.maps + f * plane, share.begin - ssim_radius, loss.height, numbers[f]);
    // Two rows a turn, so that the compiler has not to move the sums from one place to the next.
#pragma unroll 2
    for (int turn = 0; turn < share.end - share.begin + 2 * ssim_radius; ++turn) {
        float* tile = tiles + (turn & 1) * (3 * longest_tile);
#pragma unroll
        for (int f = 0; f < 3; ++f)
#pragma unroll
            for (int k = 0; k < reads; ++k) {
                const int in_tile = k * loss_columns + thread_index();
                if (in_tile < share.tile_size) tile[f * longest_tile + in_tile] = numbers[f][k];
            }
        sync_block();
        const int row = share.begin - ssim_radius + turn, blurred_row = row - ssim_radius;
        const bool is_written = blurred_row >= share.begin && share.own >= 0;
        const int64_t at = blurred_row * share.row_size + share.own;
        const float x = is_written ? load_read_only(loss.render + at) : 0.0f;
        float y = 0.0f;
        if (is_written)
            y = loss.target ? load_read_only(loss.target + at)
                            : fraction_of(load_read_only(loss.target_bytes + at));
        float fields[3];
#pragma unroll
        for (int f = 0; f < 3; ++f) {
            read_row(share, loss.maps + f * plane, row + 1, loss.height, numbers[f]);
            const float* own = tile + f * longest_tile + thread_index();
            fields[f] = blur_down(blur_across(own, share.channels), pending[f]);
        }
        if (!is_written) continue;
        const float sign = float(x > y) - float(x < y);
        loss.gradient[at] =
            l1_share * sign - ssim_share * similarity_slope(x, y, fields[0], fields[1], fields[2]);
    }
}

}  // namespace splatscope
