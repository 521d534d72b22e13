// The exported face of the library: picks the instruction set, guards the float mode, tells its layouts.

#include <cstddef>
#include <cstring>

#include "constants.h"
#include "denormals.h"
#include "kernels.h"
#include "params.h"
#include "thread_pool.h"

SPLATSCOPE_DECLARE_KERNELS(baseline)
#if defined(SPLATSCOPE_X86)
SPLATSCOPE_DECLARE_KERNELS(avx2)
SPLATSCOPE_DECLARE_KERNELS(avx512)
#endif

#define SPLATSCOPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace splatscope {
namespace {

enum class InstructionSet { baseline, avx2, avx512 };

bool is_supported(InstructionSet set) {
#if defined(SPLATSCOPE_X86)
    switch (set) {
        case InstructionSet::baseline:
            return true;
        case InstructionSet::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        case InstructionSet::avx512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    }
    return false;
#else
    return set == InstructionSet::baseline;
#endif
}

InstructionSet widest() {
    if (is_supported(InstructionSet::avx512)) return InstructionSet::avx512;
    return is_supported(InstructionSet::avx2) ? InstructionSet::avx2 : InstructionSet::baseline;
}

InstructionSet& current() {
    static InstructionSet set = widest();
    return set;
}

constexpr const char* set_names[] = {"baseline", "avx2", "avx512"};

// What the Python side must have declared alike.
struct Field {
    const char* structure;
    const char* name;  // empty: the size of the whole structure
    int64_t value;
};

#define SIZE_OF(type) {#type, "", int64_t(sizeof(type<float>))}
#define OFFSET_OF(type, field) {#type, #field, int64_t(offsetof(type<float>, field))}

constexpr Field fields[] = {
    {"CutoffParams", "", sizeof(CutoffParams)},
    {"CutoffParams", "near", offsetof(CutoffParams, near)},
    {"CutoffParams", "alpha_floor", offsetof(CutoffParams, alpha_floor)},
    {"CutoffParams", "alpha_ceiling", offsetof(CutoffParams, alpha_ceiling)},
    {"CutoffParams", "stop_transmittance", offsetof(CutoffParams, stop_transmittance)},
    {"CutoffParams", "dilation", offsetof(CutoffParams, dilation)},
    {"CutoffParams", "j_clamp", offsetof(CutoffParams, j_clamp)},
    {"CutoffParams", "footprint_cap", offsetof(CutoffParams, footprint_cap)},
    {"CutoffParams", "stop_inclusive", offsetof(CutoffParams, stop_inclusive)},
    {"PieceParams", "", sizeof(PieceParams)},
    {"PieceParams", "called", offsetof(PieceParams, called)},
    {"PieceParams", "patience_ns", offsetof(PieceParams, patience_ns)},
    {"PieceParams", "next", offsetof(PieceParams, next)},
    {"PieceParams", "begun", offsetof(PieceParams, begun)},
    SIZE_OF(SplatParams),
    OFFSET_OF(SplatParams, means),
    OFFSET_OF(SplatParams, quaternions),
    OFFSET_OF(SplatParams, scales),
    OFFSET_OF(SplatParams, opacities),
    OFFSET_OF(SplatParams, sh_dc),
    OFFSET_OF(SplatParams, sh_rest),
    OFFSET_OF(SplatParams, features),
    OFFSET_OF(SplatParams, world_to_camera),
    OFFSET_OF(SplatParams, intrinsics),
    OFFSET_OF(SplatParams, sh_dc_stride),
    OFFSET_OF(SplatParams, sh_rest_stride),
    OFFSET_OF(SplatParams, count),
    OFFSET_OF(SplatParams, channels),
    OFFSET_OF(SplatParams, sh_degree),
    OFFSET_OF(SplatParams, width),
    OFFSET_OF(SplatParams, height),
    OFFSET_OF(SplatParams, antialiased),
    OFFSET_OF(SplatParams, raw),
    OFFSET_OF(SplatParams, cutoffs),
    SIZE_OF(ProjectParams),
    OFFSET_OF(ProjectParams, splats),
    OFFSET_OF(ProjectParams, means_2d),
    OFFSET_OF(ProjectParams, conics),
    OFFSET_OF(ProjectParams, depths),
    OFFSET_OF(ProjectParams, effective_opacities),
    OFFSET_OF(ProjectParams, colors),
    OFFSET_OF(ProjectParams, radii),
    OFFSET_OF(ProjectParams, pieces),
    SIZE_OF(ProjectBackwardParams),
    OFFSET_OF(ProjectBackwardParams, splats),
    OFFSET_OF(ProjectBackwardParams, radii),
    OFFSET_OF(ProjectBackwardParams, grad_means_2d),
    OFFSET_OF(ProjectBackwardParams, grad_conics),
    OFFSET_OF(ProjectBackwardParams, grad_depths),
    OFFSET_OF(ProjectBackwardParams, grad_effective_opacities),
    OFFSET_OF(ProjectBackwardParams, grad_colors),
    OFFSET_OF(ProjectBackwardParams, grad_means),
    OFFSET_OF(ProjectBackwardParams, grad_quaternions),
    OFFSET_OF(ProjectBackwardParams, grad_scales),
    OFFSET_OF(ProjectBackwardParams, grad_opacities),
    OFFSET_OF(ProjectBackwardParams, grad_sh_dc),
    OFFSET_OF(ProjectBackwardParams, grad_sh_rest),
    OFFSET_OF(ProjectBackwardParams, grad_world_to_camera),
    OFFSET_OF(ProjectBackwardParams, camera_partials),
    OFFSET_OF(ProjectBackwardParams, sh_rest_coefficients),
    OFFSET_OF(ProjectBackwardParams, flags),
    OFFSET_OF(ProjectBackwardParams, pieces),
    SIZE_OF(BinParams),
    OFFSET_OF(BinParams, means_2d),
    OFFSET_OF(BinParams, conics),
    OFFSET_OF(BinParams, depths),
    OFFSET_OF(BinParams, opacities),
    OFFSET_OF(BinParams, colors),
    OFFSET_OF(BinParams, radii),
    OFFSET_OF(BinParams, count),
    OFFSET_OF(BinParams, channels),
    OFFSET_OF(BinParams, width),
    OFFSET_OF(BinParams, height),
    OFFSET_OF(BinParams, unused),
    OFFSET_OF(BinParams, cutoffs),
    OFFSET_OF(BinParams, records),
    OFFSET_OF(BinParams, sort_keys),
    OFFSET_OF(BinParams, order),
    OFFSET_OF(BinParams, tile_counts),
    OFFSET_OF(BinParams, splat_offsets),
    OFFSET_OF(BinParams, tile_offsets),
    OFFSET_OF(BinParams, totals),
    OFFSET_OF(BinParams, tile_order),
    OFFSET_OF(BinParams, instance_splats),
    OFFSET_OF(BinParams, instance_slots),
    OFFSET_OF(BinParams, pieces),
    SIZE_OF(TileParams),
    OFFSET_OF(TileParams, colors),
    OFFSET_OF(TileParams, background),
    OFFSET_OF(TileParams, records),
    OFFSET_OF(TileParams, tile_offsets),
    OFFSET_OF(TileParams, tile_order),
    OFFSET_OF(TileParams, instance_splats),
    OFFSET_OF(TileParams, touches),
    OFFSET_OF(TileParams, workspace),
    OFFSET_OF(TileParams, workspace_stride),
    OFFSET_OF(TileParams, count),
    OFFSET_OF(TileParams, workers),
    OFFSET_OF(TileParams, channels),
    OFFSET_OF(TileParams, width),
    OFFSET_OF(TileParams, height),
    OFFSET_OF(TileParams, background_per_pixel),
    OFFSET_OF(TileParams, cutoffs),
    SIZE_OF(BlendParams),
    OFFSET_OF(BlendParams, tiles),
    OFFSET_OF(BlendParams, color),
    OFFSET_OF(BlendParams, alpha),
    OFFSET_OF(BlendParams, depth),
    OFFSET_OF(BlendParams, transmittance),
    OFFSET_OF(BlendParams, stops),
    OFFSET_OF(BlendParams, pieces),
    SIZE_OF(BlendBackwardParams),
    OFFSET_OF(BlendBackwardParams, tiles),
    OFFSET_OF(BlendBackwardParams, splat_offsets),
    OFFSET_OF(BlendBackwardParams, instance_slots),
    OFFSET_OF(BlendBackwardParams, transmittance),
    OFFSET_OF(BlendBackwardParams, stops),
    OFFSET_OF(BlendBackwardParams, grad_color),
    OFFSET_OF(BlendBackwardParams, grad_alpha),
    OFFSET_OF(BlendBackwardParams, grad_depth),
    OFFSET_OF(BlendBackwardParams, slots),
    OFFSET_OF(BlendBackwardParams, slot_size),
    OFFSET_OF(BlendBackwardParams, grad_means_2d),
    OFFSET_OF(BlendBackwardParams, grad_conics),
    OFFSET_OF(BlendBackwardParams, grad_opacities),
    OFFSET_OF(BlendBackwardParams, grad_colors),
    OFFSET_OF(BlendBackwardParams, grad_depths),
    OFFSET_OF(BlendBackwardParams, absolute_gradient),
    OFFSET_OF(BlendBackwardParams, grad_background),
    OFFSET_OF(BlendBackwardParams, tile_partials),
    OFFSET_OF(BlendBackwardParams, pieces),
    SIZE_OF(LossParams),
    OFFSET_OF(LossParams, render),
    OFFSET_OF(LossParams, target),
    OFFSET_OF(LossParams, target_bytes),
    OFFSET_OF(LossParams, gradient),
    OFFSET_OF(LossParams, maps),
    OFFSET_OF(LossParams, workspace),
    OFFSET_OF(LossParams, partials),
    OFFSET_OF(LossParams, terms),
    OFFSET_OF(LossParams, workspace_stride),
    OFFSET_OF(LossParams, workers),
    OFFSET_OF(LossParams, strip_width),
    OFFSET_OF(LossParams, channels),
    OFFSET_OF(LossParams, width),
    OFFSET_OF(LossParams, height),
    OFFSET_OF(LossParams, unused),
    OFFSET_OF(LossParams, ssim_weight),
    OFFSET_OF(LossParams, pieces),
    SIZE_OF(AdamGroupParams),
    OFFSET_OF(AdamGroupParams, parameter),
    OFFSET_OF(AdamGroupParams, gradient),
    OFFSET_OF(AdamGroupParams, exp_avg),
    OFFSET_OF(AdamGroupParams, exp_avg_sq),
    OFFSET_OF(AdamGroupParams, count),
    OFFSET_OF(AdamGroupParams, row_size),
    OFFSET_OF(AdamGroupParams, step_size),
    OFFSET_OF(AdamGroupParams, correction),
    SIZE_OF(AdamParams),
    OFFSET_OF(AdamParams, groups),
    OFFSET_OF(AdamParams, radii),
    OFFSET_OF(AdamParams, beta1),
    OFFSET_OF(AdamParams, beta2),
    OFFSET_OF(AdamParams, eps),
    OFFSET_OF(AdamParams, group_count),
    OFFSET_OF(AdamParams, flags),
    SIZE_OF(ScreenGradientParams),
    OFFSET_OF(ScreenGradientParams, gradients),
    OFFSET_OF(ScreenGradientParams, radii),
    OFFSET_OF(ScreenGradientParams, sums),
    OFFSET_OF(ScreenGradientParams, visits),
    OFFSET_OF(ScreenGradientParams, new_sums),
    OFFSET_OF(ScreenGradientParams, new_visits),
    OFFSET_OF(ScreenGradientParams, count),
    OFFSET_OF(ScreenGradientParams, half_width),
    OFFSET_OF(ScreenGradientParams, half_height),
    SIZE_OF(Rgba8Params),
    OFFSET_OF(Rgba8Params, color),
    OFFSET_OF(Rgba8Params, rgba),
    OFFSET_OF(Rgba8Params, pixels),
};

static_assert(sizeof(BlendBackwardParams<float>) == sizeof(BlendBackwardParams<double>),
              "one declaration in Python serves both types");

struct Constant {
    const char* name;
    int64_t value;
};

constexpr Constant constants[] = {
    {"tile_size", tile_size},
    {"splat_block", splat_block},
    {"bin_blocks", bin_blocks},
    {"record_size", record_size},
    {"touch_numbers", touch_numbers},
    {"slot_moments", slot_moments},
    {"loss_rows", loss_rows},
    {"loss_numbers", loss_numbers},
    {"loss_workspace_rows", loss_workspace_rows},
    {"loss_chunk", loss_chunk},
    {"ssim_radius", ssim_radius},
    {"all_pieces_done", all_pieces_done},
};

}  // namespace

