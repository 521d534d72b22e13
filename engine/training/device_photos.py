"""Photos for training on a GPU: as bytes, in the fastest memory that has room for them.

A photo is looked for in the GPU's own memory, then in page-locked main memory, from which it is
copied without waiting. Which of them keeps it is decided when it is first asked for: the first
photos that fit into a budget stay. Bytes become numbers on the GPU: a photo is a quarter as large.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.dataset.photo_store import available_bytes
from engine.training.photos import PhotoSource

DEVICE_SHARE = 0.25  # of the GPU's free memory when a run begins: splats grow into the rest
LOCKED_SHARE = 0.25  # of the free main memory: what is page-locked cannot be swapped

Layer = Literal["rgb", "alpha"]


def photos_on(device: torch.device, source: PhotoSource) -> PhotoSource:
    """The photos as what is drawn on `device` can be compared with them."""
    is_ready = device.type == "cpu" or isinstance(source, DevicePhotos)
    return source if is_ready else DevicePhotos(source, device)


class DevicePhotos:
    """A `PhotoSource` whose pixels are tensors on `device`."""

    def __init__(
        self,
        source: PhotoSource,
        device: torch.device,
        *,
        device_budget: int | None = None,
        locked_budget: int | None = None,
    ) -> None:
        """Budgets are in bytes; None takes a share of what is free now."""
        self._source = source
        self._device = device
        self._device_left = _free_on(device) if device_budget is None else device_budget
        self._locked_left = _free_locked() if locked_budget is None else locked_budget
        self._on_device: dict[tuple[Layer, int], Tensor] = {}
        self._locked: dict[tuple[Layer, int], Tensor] = {}

    def rgb(self, index: int) -> Tensor:
        """Straight colours (h, w, 3) uint8; not to be written."""
        return self._fetched(("rgb", index), self._source.rgb(index))

    def alpha(self, index: int) -> Tensor | None:
        """Opacity of each pixel (h, w) uint8, or None; not to be written."""
        alpha = self._source.alpha(index)
        return None if alpha is None else self._fetched(("alpha", index), alpha)

    def make_room(self) -> int:
        """Give up what the GPU keeps, for good; the bytes that are free now."""
        freed = sum(kept.numel() for kept in self._on_device.values())
        self._on_device.clear()
        self._device_left = 0
        return freed

    def _fetched(self, key: tuple[Layer, int], pixels: np.ndarray | Tensor) -> Tensor:
        if key in self._on_device:
            return self._on_device[key]
        if key in self._locked:
            return self._locked[key].to(self._device, non_blocking=True)
        locked = torch.empty(pixels.shape, dtype=torch.uint8, pin_memory=True)
        locked.numpy()[...] = pixels
        there = locked.to(self._device, non_blocking=True)
        if there.numel() <= self._device_left:
            self._device_left -= there.numel()
            self._on_device[key] = there
        elif _locked_size(locked.numel()) <= self._locked_left:
            self._locked_left -= _locked_size(locked.numel())
            self._locked[key] = locked
        return there


def _locked_size(count: int) -> int:
    """Bytes that page-locked memory of `count` takes: torch rounds it up to a power of two."""
    return 1 << max(count - 1, 0).bit_length()


def _free_on(device: torch.device) -> int:
    free, _ = torch.cuda.mem_get_info(device)
    return int(DEVICE_SHARE * free)


def _free_locked() -> int:
    free = available_bytes()
    return 0 if free is None else int(LOCKED_SHARE * free)
