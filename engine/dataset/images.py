"""Decoding photos: to exactly the size of their camera, as straight RGB and alpha.

Where a photo has transparency, its colours are not multiplied by it: whoever trains lays photo
and render on the same background. Resizing and undistorting do work on multiplied colours, so
that what hides under transparent pixels never bleeds into visible ones.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageOps

from engine.dataset.photo_files import DECODER_ERRORS, decoding_error
from engine.dataset.scene import Distortion, Photo
from engine.dataset.undistort import undistort
from engine.errors import SceneError
from engine.plain_files import require_plain_file

_ALPHA_MODES = ("RGBA", "LA", "PA", "La", "RGBa")
_WIDEST_BY_DEFAULT = 1600  # pixels, as 3DGS has it


@dataclasses.dataclass(frozen=True, eq=False)
class PhotoPixels:
    """A decoded photo: straight (not multiplied) colours, and alpha where the file has it."""

    rgb: UInt8[np.ndarray, "height width 3"]
    alpha: UInt8[np.ndarray, "height width"] | None


def training_size(width: int, height: int, resolution: int) -> tuple[int, int]:
    """The size to train at by the `resolution` setting; never below one pixel.

    1, 2, 4, 8 divide; 0 keeps up to 1600 pixels of width; anything else is the target width.
    """
    if resolution in (1, 2, 4, 8):
        new_width, new_height = round(width / resolution), round(height / resolution)
    else:
        target = resolution or min(width, _WIDEST_BY_DEFAULT)
        if target == width:
            return width, height
        new_width, new_height = target, int(height * target / width)
    return max(1, new_width), max(1, new_height)


def load_photo(photo: Photo) -> PhotoPixels:
    """The photo's pixels at the size of `photo.camera`: rotated, undistorted and resized.

    Raises SceneError naming the file and the decoder's reason.
    """
    with _opened(photo.path) as image:
        pixels = _straight_pixels(_upright(image) if photo.rotate_by_exif else image)
    size = (photo.camera.width, photo.camera.height)
    if photo.distortion is None:
        return _resized(pixels, size)
    return _resized(_undistorted(photo.path, pixels, photo.distortion), size)


def load_thumbnail(
    path: Path, size: int, rotate_by_exif: bool = False
) -> UInt8[np.ndarray, "h w 3"]:
    """A small RGB picture of a file, at most `size` pixels wide and high, for lists.

    Transparent parts are shown on grey. Raises SceneError like `load_photo`.
    """
    with _opened(path) as image:
        image.draft("RGB", (size, size))  # JPEG decodes at 1/2, 1/4 or 1/8 where that is enough
        pixels = _straight_pixels(_upright(image) if rotate_by_exif else image)
    height, width = pixels.rgb.shape[:2]
    scale = min(1.0, size / max(width, height))
    small = _resized(pixels, (max(1, round(width * scale)), max(1, round(height * scale))))
    if small.alpha is None:
        return small.rgb
    alpha = small.alpha[..., None] / 255.0
    return np.rint(small.rgb * alpha + 128.0 * (1 - alpha)).astype(np.uint8)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """The picture, whose file is closed behind the block; SceneError for what goes wrong in it."""
    try:
        require_plain_file(path)
        with Image.open(path) as image:
            yield image
    except DECODER_ERRORS as error:
        raise decoding_error(path, error) from error


def _upright(image: Image.Image) -> Image.Image:
    """A copy, turned as its EXIF orientation says."""
    return ImageOps.exif_transpose(image)


def _straight_pixels(image: Image.Image) -> PhotoPixels:
    """RGB and alpha of any mode; 16-bit and float greys are scaled, never clipped."""
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        grey = _grey_from_wide(image)
        return PhotoPixels(np.repeat(grey[..., None], 3, axis=2), None)
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        values = np.array(image.convert("RGBA"))
        return PhotoPixels(np.ascontiguousarray(values[..., :3]), values[..., 3].copy())
    return PhotoPixels(np.array(image.convert("RGB")), None)


def _grey_from_wide(image: Image.Image) -> UInt8[np.ndarray, "h w"]:
    values = np.array(image).astype(np.float64)
    full = 1.0 if image.mode == "F" else 65535.0
    scaled = np.nan_to_num(values) * (255.0 / full)
    return np.asarray(np.clip(np.rint(scaled), 0, 255).astype(np.uint8))


def _undistorted(path: Path, pixels: PhotoPixels, lens: Distortion) -> PhotoPixels:
    height, width = pixels.rgb.shape[:2]
    if (width, height) != (lens.width, lens.height):
        raise SceneError(
            f"{path} is {width}x{height} but its camera says {lens.width}x{lens.height}. The file "
            "changed after the scene was opened; open the scene again.",
            path=path,
        )
    return _unmultiplied(undistort(_multiplied(pixels), lens), pixels.alpha is not None)


def _resized(pixels: PhotoPixels, size: tuple[int, int]) -> PhotoPixels:
    height, width = pixels.rgb.shape[:2]
    if (width, height) == size:
        return pixels
    if pixels.alpha is None:  # bicubic, whose support grows with the reduction: no aliasing
        rgb = Image.fromarray(pixels.rgb).resize(size, Image.Resampling.BICUBIC)
        return PhotoPixels(np.array(rgb), None)
    bands = [
        np.array(Image.fromarray(band).resize(size, Image.Resampling.BICUBIC))
        for band in np.moveaxis(_multiplied(pixels), 2, 0)
    ]
    return _unmultiplied(np.stack(bands, axis=2), True)


def _multiplied(pixels: PhotoPixels) -> Float[np.ndarray, "h w c"]:
    """Float32 channels from 0 to 255: colours times alpha, then alpha where there is one."""
    rgb = pixels.rgb.astype(np.float32)
    if pixels.alpha is None:
        return rgb
    alpha = pixels.alpha.astype(np.float32)[..., None]
    return np.concatenate([rgb * (alpha / 255.0), alpha], axis=2)


def _unmultiplied(values: Float[np.ndarray, "h w c"], has_alpha: bool) -> PhotoPixels:
    if not has_alpha:
        return PhotoPixels(_as_bytes(values), None)
    alpha = values[..., 3:]  # may overshoot 255 like the colours, so divide before clipping
    visible = alpha >= 0.5  # below, alpha rounds to 0 and the colour no longer matters
    rgb = np.where(visible, values[..., :3] * (255.0 / np.where(visible, alpha, 1.0)), 0.0)
    return PhotoPixels(_as_bytes(rgb), _as_bytes(alpha[..., 0]))


def _as_bytes(values: Float[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    return np.asarray(np.clip(np.rint(values), 0, 255).astype(np.uint8))
