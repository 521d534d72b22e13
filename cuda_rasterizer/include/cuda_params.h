// The parameter structures and sizes that only CUDA has: binning on the device, and compositing by passes.
//
// Pointers are to device memory, contiguous, as in params.h; everything is float32. Counts that only the
// device knows are read from `totals`, so that no launch waits for the host: a kernel's grid is sized by
// what the host knows (splats, capacity) and blocks beyond the count leave at once. Launches of zero blocks
// are left out; the results are right without them.
//
// The launches of one forward, in order. N splats, T tiles (row by row), `capacity` instances (a splat in a
// tile) that the buffers hold, totals (2) int64 on the device: seen splats, instances. Blocks of 256 threads
// unless said; "blocks(n, m)" is ceil(n / m). Dynamic shared memory is used nowhere.
//
//   pack_splats         blocks(N, 256)              PackParams      radii... -> records, tile_counts, sums
//   scan_block_sums     1, 1024 threads             ScanParams      sums in place, total -> totals[0]
//   compact_splats      blocks(N, 256)              CompactParams   depth keys and splats of the seen
//   depth sort: 4 passes, shift 0, 8, 16, 24, from A to B and back, so that the result is in A again
//     sort_count        blocks(N, sort_items)       SortParams      count = totals, capacity = N
//     sort_scan         sort_digits                 SortParams      32 to 256 threads; a thread for each
//                                                                   sort_items items is enough
//     sort_scatter      blocks(N, sort_items)       SortParams
//   count_instances     blocks(N, 256)              EmitParams      tiles of each 256 in depth order: sums
//   scan_block_sums     1, 1024 threads             ScanParams      total -> totals[1]
//   emit_instances[_narrow]  blocks(N, 256)         EmitParams      (tile, value) in depth order
//   tile sort: shift 0, 8, ... below the bits of T - 1 (at least one pass); with narrow keys (T <= 65536):
//     sort_count[_narrow], sort_scan, sort_scatter[_narrow]        count = totals + 1, capacity = capacity
//   gather_instances    blocks(capacity, 256)       GatherParams    only where slots are wanted
//   tile_ranges[_narrow]  blocks(T + 1, 256)        RangeParams
//   order_tiles         1, 1024 threads             OrderParams
//   blend[_depth]       T                           BlendPassParams 3 channels
//   blend_channels[_depth]  T                       BlendPassParams else: once for each 4 channels, at least
//                                                                   once; channel_begin 0, 4, 8, ...; depth,
//                                                                   where it is wanted, in the first
//
// When totals[1] > capacity the lists are cut off and the picture is void: repeat from emit_instances with
// buffers that hold totals[1]. More than maximum_instances cannot be drawn.
//
// Emission. Without slots the sorted value is the splat and lands in instance_splats itself. With slots (for
// a deterministic backward) it is the place in the order of emission: pass emitted_splats and first_slots to
// emit_instances; the sorted values are instance_slots, and gather_instances fills instance_splats.
//
// Backward (rows: one row of sums a splat, zeroed by the caller; slots: one row an instance, not zeroed):
//   channels == 3 and geometry asked for      blend_backward, or blend_backward_full with depth or absolute
//   channels != 3 and geometry asked for      blend_backward_wide, then for the colours, where asked for,
//                                             blend_backward_colors once for each 4 channels
//   colours only                              blend_backward_colors once for each 4 channels
// each T blocks, BackwardPassParams; the names end in _deterministic where rows are slots. Geometry is any
// of means_2d, conics, opacities, depths, absolute. Layout of a row, as the kernel used demands:
//   blend_backward 6 moments, 3 channels; _full the same, then depth, absolute x, absolute y;
//   _wide 6 moments, (channels at color_row, where asked for), 3 extras at extra_row;
//   _colors alone: channels.
//
//   sum_slots            blocks(N * row_size, 256)             SumSlotsParams       deterministic only
//   splat_gradients      blocks(N, 256)                        SplatGradientParams
//   background_gradient  blocks(pixels * channels, 256)        BackgroundParams     per-pixel background
//   background_sums      blocks(pixels, background_pixels)     BackgroundParams     constant background, then
//   background_total     1                                     BackgroundParams
#pragma once

