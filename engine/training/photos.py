"""The photos as training sees them: pixels to compare with, and the order in which they come."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from engine.dataset.scene import Photo
from engine.errors import TrainingError

Color = tuple[float, float, float]
BLACK: Color = (0.0, 0.0, 0.0)
WHITE: Color = (1.0, 1.0, 1.0)


class PhotoSource(Protocol):
    """Decoded photos, by their index in `Scene.photos`; may wait for a decoder.

    Arrays are in main memory, tensors on the device of the run.
    """

    def rgb(self, index: int) -> UInt8[np.ndarray, "h w 3"] | UInt8[Tensor, "h w 3"]:
        """Straight colours, not multiplied by alpha."""

    def alpha(self, index: int) -> UInt8[np.ndarray, "h w"] | UInt8[Tensor, "h w"] | None:
        """Opacity of each pixel, or None for a photo without transparency."""


def target_picture(
    source: PhotoSource, index: int, photo: Photo, background: Float[Tensor, "3"]
) -> Float[Tensor, "h w 3"] | UInt8[Tensor, "h w 3"]:
    """The photo on its device: where it is opaque its very bytes, which nobody may write.

    A transparent one is laid over `background`, in [0, 1]. Raises TrainingError when its size is
    not the camera's.
    """
    rgb = source.rgb(index)
    camera = photo.camera
    if tuple(rgb.shape) != (camera.height, camera.width, 3):
        raise TrainingError(
            f"{photo.name} was decoded to {rgb.shape[1]}x{rgb.shape[0]} pixels; its camera "
            f"expects {camera.width}x{camera.height}. Load the scene again.",
            path=photo.path,
        )
    alpha = source.alpha(index)
    if alpha is None:
        return rgb if isinstance(rgb, Tensor) else from_dlpack(rgb)
    color = _as_numbers(rgb)
    share = _as_numbers(alpha)
    return torch.lerp(background.expand_as(color), color, share[..., None])


def _as_numbers(pixels: np.ndarray | Tensor) -> Tensor:
    """Bytes as float32 in [0, 1], where they are; the same bits for arrays and tensors."""
    if isinstance(pixels, Tensor):
        return pixels.to(torch.float32).div_(255.0)
    return torch.from_numpy(np.divide(pixels, np.float32(255.0), dtype=np.float32))


class PhotoOrder:
    """Draws photos without replacement, shuffled anew whenever all have been drawn."""

    def __init__(self, photos: Sequence[int], generator: torch.Generator) -> None:
        self._photos = tuple(photos)
        self._generator = generator
        self.remaining: tuple[int, ...] = ()

    def draw(self) -> int:
        """The next photo's index."""
        if not self.remaining:
            shuffled = torch.randperm(len(self._photos), generator=self._generator)
            self.remaining = tuple(self._photos[place] for place in shuffled.tolist())
        self.remaining, photo = self.remaining[:-1], self.remaining[-1]
        return photo
