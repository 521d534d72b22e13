// Every constant that more than one kernel, backend or test must agree on.
#pragma once

namespace splatscope {

// Images are drawn in square tiles of this many pixels.
constexpr int tile_size = 16;
constexpr int tile_pixels = tile_size * tile_size;

// Splats are projected, and their camera gradients summed, in blocks of this many.
constexpr int splat_block = 256;

// Depth order is cut into this many runs, whose tile lists are counted and filled independently.
constexpr int bin_blocks = 16;

// On the CPU a loop's tasks are dealt in this many shares, each of neighbours (see thread_pool.h).
constexpr int task_shares = 16;

// Where a kernel that is done in pieces would go on, once it is done.
constexpr int all_pieces_done = -1;

// A quaternion whose squared norm is below this has no direction; its splat is dead.
constexpr double minimum_quaternion_norm_squared = 1e-30;

// The antialiasing factor never falls below this.
constexpr double minimum_antialias_factor = 0.005;

// Radii are limited to this, so that they fit 32 bits.
constexpr double maximum_radius = 1e9;

// Slack of the tile bounds in pixels: the bounds must never decide, only the pixel test may.
constexpr double tile_bound_slack = 0.02;

// One packed splat as compositing reads it (see SplatRecord), in numbers.
constexpr int record_size = 16;
// Channels that fit into the record; wider colours are read from their own array.
constexpr int record_channels = 4;

// Numbers of 32 bits, at most, that the CPU's forward notes about a splat in a tile for backward (see Touch).
constexpr int touch_numbers = 5;

// What one splat gathers in one tile: six moments, the channels, then as asked for depth and two absolute
// sums.
constexpr int slot_moments = 6;

// Structural similarity: the window from its centre outwards, a Gaussian of sigma 1.5 that sums to 1; and the
// constants for images in [0, 1].
constexpr int ssim_radius = 5;
constexpr double ssim_window[ssim_radius + 1] = {0.2660117248617943,   0.21300553771125366,
                                                 0.1093606895097,      0.03600077212843082,
                                                 0.007598758135239184, 0.0010283800844791099};
constexpr double ssim_c1 = 0.01 * 0.01;
constexpr double ssim_c2 = 0.03 * 0.03;
// On the CPU one task of the loss works on this many rows of about so many numbers each, in groups of 8 or 16
// rows and in chunks.
constexpr int loss_rows = 8 * 16 - 2 * ssim_radius;
constexpr int loss_numbers = 960;
constexpr int loss_chunk = 96;
// What it keeps meanwhile: four fields and three derivatives of a chunk, three blurred ones of two groups of
// 16 rows or three of 8.
constexpr int loss_workspace_rows = (4 + 3 + 3 * 2) * 16;

// Real spherical harmonics, bands 0 to 3.
constexpr double sh_band_0 = 0.28209479177387814;
constexpr double sh_band_1 = 0.4886025119029199;
constexpr double sh_band_2[5] = {1.0925484305920792, -1.0925484305920792, 0.31539156525252005,
                                 -1.0925484305920792, 0.5462742152960396};
constexpr double sh_band_3[7] = {-0.5900435899266435, 2.890611442640554,   -0.4570457994644658,
                                 0.3731763325901154,  -0.4570457994644658, 1.445305721320277,
                                 -0.5900435899266435};
constexpr int maximum_sh_coefficients = 16;

// Tensors that one call of Adam moves at most.
constexpr int maximum_adam_groups = 8;

// What a step found (`flags` in params.h). In flags[0] a bit for each tensor whose gradient, and one for the
// loss, was not finite; in flags[1] whether any splat was seen, and whether any gradient was not zero.
constexpr int not_finite_means = 1;
constexpr int not_finite_quaternions = 2;
constexpr int not_finite_scales = 4;
constexpr int not_finite_opacities = 8;
constexpr int not_finite_sh_dc = 16;
constexpr int not_finite_sh_rest = 32;
constexpr int not_finite_loss = 64;
constexpr int found_seen = 1;
constexpr int found_gradient = 2;

}  // namespace splatscope
