// The seam to native code: one POD structure per kernel, the same for every backend and device.
//
// Pointers are to contiguous arrays in row-major order unless a stride is named. The caller owns every
// array and keeps it alive until the call returns. A null pointer among the outputs means that nobody
// asks for it; other null pointers are allowed only where said. `Real` is float or double; both give
// the same layout, which `native_structs.py` mirrors and `native.py` checks at load.
#pragma once

#if !defined(__CUDACC_RTC__)  // which has no such header; cuda/dialect.h brings the types
#include <cstdint>
#endif

#include "constants.h"

namespace splatscope {

struct CutoffParams {
    double near;
    double alpha_floor;
    double alpha_ceiling;
    double stop_transmittance;
    double dilation;
    double j_clamp;
    double footprint_cap;
    int64_t stop_inclusive;
};

// How a kernel of the CPU is done in pieces, so that the caller can do something else between two of them:
// its call returns between two tasks (tiles, blocks of splats) and is made again, unchanged, until all are
// done.
struct PieceParams {
    const int64_t* called;       // return as soon as this is not 0
    int64_t patience_ns;         // or after so long; negative: never
    int64_t next;                // 0 at first; then the loop to go on with, or all_pieces_done
    int64_t begun[task_shares];  // 0 at first; then how many tasks of each of its task_shares are done
};

// Splats in, as the caller has them. Colours are spherical harmonics (`sh_dc`, `sh_rest`) or `features`.
template <typename Real>
struct SplatParams {
    const Real* means;            // (count, 3)
    const Real* quaternions;      // (count, 4), w x y z
    const Real* scales;           // (count, 3)
    const Real* opacities;        // (count)
    const Real* sh_dc;            // (count, 1, 3), or null
    const Real* sh_rest;          // (count, coefficients - 1, 3), null at degree 0
    const Real* features;         // (count, channels), or null
    const Real* world_to_camera;  // (4, 4)
    const Real* intrinsics;       // (3, 3)
    int64_t sh_dc_stride;         // numbers from one splat to the next
    int64_t sh_rest_stride;
    int64_t count;
    int32_t channels;
    int32_t sh_degree;  // in use; -1 with features
    int32_t width;
    int32_t height;
    int32_t antialiased;
    int32_t raw;  // scales are logarithms and opacities logits; so are their gradients
    CutoffParams cutoffs;
};

template <typename Real>
struct ProjectParams {
    SplatParams<Real> splats;
    Real* means_2d;             // (count, 2)
    Real* conics;               // (count, 3)
    Real* depths;               // (count)
    Real* effective_opacities;  // (count)
    Real* colors;               // (count, 3); null with features
    int32_t* radii;             // (count, 2)
    PieceParams* pieces;        // CPU only; null: all at once
};

template <typename Real>
struct ProjectBackwardParams {
    SplatParams<Real> splats;
    const int32_t* radii;       // (count, 2), of the forward
    const Real* grad_means_2d;  // each may be null: no gradient came
    const Real* grad_conics;
    const Real* grad_depths;
    const Real* grad_effective_opacities;
    const Real* grad_colors;
    Real* grad_means;  // as the inputs, contiguous
    Real* grad_quaternions;
    Real* grad_scales;
    Real* grad_opacities;
    Real* grad_sh_dc;            // (count, 1, 3)
    Real* grad_sh_rest;          // (count, sh_rest_coefficients, 3), unused degrees zero
    Real* grad_world_to_camera;  // (4, 4)
    Real* camera_partials;       // (blocks of splats, 12), scratch; null with grad_world_to_camera
    int64_t sh_rest_coefficients;
    int32_t* flags;       // (2): bits of constants.h are added to it; or null
    PieceParams* pieces;  // CPU only; null: all at once
};

// Which tiles each splat touches: count first, so that the caller can allocate, then fill. Counting also
// packs the splats as compositing reads them.
template <typename Real>
struct BinParams {
    const Real* means_2d;
    const Real* conics;
    const Real* depths;
    const Real* opacities;
    const Real* colors;  // (count, channels)
    const int32_t* radii;
    int64_t count;
    int32_t channels;
    int32_t width;
    int32_t height;
    int32_t unused;
    CutoffParams cutoffs;
    Real* records;             // (count, record_size)
    void* sort_keys;           // (2, count) of two numbers each, scratch
    int32_t* order;            // (count): the first `visible` are the seen splats, near to far, then index
    int32_t* tile_counts;      // (bin_blocks, tiles), kept from count to fill
    int64_t* splat_offsets;    // (count + 1): first instance slot of each splat
    int64_t* tile_offsets;     // (tiles + 1): first instance of each tile
    int64_t* totals;           // (2): visible splats, instances
    int32_t* tile_order;       // (tiles): in shares of neighbours, longest list first; filled by fill
    int32_t* instance_splats;  // (instances), tile by tile, near to far; filled by fill
    int64_t*
        instance_slots;   // (instances): splat_offsets plus place among its splat's, or null; filled by fill
    PieceParams* pieces;  // CPU only; null: all at once
};

// What forward and backward of compositing share.
template <typename Real>
struct TileParams {
    const Real* colors;      // (count, channels)
    const Real* background;  // (channels), (height, width, channels), or null for black
    const Real* records;     // from bin
    const int64_t* tile_offsets;
    const int32_t* tile_order;
    const int32_t* instance_splats;
    int32_t* touches;          // CPU only: (instances, touch_numbers), forward's notes for backward, or null
    Real* workspace;           // (workers, workspace_stride), scratch
    int64_t workspace_stride;  // in numbers, a multiple of a cache line
    int64_t count;
    int32_t workers;
    int32_t channels;
    int32_t width;
    int32_t height;
    int64_t background_per_pixel;
    CutoffParams cutoffs;
};

template <typename Real>
struct BlendParams {
    TileParams<Real> tiles;
    Real* color;          // (height, width, channels)
    Real* alpha;          // (height, width)
    Real* depth;          // (height, width), or null
    Real* transmittance;  // (height, width) left behind the last splat, or null
    int32_t* stops;       // (height, width): instances of the tile's list that the pixel saw, or null
    PieceParams* pieces;  // CPU only; null: all at once
};

template <typename Real>
struct BlendBackwardParams {
    TileParams<Real> tiles;
    const int64_t* splat_offsets;
    const int64_t* instance_slots;
    const Real* transmittance;
    const int32_t* stops;
    const Real* grad_color;  // each may be null: no gradient came
    const Real* grad_alpha;
    const Real* grad_depth;
    Real* slots;              // (instances, slot_size), scratch
    int64_t slot_size;        // slot_moments + channels, + 1 with grad_depth, + 2 with absolute_gradient
    Real* grad_means_2d;      // (count, 2)
    Real* grad_conics;        // (count, 3)
    Real* grad_opacities;     // (count)
    Real* grad_colors;        // (count, channels)
    Real* grad_depths;        // (count)
    Real* absolute_gradient;  // (count, 2): sums of |per-pixel gradient| of means_2d
    Real* grad_background;    // as background
    Real* tile_partials;      // (tiles, channels), scratch, null unless grad_background is (channels)
    PieceParams* pieces;      // CPU only; null: all at once
};

template <typename Real>
struct LossParams {
    const Real* render;           // (height, width, channels)
    const Real* target;           // as render, or null
    const uint8_t* target_bytes;  // the same in 255ths, where target is null
    Real* gradient;               // of the loss, as render, or null
    Real* maps;                   // (3, height, width, channels), CUDA only; null where no gradient is wanted
    Real* workspace;              // (workers, workspace_stride), CPU only, scratch
    double* partials;             // (tasks or blocks, 3), scratch
    double* terms;                // (4): loss, means of |difference|, SSIM, squared difference of the render
                                  // limited to [0, 1]
    int64_t workspace_stride;     // loss_workspace_rows rows that a strip fits into with all its surroundings
    int32_t workers;
    int32_t strip_width;  // pixels, CPU only
    int32_t channels;
    int32_t width;
    int32_t height;
    int32_t unused;
    double ssim_weight;
    PieceParams* pieces;  // CPU only; null: all at once
};

// One tensor that Adam moves.
template <typename Real>
struct AdamGroupParams {
    Real* parameter;
    const Real* gradient;
    Real* exp_avg;
    Real* exp_avg_sq;
    int64_t count;
    int64_t row_size;   // numbers a splat
    double step_size;   // learning rate / (1 - beta1^step)
    double correction;  // sqrt(1 - beta2^step)
};

template <typename Real>
struct AdamParams {
    AdamGroupParams<Real> groups[maximum_adam_groups];
    const int32_t* radii;  // (rows, 2): rows whose first is 0 stay as they are; null moves every row
    double beta1;
    double beta2;
    double eps;
    int64_t group_count;
    const int32_t* flags;  // (2): nothing moves where flags[0] has a bit or no splat was seen; or null
};

// Screen gradients of one view added to the sums of those before; CPU only.
template <typename Real>
struct ScreenGradientParams {
    const Real* gradients;  // (count, 2), of the centres in pixels
    const int32_t* radii;   // (count, 2): 0 where a splat was not seen
    const Real* sums;       // (count) of the norms in NDC
    const Real* visits;     // (count)
    Real* new_sums;
    Real* new_visits;
    int64_t count;
    double half_width;  // of the picture: an NDC unit in pixels
    double half_height;
};

template <typename Real>
struct Rgba8Params {
    const Real* color;  // (pixels, 3)
    uint8_t* rgba;      // (pixels, 4)
    int64_t pixels;
};

}  // namespace splatscope
