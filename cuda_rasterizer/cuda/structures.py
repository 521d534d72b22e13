"""The parameter structures that only CUDA has, as `include/cuda_params.h` declares them.

Names and order are those of the header; every size and offset is compared while a kernel compiles
(`layout_header`).
"""

import ctypes
from ctypes import c_int32, c_int64, c_void_p

from cuda_rasterizer.native_structs import (
    STRUCTURES,
    BlendParams,
    CutoffParams,
    LossParams,
    TileParams,
)


class PackParams(ctypes.Structure):
    """Splats as projection left them, into records."""

    _fields_ = [
        ("means_2d", c_void_p),
        ("conics", c_void_p),
        ("depths", c_void_p),
        ("opacities", c_void_p),
        ("colors", c_void_p),
        ("radii", c_void_p),
        ("records", c_void_p),
        ("tile_counts", c_void_p),
        ("block_sums", c_void_p),
        ("count", c_int64),
        ("channels", c_int32),
        ("width", c_int32),
        ("height", c_int32),
        ("unused", c_int32),
        ("cutoffs", CutoffParams),
    ]


class ScanParams(ctypes.Structure):
    """Exclusive sums in place."""

    _fields_ = [
        ("block_sums", c_void_p),
        ("total", c_void_p),
        ("count", c_int64),
    ]


class CompactParams(ctypes.Structure):
    """The seen splats, in the order of their indices."""

    _fields_ = [
        ("depths", c_void_p),
        ("tile_counts", c_void_p),
        ("block_sums", c_void_p),
        ("keys", c_void_p),
        ("splats", c_void_p),
        ("count", c_int64),
    ]


class SortParams(ctypes.Structure):
    """One digit of a stable sort."""

    _fields_ = [
        ("keys", c_void_p),
        ("values", c_void_p),
        ("sorted_keys", c_void_p),
        ("sorted_values", c_void_p),
        ("digit_counts", c_void_p),
        ("digit_totals", c_void_p),
        ("count", c_void_p),
        ("capacity", c_int64),
        ("shift", c_int32),
        ("unused", c_int32),
    ]


class EmitParams(ctypes.Structure):
    """From splats in depth order to instances."""

    _fields_ = [
        ("records", c_void_p),
        ("tile_counts", c_void_p),
        ("order", c_void_p),
        ("totals", c_void_p),
        ("block_sums", c_void_p),
        ("tiles", c_void_p),
        ("values", c_void_p),
        ("emitted_splats", c_void_p),
        ("first_slots", c_void_p),
        ("count", c_int64),
        ("capacity", c_int64),
        ("width", c_int32),
        ("height", c_int32),
    ]


class GatherParams(ctypes.Structure):
    """From sorted places of emission to splats."""

    _fields_ = [
        ("emitted_splats", c_void_p),
        ("instance_slots", c_void_p),
        ("instance_splats", c_void_p),
        ("totals", c_void_p),
        ("capacity", c_int64),
    ]


class RangeParams(ctypes.Structure):
    """From sorted tiles to the first instance of each."""

    _fields_ = [
        ("tiles", c_void_p),
        ("tile_offsets", c_void_p),
        ("totals", c_void_p),
        ("capacity", c_int64),
        ("tile_count", c_int64),
    ]


class OrderParams(ctypes.Structure):
    """Tiles with long lists first."""

    _fields_ = [
        ("tile_offsets", c_void_p),
        ("tile_order", c_void_p),
        ("tile_count", c_int64),
    ]


class BlendPassParams(ctypes.Structure):
    """Compositing of some channels."""

    _fields_ = [
        ("blend", BlendParams),
        ("channel_begin", c_int32),
        ("unused", c_int32),
    ]


class BackwardPassParams(ctypes.Structure):
    """The way back through compositing, to sums a splat or an instance."""

    _fields_ = [
        ("tiles", TileParams),
        ("transmittance", c_void_p),
        ("stops", c_void_p),
        ("grad_color", c_void_p),
        ("grad_alpha", c_void_p),
        ("grad_depth", c_void_p),
        ("instance_slots", c_void_p),
        ("rows", c_void_p),
        ("row_size", c_int64),
        ("color_row", c_int32),
        ("extra_row", c_int32),
        ("channel_begin", c_int32),
        ("unused", c_int32),
    ]


class SumSlotsParams(ctypes.Structure):
    """Sums of instances, summed a splat in the order of emission."""

    _fields_ = [
        ("slots", c_void_p),
        ("tile_counts", c_void_p),
        ("first_slots", c_void_p),
        ("rows", c_void_p),
        ("row_size", c_int64),
        ("count", c_int64),
    ]


class SplatGradientParams(ctypes.Structure):
    """From sums to gradients."""

    _fields_ = [
        ("records", c_void_p),
        ("tile_counts", c_void_p),
        ("rows", c_void_p),
        ("grad_means_2d", c_void_p),
        ("grad_conics", c_void_p),
        ("grad_opacities", c_void_p),
        ("grad_colors", c_void_p),
        ("grad_depths", c_void_p),
        ("absolute_gradient", c_void_p),
        ("row_size", c_int64),
        ("count", c_int64),
        ("channels", c_int32),
        ("color_row", c_int32),
        ("extra_row", c_int32),
        ("unused", c_int32),
    ]


class BackgroundParams(ctypes.Structure):
    """The gradient of the background."""

    _fields_ = [
        ("transmittance", c_void_p),
        ("grad_color", c_void_p),
        ("grad_background", c_void_p),
        ("partials", c_void_p),
        ("pixels", c_int64),
        ("channels", c_int64),
    ]


class LossPassParams(ctypes.Structure):
    """The photometric loss, summed up or differentiated."""

    _fields_ = [
        ("loss", LossParams),
        ("grad_loss", c_void_p),
        ("blocks", c_int64),
        ("flags", c_void_p),
    ]


CUDA_STRUCTURES: tuple[type[ctypes.Structure], ...] = (
    *STRUCTURES,
    PackParams,
    ScanParams,
    CompactParams,
    SortParams,
    EmitParams,
    GatherParams,
    RangeParams,
    OrderParams,
    BlendPassParams,
    BackwardPassParams,
    SumSlotsParams,
    SplatGradientParams,
    BackgroundParams,
    LossPassParams,
)
