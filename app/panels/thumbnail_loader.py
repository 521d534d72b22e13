"""Small pictures of photos, decoded beside the window's thread.

The latest wish is served first, since it is what the user looks at; wishes that have waited too
long are dropped and come again when their row is painted again. The worker thread ends by itself
when there is nothing left to do.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QImage

from engine.dataset.images import load_thumbnail
from engine.errors import EngineError

THUMBNAIL_PX = 144
WAITING_LIMIT = 120

log = logging.getLogger(__name__)

ReadThumbnail = Callable[[Path, int, bool], np.ndarray]  # path, size, rotate by EXIF -> (h, w, 3)


class _Results(QObject):
    """Carries results across threads; the worker keeps it alive, whoever listens may go."""

    ready = Signal(int, int, QImage)  # generation, index, picture
    failed = Signal(int, int, str)  # generation, index, reason


class ThumbnailLoader(QObject):
    """Reads thumbnails by index in a worker thread; `cancel` forgets all that waits."""

    loaded = Signal(int, QImage)
    failed = Signal(int, str)

    def __init__(self, read: ReadThumbnail = load_thumbnail, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read = read
        self._results = _Results()
        self._results.ready.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._results.failed.connect(self._take_failure, Qt.ConnectionType.QueuedConnection)
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[Path, bool]] = {}  # the latest wish last
        self._at_work: int | None = None
        self._generation = 0
        self._worker: threading.Thread | None = None

    def request(self, index: int, path: Path, rotate_by_exif: bool) -> None:
        """Wish for a picture; `loaded` or `failed` tells of it."""
        with self._lock:
            if self._at_work == index:
                return
            self._waiting.pop(index, None)
            self._waiting[index] = (path, rotate_by_exif)
            while len(self._waiting) > WAITING_LIMIT:
                del self._waiting[next(iter(self._waiting))]
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="thumbnails")
                self._worker.start()

    def cancel(self) -> None:
        """Forget all wishes; of the picture being decoded nothing will be heard."""
        with self._lock:
            self._generation += 1
            self._waiting.clear()

    def wait(self, timeout: float) -> bool:
        """Wait for the worker to end, which it does after the picture in work; whether it did."""
        worker = self._worker
        if worker is not None:
            worker.join(timeout)
            return not worker.is_alive()
        return True

    def _work(self) -> None:
        results = self._results
        while True:
            with self._lock:
                if not self._waiting:
                    self._at_work = None
                    self._worker = None
                    return
                index, (path, rotate_by_exif) = self._waiting.popitem()
                self._at_work = index
                generation = self._generation
            try:
                pixels = np.ascontiguousarray(self._read(path, THUMBNAIL_PX, rotate_by_exif))
            except EngineError as error:
                log.warning("no thumbnail of %s: %s", path.name, error)
                results.failed.emit(generation, index, str(error))
                continue
            height, width = pixels.shape[:2]
            image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)
            results.ready.emit(generation, index, image.copy())

    @Slot(int, int, QImage)
    def _take(self, generation: int, index: int, image: QImage) -> None:
        if generation == self._generation:
            self.loaded.emit(index, image)

    @Slot(int, int, str)
    def _take_failure(self, generation: int, index: int, reason: str) -> None:
        if generation == self._generation:
            self.failed.emit(index, reason)
