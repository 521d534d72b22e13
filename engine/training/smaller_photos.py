"""Photos and their cameras at half, a quarter or an eighth of their size, for coarse training.

A pixel of the smaller photo is the mean of a square of whole pixels, in bytes. What does not fill
a square at the right and lower border is left out, so that focal lengths and principal point are
exactly those of the full size divided by the edge of the square.
"""

import dataclasses

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from engine.cameras import Camera
from engine.dataset.scene import Photo
from engine.training.photos import PhotoSource

SMALLEST = 8  # pixels: no photo gets narrower or lower

Pixels = np.ndarray | Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class _Small:
    """One photo, reduced; `edge` is that of the square in pixels of the full size."""

    edge: int
    rgb: Pixels
    alpha: Pixels | None


class SmallerPhotos:
    """The photos of a source at any of their sizes; keeps those of the smaller size in use."""

    def __init__(self, source: PhotoSource) -> None:
        self._source = source
        self._kept: dict[int, _Small] = {}  # by index; a GPU makes them anew, which is cheap there

    def at(self, photo: Photo, halvings: int) -> tuple[Photo, PhotoSource]:
        """The photo with the camera of the size, and a source of pixels that fit that camera."""
        edge = _edge(photo.camera, halvings)
        if edge == 1:
            if halvings == 0:
                self._kept.clear()
            return photo, self._source
        camera = reduced_camera(photo.camera, edge)
        return dataclasses.replace(photo, camera=camera), _OfOneSize(self, edge)

    def small(self, index: int, edge: int) -> _Small:
        """The photo with squares of `edge` by `edge` pixels made one; not to be written."""
        kept = self._kept.get(index)
        if kept is not None and kept.edge == edge:
            return kept
        made = _Small(
            edge, *reduced_pixels(self._source.rgb(index), self._source.alpha(index), edge)
        )
        if isinstance(made.rgb, np.ndarray):
            self._kept[index] = made
        return made


@dataclasses.dataclass(frozen=True)
class _OfOneSize:
    """A `PhotoSource`."""

    photos: SmallerPhotos
    edge: int

    def rgb(self, index: int) -> Pixels:
        return self.photos.small(index, self.edge).rgb

    def alpha(self, index: int) -> Pixels | None:
        return self.photos.small(index, self.edge).alpha


def _edge(camera: Camera, halvings: int) -> int:
    """The edge of the squares: fewer halvings where the photo would become too small."""
    while halvings > 0 and min(camera.width, camera.height) >> halvings < SMALLEST:
        halvings -= 1
    return 1 << halvings


def reduced_camera(camera: Camera, edge: int) -> Camera:
    """The same lens and pose over pixels `edge` times as wide and high."""
    return dataclasses.replace(
        camera,
        fx=camera.fx / edge,
        fy=camera.fy / edge,
        cx=camera.cx / edge,
        cy=camera.cy / edge,
        width=camera.width // edge,
        height=camera.height // edge,
    )


def reduced_pixels(
    rgb: UInt8[np.ndarray, "h w 3"] | UInt8[Tensor, "h w 3"],
    alpha: UInt8[np.ndarray, "h w"] | UInt8[Tensor, "h w"] | None,
    edge: int,
) -> tuple[Pixels, Pixels | None]:
    """Means over squares, rounded to nearest; colours count by their alpha. Arrays stay arrays."""
    area = edge * edge
    if alpha is None:
        return _bytes((_sums(_whole(rgb), edge) + area // 2) // area), None
    weight = _whole(alpha)
    total = _sums(weight, edge)
    colors = _sums(_whole(rgb) * weight[..., None], edge)
    divisor = total[..., None].clip(1)  # a square without any alpha is black
    return _bytes((colors + divisor // 2) // divisor), _bytes((total + area // 2) // area)


def _sums(pixels: Pixels, edge: int) -> Pixels:
    """Sums over squares (h // edge, w // edge, ...)."""
    height, width = pixels.shape[0] // edge, pixels.shape[1] // edge
    inside = pixels[: height * edge, : width * edge]
    squares = inside.reshape((height, edge, width, edge, *pixels.shape[2:]))
    return squares.sum((1, 3))


def _whole(pixels: Pixels) -> Pixels:
    """Room for a byte times a byte; sums are 64 bits wide by themselves."""
    if isinstance(pixels, Tensor):
        return pixels.to(torch.int32)
    return pixels.astype(np.int32)


def _bytes(values: Pixels) -> Pixels:
    if isinstance(values, Tensor):
        return values.to(torch.uint8)
    return values.astype(np.uint8)