#include "dialect.h"
#include "params.h"

namespace splatscope {

// One pass of the radix sort takes 8 bits; a block takes this many items.
constexpr int sort_digits = 256;
constexpr int sort_items = 4096;

// Instances are numbered by 31 bits, less some room for the last batch of a list.
constexpr int64_t maximum_instances = 2147479552;
// Tile ids fit the narrow keys up to this many tiles.
constexpr int64_t maximum_narrow_tiles = 65536;

// Channels that blend_channels and blend_backward_colors take at once.
constexpr int channel_chunk = 4;

// Sums of one splat beside moments and channels: depth, absolute x, absolute y.
constexpr int row_extras = 3;

// Pixels whose background gradients one block sums.
constexpr int background_pixels = 4096;

// Splats as projection left them, packed for compositing, each with the number of tiles that it reaches.
struct PackParams {
    const float* means_2d;   // (count, 2)
    const float* conics;     // (count, 3)
    const float* depths;     // (count)
    const float* opacities;  // (count)
    const float* colors;     // (count, channels); read only where channels is 3
    const int32_t* radii;    // (count, 2)
    float* records;          // (count, record_size); not written for splats that are not seen
    int32_t* tile_counts;    // (count): tiles, 0 where not seen
    int64_t* block_sums;     // (blocks(count, 256)): seen splats of each block
    int64_t count;
    int32_t channels;
    int32_t width;
    int32_t height;
    int32_t unused;
    CutoffParams cutoffs;
};

// Exclusive sums in place.
struct ScanParams {
    int64_t* block_sums;  // (count)
    int64_t* total;       // (1)
    int64_t count;
};

// The seen splats, in the order of their indices.
struct CompactParams {
    const float* depths;         // (count)
    const int32_t* tile_counts;  // (count)
    const int64_t* block_sums;   // (blocks(count, 256)), scanned
    uint32_t* keys;              // (count): bits of the depth
    int32_t* splats;             // (count)
    int64_t count;
};

// One digit of a stable sort of pairs; keys are uint32, or uint16 in the kernels named narrow.
struct SortParams {
    const void* keys;        // (capacity)
    const int32_t* values;   // (capacity)
    void* sorted_keys;       // (capacity), another buffer
    int32_t* sorted_values;  // (capacity), another buffer
    uint32_t* digit_counts;  // (sort_digits, blocks(capacity, sort_items)), scratch
    uint32_t* digit_totals;  // (sort_digits), scratch
    const int64_t* count;    // on the device; items beyond capacity do not exist
    int64_t capacity;
    int32_t shift;  // of the digit: a multiple of 8
    int32_t unused;
};

// From splats in depth order to instances.
struct EmitParams {
    const float* records;        // (count, record_size)
    const int32_t* tile_counts;  // (count)
    const int32_t* order;        // (count): splats near to far
    const int64_t* totals;       // (2)
    int64_t* block_sums;         // (blocks(count, 256)): written by count_instances, then scanned
    void* tiles;                 // (capacity) uint32, or uint16 where narrow
    int32_t* values;             // (capacity): splats, or places in the order of emission
    int32_t* emitted_splats;     // (capacity), or null without slots
    int32_t* first_slots;        // (count): first place of each seen splat, or null without slots
    int64_t count;
    int64_t capacity;
    int32_t width;
    int32_t height;
};

struct GatherParams {
    const int32_t* emitted_splats;  // (capacity)
    const int32_t* instance_slots;  // (capacity): sorted by tile
    int32_t* instance_splats;       // (capacity)
    const int64_t* totals;
    int64_t capacity;
};

struct RangeParams {
    const void* tiles;      // (capacity), sorted
    int64_t* tile_offsets;  // (tile_count + 1): first instance of each tile
    const int64_t* totals;
    int64_t capacity;
    int64_t tile_count;
};

struct OrderParams {
    const int64_t* tile_offsets;  // (tile_count + 1)
    int32_t* tile_order;          // (tile_count): long lists first; any order among lists of about one length
    int64_t tile_count;
};

// Compositing of `channel_chunk` channels, or of all three. Passes after the first write colours only.
struct BlendPassParams {
    BlendParams<float> blend;
    int32_t channel_begin;
    int32_t unused;
};

struct BackwardPassParams {
    TileParams<float> tiles;
    const float* transmittance;  // (height, width), of the forward
    const int32_t* stops;        // (height, width), of the forward
    const float* grad_color;     // each may be null: no gradient came
    const float* grad_alpha;
    const float* grad_depth;
    const int32_t* instance_slots;  // (instances), deterministic only
    float* rows;                    // (splats, row_size) zeroed, or (instances, row_size) by slot
    int64_t row_size;
    int32_t color_row;  // where in a row the channels begin; read by _colors
    int32_t extra_row;  // where in a row the extras begin; read by _wide
    int32_t channel_begin;
    int32_t unused;
};

// Each splat's slots summed in the order of emission.
struct SumSlotsParams {
    const float* slots;          // (instances, row_size)
    const int32_t* tile_counts;  // (count)
    const int32_t* first_slots;  // (count)
    float* rows;                 // (count, row_size)
    int64_t row_size;
    int64_t count;
};

// From sums to the gradients of what compositing read; those that are null nobody asked for.
struct SplatGradientParams {
    const float* records;
    const int32_t* tile_counts;
    const float* rows;         // (count, row_size)
    float* grad_means_2d;      // (count, 2)
    float* grad_conics;        // (count, 3)
    float* grad_opacities;     // (count)
    float* grad_colors;        // (count, channels)
    float* grad_depths;        // (count)
    float* absolute_gradient;  // (count, 2)
    int64_t row_size;
    int64_t count;
    int32_t channels;
    int32_t color_row;  // where in a row the channels begin
    int32_t extra_row;  // where in a row the extras begin
    int32_t unused;
};

struct BackgroundParams {
    const float* transmittance;  // (pixels)
    const float* grad_color;     // (pixels, channels)
    float* grad_background;      // (pixels, channels), or (channels)
    float* partials;             // (blocks(pixels, background_pixels), channels), scratch; null per pixel
    int64_t pixels;
    int64_t channels;
};

// --- projection, loss, optimiser, picture ------------------------------------------------------------------
//
// Launches; blocks of 256 threads, no dynamic shared memory, every array on the device. A launch of zero
// blocks is left out.
//
//   project             blocks(N, splat_block)        ProjectParams<float>
//   project_backward    blocks(N, splat_block)        ProjectBackwardParams<float>; camera_partials (blocks,
//   12) sum_camera_gradient 1                             the same; only with grad_world_to_camera, N = 0
//   included adam                sum of blocks(count, adam_block) over the groups   AdamParams<float>
//   measure_loss        see below                     LossParams<float>; partials (blocks, 3), and maps where
//                                                     the gradient will be wanted
//   sum_loss            1                             LossPassParams: partials -> terms
//   differentiate_loss  as measure_loss               LossPassParams: maps -> gradient; at any later time
//   to_rgba8            blocks(pixels, rgba8_block)   Rgba8Params<float>
//
// The loss takes channels in chunks of at most loss_channels and, of each chunk's interleaved row,
// loss_columns numbers a block, down loss_strip rows: blocks = blocks(channels, loss_channels) * blocks(width
// * min(channels, loss_channels), loss_columns) * blocks(height, loss_strip).

// Numbers that one block of Adam moves.
constexpr int adam_block = 4096;

constexpr int loss_channels = 16;
constexpr int loss_columns = 256;
constexpr int loss_strip = 48;

// Pixels that one block converts.
constexpr int rgba8_block = 1024;

struct LossPassParams {
    LossParams<float> loss;
    const float* grad_loss;  // (1): what the gradient is multiplied by; null in sum_loss
    int64_t blocks;          // of measure_loss, whose partials sum_loss adds
    int32_t* flags;          // (2) or null: sum_loss notes whether the loss is finite
};

}  // namespace splatscope
