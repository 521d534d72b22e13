"""Decoded photos for the flip between render and photo, decoded in a worker thread.

The window's thread only asks and is told. The newest wish wins: what is waiting and no longer
wanted is not decoded.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from jaxtyping import UInt8
from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.dataset.images import load_photo
from engine.errors import SceneError
from engine.messages import PhotoSummary
from engine.training.photos import BLACK, Color

KEPT = 3  # decoded photos; a photo of 1600x1200 is 8 MB

Decoder = Callable[[PhotoSummary], np.ndarray]  # straight RGBA8 (height, width, 4)


def decode_photo(summary: PhotoSummary) -> np.ndarray:
    """A photo as the trainer reads it: undistorted, at its camera's size, straight RGBA8."""
    if summary.source is None:
        raise SceneError(f"how {summary.name} is to be decoded is not known", path=summary.path)
    photo = load_photo(summary.source)
    height, width = photo.rgb.shape[:2]
    pixels = np.full((height, width, 4), 255, dtype=np.uint8)
    pixels[..., :3] = photo.rgb
    if photo.alpha is not None:
        pixels[..., 3] = photo.alpha
    return pixels


def on_background(
    pixels: UInt8[np.ndarray, "height width 4"], background: Color
) -> UInt8[np.ndarray, "height width 4"]:
    """Straight RGBA8 laid over a colour in [0, 1]; itself where it is opaque."""
    if (pixels[..., 3] == 255).all():
        return pixels
    alpha = pixels[..., 3:].astype(np.float32) / 255.0
    behind = 255.0 * np.array(background, dtype=np.float32)
    laid = np.full_like(pixels, 255)
    laid[..., :3] = np.rint(behind + alpha * (pixels[..., :3] - behind))
    return laid


class PhotoPictures(QObject):
    """Gives a photo's pixels by index, at once or after `ready`."""

    ready = Signal(int)
    failed = Signal(str)  # why; it is tried again when it is asked for again

    _decoded = Signal(int, object)

    def __init__(self, decode: Decoder, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._decode = decode
        self._background = BLACK
        self._photos: tuple[PhotoSummary, ...] = ()
        self._kept: dict[int, np.ndarray] = {}
        self._pending: dict[int, Future[np.ndarray]] = {}
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="photo-decoder")
        self._generation = 0
        self._decoded.connect(self._take, Qt.ConnectionType.QueuedConnection)

    def set_photos(self, photos: tuple[PhotoSummary, ...]) -> None:
        """Another scene; pictures of the old one are forgotten."""
        self._photos = photos
        self._forget()

    def set_background(self, background: Color) -> None:
        """What lies behind photos with transparency, in [0, 1]."""
        self._background = background
        self._forget()

    def get(self, index: int) -> np.ndarray | None:
        """The pixels if they are there; else None, and they are decoded."""
        if index in self._kept:
            self._kept[index] = self._kept.pop(index)  # the newest last
            return self._kept[index]
        if index not in self._pending and 0 <= index < len(self._photos):
            self._cancel_pending()
            future = self._executor.submit(self._laid, self._photos[index], self._background)
            self._pending[index] = future
            generation = self._generation

            def tell(done: Future[np.ndarray]) -> None:
                if not done.cancelled():
                    self._decoded.emit(index, (generation, done))

            future.add_done_callback(tell)
        return None

    def there(self, index: int) -> np.ndarray | None:
        """The pixels if they are there; asks for nothing."""
        return self._kept.get(index)

    def is_awaited(self, index: int) -> bool:
        """Whether a photo is being decoded."""
        return index in self._pending

    def close(self) -> None:
        """Decode nothing more, and wait for the photo in work, if any."""
        self._cancel_pending()
        self._executor.shutdown(cancel_futures=True)

    def _laid(self, photo: PhotoSummary, background: Color) -> np.ndarray:
        return on_background(self._decode(photo), background)

    def _forget(self) -> None:
        """What is decoded, or is being decoded, is of no use any more."""
        self._cancel_pending()
        self._pending.clear()
        self._generation += 1
        self._kept.clear()

    def _cancel_pending(self) -> None:
        for index, future in list(self._pending.items()):
            if future.cancel():
                del self._pending[index]

    @Slot(int, object)
    def _take(self, index: int, result: tuple[int, "Future[np.ndarray]"]) -> None:
        generation, future = result
        if generation != self._generation:
            return
        self._pending.pop(index, None)
        error = future.exception()
        if error is not None:
            self.failed.emit(f"{self._photos[index].name} cannot be shown: {error}")
            return
        self._kept[index] = future.result()
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        self.ready.emit(index)
