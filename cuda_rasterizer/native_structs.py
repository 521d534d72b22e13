"""The parameter structures of the native seam, as `include/params.h` declares them.

Names and order are the C++ ones; sizes and every offset are compared with the library's own when it
is loaded (`native.load_library`).
"""

import ctypes
from ctypes import c_double, c_int32, c_int64, c_void_p
from typing import Final

MAXIMUM_ADAM_GROUPS: Final = 8


class CutoffParams(ctypes.Structure):
    """Cut-offs of compositing."""

    _fields_ = [
        ("near", c_double),
        ("alpha_floor", c_double),
        ("alpha_ceiling", c_double),
        ("stop_transmittance", c_double),
        ("dilation", c_double),
        ("j_clamp", c_double),
        ("footprint_cap", c_double),
        ("stop_inclusive", c_int64),
    ]


class PieceParams(ctypes.Structure):
    """How a kernel of the CPU is done in pieces."""

    _fields_ = [
        ("called", c_void_p),
        ("patience_ns", c_int64),
        ("next", c_int64),
        ("begun", c_int64 * 16),
    ]


class SplatParams(ctypes.Structure):
    """Splats and camera, as the caller has them."""

    _fields_ = [
        ("means", c_void_p),
        ("quaternions", c_void_p),
        ("scales", c_void_p),
        ("opacities", c_void_p),
        ("sh_dc", c_void_p),
        ("sh_rest", c_void_p),
        ("features", c_void_p),
        ("world_to_camera", c_void_p),
        ("intrinsics", c_void_p),
        ("sh_dc_stride", c_int64),
        ("sh_rest_stride", c_int64),
        ("count", c_int64),
        ("channels", c_int32),
        ("sh_degree", c_int32),
        ("width", c_int32),
        ("height", c_int32),
        ("antialiased", c_int32),
        ("raw", c_int32),
        ("cutoffs", CutoffParams),
    ]


class ProjectParams(ctypes.Structure):
    """Projection."""

    _fields_ = [
        ("splats", SplatParams),
        ("means_2d", c_void_p),
        ("conics", c_void_p),
        ("depths", c_void_p),
        ("effective_opacities", c_void_p),
        ("colors", c_void_p),
        ("radii", c_void_p),
        ("pieces", c_void_p),
    ]


class ProjectBackwardParams(ctypes.Structure):
    """The way back from the image plane."""

    _fields_ = [
        ("splats", SplatParams),
        ("radii", c_void_p),
        ("grad_means_2d", c_void_p),
        ("grad_conics", c_void_p),
        ("grad_depths", c_void_p),
        ("grad_effective_opacities", c_void_p),
        ("grad_colors", c_void_p),
        ("grad_means", c_void_p),
        ("grad_quaternions", c_void_p),
        ("grad_scales", c_void_p),
        ("grad_opacities", c_void_p),
        ("grad_sh_dc", c_void_p),
        ("grad_sh_rest", c_void_p),
        ("grad_world_to_camera", c_void_p),
        ("camera_partials", c_void_p),
        ("sh_rest_coefficients", c_int64),
        ("flags", c_void_p),
        ("pieces", c_void_p),
    ]


class BinParams(ctypes.Structure):
    """Tile lists: count, allocate, fill."""

    _fields_ = [
        ("means_2d", c_void_p),
        ("conics", c_void_p),
        ("depths", c_void_p),
        ("opacities", c_void_p),
        ("colors", c_void_p),
        ("radii", c_void_p),
        ("count", c_int64),
        ("channels", c_int32),
        ("width", c_int32),
        ("height", c_int32),
        ("unused", c_int32),
        ("cutoffs", CutoffParams),
        ("records", c_void_p),
        ("sort_keys", c_void_p),
        ("order", c_void_p),
        ("tile_counts", c_void_p),
        ("splat_offsets", c_void_p),
        ("tile_offsets", c_void_p),
        ("totals", c_void_p),
        ("tile_order", c_void_p),
        ("instance_splats", c_void_p),
        ("instance_slots", c_void_p),
        ("pieces", c_void_p),
    ]