#if defined(SPLATSCOPE_X86)
#define SPLATSCOPE_DISPATCH(kernel, params)  \
    switch (current()) {                     \
        case InstructionSet::baseline:       \
            return baseline::kernel(params); \
        case InstructionSet::avx2:           \
            return avx2::kernel(params);     \
        case InstructionSet::avx512:         \
            return avx512::kernel(params);   \
    }
#else
#define SPLATSCOPE_DISPATCH(kernel, params) return baseline::kernel(params);
#endif

#define SPLATSCOPE_EXPORT_KERNEL(kernel, Params)                                    \
    SPLATSCOPE_EXPORT void splatscope_##kernel##_float32(const Params<float>* p) {  \
        DenormalGuard guard;                                                        \
        SPLATSCOPE_DISPATCH(kernel, *p)                                             \
    }                                                                               \
    SPLATSCOPE_EXPORT void splatscope_##kernel##_float64(const Params<double>* p) { \
        DenormalGuard guard;                                                        \
        SPLATSCOPE_DISPATCH(kernel, *p)                                             \
    }

SPLATSCOPE_EXPORT_KERNEL(project, ProjectParams)
SPLATSCOPE_EXPORT_KERNEL(project_backward, ProjectBackwardParams)
SPLATSCOPE_EXPORT_KERNEL(bin_count, BinParams)
SPLATSCOPE_EXPORT_KERNEL(bin_fill, BinParams)
SPLATSCOPE_EXPORT_KERNEL(blend, BlendParams)
SPLATSCOPE_EXPORT_KERNEL(blend_backward, BlendBackwardParams)
SPLATSCOPE_EXPORT_KERNEL(l1_ssim, LossParams)
SPLATSCOPE_EXPORT_KERNEL(adam, AdamParams)
SPLATSCOPE_EXPORT_KERNEL(add_screen_gradients, ScreenGradientParams)
SPLATSCOPE_EXPORT_KERNEL(to_rgba8, Rgba8Params)

