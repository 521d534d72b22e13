"""Small pictures of photos, decoded beside the window's thread.

The latest wishes are served first, since they are what the user looks at; those made together, as
a painted page makes them, in their order. Wishes that have waited too long are dropped and come
again when their row is painted again. The worker thread ends by itself
when there is nothing left to do.
"""

import dataclasses
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QImage

from engine.dataset.images import load_thumbnail
from engine.errors import EngineError

THUMBNAIL_PX = 144
WAITING_LIMIT = 120

log = logging.getLogger(__name__)

ReadThumbnail = Callable[[Path, int, bool], np.ndarray]  # path, size, rotate by EXIF -> (h, w, 3)


@dataclasses.dataclass(frozen=True)
class _Wish:
    """A picture wished for; `batch` numbers the turns of the window's event loop with wishes."""

    path: Path
    rotate_by_exif: bool
    batch: int


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
        self._waiting: dict[int, _Wish] = {}  # the latest last
        self._batch = 0
        self._batch_end = QTimer(self)
        self._batch_end.setSingleShot(True)
        self._batch_end.setInterval(0)
        self._batch_end.timeout.connect(self._end_batch)
        # generation and index of what is being read, or is read and not yet told of
        self._under_way: set[tuple[int, int]] = set()
        self._generation = 0
        self._worker: threading.Thread | None = None

    def request(self, index: int, path: Path, rotate_by_exif: bool) -> None:
        """Wish for a picture; `loaded` or `failed` tells of it."""
        if not self._batch_end.isActive():
            self._batch_end.start()
        with self._lock:
            if (self._generation, index) in self._under_way:
                return
            self._waiting.pop(index, None)
            self._waiting[index] = _Wish(path, rotate_by_exif, self._batch)
            while len(self._waiting) > WAITING_LIMIT:
                del self._waiting[next(iter(self._waiting))]
            if self._worker is None or not self._worker.is_alive():
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
                    self._worker = None
                    return
                index, wish = self._next_wish()
                generation = self._generation
                self._under_way.add((generation, index))
            try:
                read = self._read(wish.path, THUMBNAIL_PX, wish.rotate_by_exif)
            except EngineError as error:
                log.warning("no thumbnail of %s: %s", wish.path.name, error)
                results.failed.emit(generation, index, str(error))
                continue
            pixels = np.ascontiguousarray(read)
            height, width = pixels.shape[:2]
            image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)
            results.ready.emit(generation, index, image.copy())

    def _next_wish(self) -> tuple[int, _Wish]:
        newest = next(reversed(self._waiting.values())).batch
        index = next(key for key, wish in self._waiting.items() if wish.batch == newest)
        return index, self._waiting.pop(index)

    def _end_batch(self) -> None:
        self._batch += 1

    @Slot(int, int, QImage)
    def _take(self, generation: int, index: int, image: QImage) -> None:
        if self._is_wished(generation, index):
            self.loaded.emit(index, image)

    @Slot(int, int, str)
    def _take_failure(self, generation: int, index: int, reason: str) -> None:
        if self._is_wished(generation, index):
            self.failed.emit(index, reason)

    def _is_wished(self, generation: int, index: int) -> bool:
        """Count a picture as told of; whether it is of the wishes that hold."""
        with self._lock:
            self._under_way.discard((generation, index))
            return generation == self._generation