class TileParams(ctypes.Structure):
    """What compositing and its backward share."""

    _fields_ = [
        ("colors", c_void_p),
        ("background", c_void_p),
        ("records", c_void_p),
        ("tile_offsets", c_void_p),
        ("tile_order", c_void_p),
        ("instance_splats", c_void_p),
        ("touches", c_void_p),
        ("workspace", c_void_p),
        ("workspace_stride", c_int64),
        ("count", c_int64),
        ("workers", c_int32),
        ("channels", c_int32),
        ("width", c_int32),
        ("height", c_int32),
        ("background_per_pixel", c_int64),
        ("cutoffs", CutoffParams),
    ]


class BlendParams(ctypes.Structure):
    """Compositing."""

    _fields_ = [
        ("tiles", TileParams),
        ("color", c_void_p),
        ("alpha", c_void_p),
        ("depth", c_void_p),
        ("transmittance", c_void_p),
        ("stops", c_void_p),
        ("pieces", c_void_p),
    ]


class BlendBackwardParams(ctypes.Structure):
    """The way back through compositing."""

    _fields_ = [
        ("tiles", TileParams),
        ("splat_offsets", c_void_p),
        ("instance_slots", c_void_p),
        ("transmittance", c_void_p),
        ("stops", c_void_p),
        ("grad_color", c_void_p),
        ("grad_alpha", c_void_p),
        ("grad_depth", c_void_p),
        ("slots", c_void_p),
        ("slot_size", c_int64),
        ("grad_means_2d", c_void_p),
        ("grad_conics", c_void_p),
        ("grad_opacities", c_void_p),
        ("grad_colors", c_void_p),
        ("grad_depths", c_void_p),
        ("absolute_gradient", c_void_p),
        ("grad_background", c_void_p),
        ("tile_partials", c_void_p),
        ("pieces", c_void_p),
    ]


class LossParams(ctypes.Structure):
    """The photometric loss and its gradient."""

    _fields_ = [
        ("render", c_void_p),
        ("target", c_void_p),
        ("target_bytes", c_void_p),
        ("gradient", c_void_p),
        ("maps", c_void_p),
        ("workspace", c_void_p),
        ("partials", c_void_p),
        ("terms", c_void_p),
        ("workspace_stride", c_int64),
        ("workers", c_int32),
        ("strip_width", c_int32),
        ("channels", c_int32),
        ("width", c_int32),
        ("height", c_int32),
        ("unused", c_int32),
        ("ssim_weight", c_double),
        ("pieces", c_void_p),
    ]


class AdamGroupParams(ctypes.Structure):
    """One tensor that Adam moves."""

    _fields_ = [
        ("parameter", c_void_p),
        ("gradient", c_void_p),
        ("exp_avg", c_void_p),
        ("exp_avg_sq", c_void_p),
        ("count", c_int64),
        ("row_size", c_int64),
        ("step_size", c_double),
        ("correction", c_double),
    ]


class AdamParams(ctypes.Structure):
    """One step of Adam on several tensors."""

    _fields_ = [
        ("groups", AdamGroupParams * MAXIMUM_ADAM_GROUPS),
        ("radii", c_void_p),
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
        ("group_count", c_int64),
        ("flags", c_void_p),
    ]


class ScreenGradientParams(ctypes.Structure):
    """Screen gradients of one view, added to the sums of those before."""

    _fields_ = [
        ("gradients", c_void_p),
        ("radii", c_void_p),
        ("sums", c_void_p),
        ("visits", c_void_p),
        ("new_sums", c_void_p),
        ("new_visits", c_void_p),
        ("count", c_int64),
        ("half_width", c_double),
        ("half_height", c_double),
    ]


class Rgba8Params(ctypes.Structure):
    """A picture for a screen."""

    _fields_ = [
        ("color", c_void_p),
        ("rgba", c_void_p),
        ("pixels", c_int64),
    ]


STRUCTURES: tuple[type[ctypes.Structure], ...] = (
    CutoffParams,
    PieceParams,
    SplatParams,
    ProjectParams,
    ProjectBackwardParams,
    BinParams,
    TileParams,
    BlendParams,
    BlendBackwardParams,
    LossParams,
    AdamGroupParams,
    AdamParams,
    ScreenGradientParams,
    Rgba8Params,
)
