"""The photometric loss on the CPU; its memory and arguments serve any number of times."""

import ctypes
import functools
import math

import torch
from torch import Tensor

from cuda_rasterizer import native
from cuda_rasterizer.attention import call_in_pieces
from cuda_rasterizer.kernel_arguments import pointer, write_comparison
from cuda_rasterizer.native_structs import LossParams
from cuda_rasterizer.step_guard import LOSS_BIT

CACHE_LINE_NUMBERS = 16
ENOUGH_TASKS = 8  # so that two threads end together, and more have something to do,
LEAST_NUMBERS = 384  # as long as strips are not narrower: 60 numbers are worked out twice


class Loss:
    """The loss of a render and its gradient, as often as it is run.

    `gradient` (h, w, c) or None is overwritten by the next run.
    """

    def __init__(self, like: Tensor, *, for_backward: bool) -> None:
        """For renders of the type of `like`."""
        self.gradient = like.new_empty(0) if for_backward else None
        self._workspace = like.new_empty(0)
        self._partials = torch.empty(0, dtype=torch.float64)
        self._terms = (ctypes.c_double * 4)()
        self._params = LossParams(terms=ctypes.addressof(self._terms))

    def run(
        self, render: Tensor, target: Tensor, ssim_weight: float, flags: Tensor | None
    ) -> Tensor:
        """The terms (4), anew; notes in `flags` whether the loss is finite."""
        params = self._params
        height, width, channels = render.shape
        if (params.width, params.height, params.channels) != (width, height, channels):
            self._resize(width, height, channels)
        write_comparison(params, render, target, ssim_weight)
        call_in_pieces("l1_ssim", render.dtype, params)
        if flags is not None and not math.isfinite(self._terms[0]):
            flags[0] |= LOSS_BIT
        return render.new_tensor(tuple(self._terms))

    def _resize(self, width: int, height: int, channels: int) -> None:
        params = self._params
        params.width = params.height = 0  # until there is room
        strip_width, tasks, stride = _strips(width, height, channels)
        workers = native.thread_count()
        if self.gradient is not None:
            params.gradient = pointer(self.gradient.resize_(height, width, channels))
        params.workspace = pointer(self._workspace.resize_(workers, stride))
        params.partials = pointer(self._partials.resize_(tasks, 3))
        params.workspace_stride, params.workers = stride, workers
        params.strip_width, params.channels = strip_width, channels
        params.width, params.height = width, height


@functools.lru_cache(maxsize=512)
def _strips(width: int, height: int, channels: int) -> tuple[int, int, int]:
    """Width in pixels of strips that are equal and whole vectors; tasks; a worker's numbers."""
    sizes = native.constants()
    numbers, blocks = width * channels, -(-height // sizes["loss_rows"])
    strips = -(-numbers // sizes["loss_numbers"])
    strips = max(strips, min(-(-ENOUGH_TASKS // blocks), numbers // LEAST_NUMBERS))
    strip_width = -(-width // strips // CACHE_LINE_NUMBERS) * CACHE_LINE_NUMBERS
    tasks = blocks * -(-width // strip_width)
    # Rows for a strip, or a chunk of it, with two windows and a vector around them.
    windows = (4 * sizes["ssim_radius"] + 1) * channels
    row = max(strip_width * channels, sizes["loss_chunk"]) + windows + 2 * CACHE_LINE_NUMBERS
    # An odd number of cache lines, lest the rows of a column fall into one set of the cache.
    lines = -(-row // CACHE_LINE_NUMBERS) | 1
    return strip_width, tasks, sizes["loss_workspace_rows"] * lines * CACHE_LINE_NUMBERS