SPLATSCOPE_EXPORT const char* splatscope_instruction_set() {
    return set_names[int(current())];
}

// 0 where this machine lacks it, or no such set is known.
SPLATSCOPE_EXPORT int splatscope_use_instruction_set(const char* name) {
    for (int i = 0; i < 3; ++i) {
        if (std::strcmp(name, set_names[i]) != 0 || !is_supported(InstructionSet(i))) continue;
        current() = InstructionSet(i);
        return 1;
    }
    return 0;
}

// 0 where the system gave fewer threads than asked for.
SPLATSCOPE_EXPORT int splatscope_set_threads(int count) {
    return set_thread_count(count);
}
SPLATSCOPE_EXPORT int splatscope_threads() {
    return thread_count();
}

// The layout table, one row a call; null past its end.
SPLATSCOPE_EXPORT const char* splatscope_layout(int row, const char** field, int64_t* value) {
    if (row < 0 || row >= int(sizeof fields / sizeof fields[0])) return nullptr;
    *field = fields[row].name;
    *value = fields[row].value;
    return fields[row].structure;
}

SPLATSCOPE_EXPORT const char* splatscope_constant(int row, int64_t* value) {
    if (row < 0 || row >= int(sizeof constants / sizeof constants[0])) return nullptr;
    *value = constants[row].value;
    return constants[row].name;
}

}  // namespace splatscope
