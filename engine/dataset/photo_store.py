"""All photos of a scene, decoded once by worker threads and kept as bytes.

Pillow and torch let go of the interpreter while they work, so threads do. What a photo becomes
depends on the photo alone: the number of threads changes nothing.
"""

import dataclasses
import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from engine.dataset.findings import with_photo_counts
from engine.dataset.images import PhotoPixels, load_photo
from engine.dataset.loading import Cancelled, Loading, Progress
from engine.dataset.scene import Finding, Photo, Scene
from engine.dataset.undistort import sampling_grid
from engine.errors import SceneError
from engine.settings import Settings
from engine.wording import memory

_POLL_SECONDS = 0.1
_UNDISTORTING_BYTES = 60  # at most, of a pixel of the file: floats before and after, and the grid
_MEMINFO = Path("/proc/meminfo")


def photo_bytes(scene: Scene) -> int:
    """How much memory the decoded photos will take."""
    channels = 4 if scene.has_alpha else 3
    return sum(photo.camera.width * photo.camera.height * channels for photo in scene.photos)


def available_bytes() -> int | None:
    """Memory that may be taken without swapping, where the system says it."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:  # not Linux
        return None
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:")), None)


class PhotoStore:
    """Decoded photos by their index in the scene."""

    def __init__(self, scene: Scene, settings: Settings) -> None:
        """Nothing is decoded yet; `load_all` does that."""
        self.scene = scene
        self._threads = settings.device.threads or os.cpu_count() or 1
        self._pixels: tuple[PhotoPixels, ...] | None = None

    def load_all(
        self, progress: Progress | None = None, cancelled: Cancelled | None = None
    ) -> Scene:
        """Decode every photo; the scene to go on with, whose indices are this store's.

        It is the scene given, unless photos turn out to be broken: those are left out, each with a
        finding. Raises SceneError when memory will not do or no photo to train on is left,
        LoadingCancelled soon after `cancelled()` is true. `progress` is called in this thread.
        """
        if self._pixels is not None:
            return self.scene
        _refuse_too_much(self.scene)
        loading = Loading(progress, cancelled)
        results = self._decode(loading)
        kept = [place for place, item in enumerate(results) if isinstance(item, PhotoPixels)]
        broken = [(place, item) for place, item in enumerate(results) if isinstance(item, str)]
        if broken:
            self.scene = _without_broken(self.scene, kept, broken)
        self._pixels = tuple(item for item in results if isinstance(item, PhotoPixels))
        return self.scene

    def rgb(self, index: int) -> UInt8[np.ndarray, "h w 3"]:
        """Straight colours (not multiplied by alpha) at the camera's size; not to be written."""
        return self._loaded()[index].rgb

    def alpha(self, index: int) -> UInt8[np.ndarray, "h w"] | None:
        """Opacity of each pixel, or None for a photo without transparency; not to be written."""
        return self._loaded()[index].alpha

    def close(self) -> None:
        """Forget every pixel."""
        self._pixels = None

    def _loaded(self) -> tuple[PhotoPixels, ...]:
        if self._pixels is None:
            raise RuntimeError("photos were asked for before load_all or after close")
        return self._pixels

    def _decode(self, loading: Loading) -> list[PhotoPixels | str]:
        """Pixels by place, or the message of why not."""
        photos = self.scene.photos
        results: list[PhotoPixels | str] = [""] * len(photos)
        threads = _threads_with_room(self.scene, self._threads)
        pool = ThreadPoolExecutor(threads, thread_name_prefix="photo decoder")
        try:
            waiting = {pool.submit(_load, photo): place for place, photo in enumerate(photos)}
            loading.report("Decoding photos", photos[0].name, 0, len(photos))
            for done, future in enumerate(_as_done(set(waiting), loading), start=1):
                place = waiting[future]
                results[place] = future.result()
                loading.report("Decoding photos", photos[place].name, done, len(photos))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # the photos in hand are finished alone
            raise
        pool.shutdown(wait=True)
        sampling_grid.cache_clear()  # of the size of the files, and of no use to the run
        return results


def _threads_with_room(scene: Scene, threads: int) -> int:
    """So many threads, or fewer: half of the free memory must do for what they undistort."""
    lenses = [photo.distortion for photo in scene.photos if photo.distortion is not None]
    largest = max((lens.width * lens.height for lens in lenses), default=0)
    available = available_bytes()
    if available is None or largest == 0:
        return threads
    return max(1, min(threads, available // 2 // (_UNDISTORTING_BYTES * largest)))


def _as_done(
    waiting: set[Future[PhotoPixels | str]], loading: Loading
) -> Iterator[Future[PhotoPixels | str]]:
    while waiting:
        done, waiting = wait(waiting, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        loading.poll()
        yield from done


def _load(photo: Photo) -> PhotoPixels | str:
    try:
        pixels = load_photo(photo)
    except SceneError as error:
        return str(error)
    pixels.rgb.flags.writeable = False
    if pixels.alpha is not None:
        pixels.alpha.flags.writeable = False
    return pixels


def _refuse_too_much(scene: Scene) -> None:
    needed, available = photo_bytes(scene), available_bytes()
    if available is not None and needed > available:
        raise SceneError(
            f"The photos of {scene.name} ({len(scene.photos):,}) need {memory(needed)} of memory, "
            f"{memory(available)} are free. Lower the resolution (2, 4 or 8).",
            path=scene.path,
            value=needed,
        )


def _without_broken(scene: Scene, kept: list[int], broken: list[tuple[int, str]]) -> Scene:
    photos = tuple(scene.photos[place] for place in kept)
    had_training = len(scene.training) > 0  # an evaluation opens the held-out photos alone
    if not photos or (had_training and all(photo.held_out for photo in photos)):
        what = "to train on" if had_training else "to measure on"
        raise SceneError(
            f"No photo of {scene.name} is left {what}: {len(broken)} of {len(scene.photos)} "
            f"cannot be decoded. {broken[0][1]}",
            path=scene.photos[broken[0][0]].path,
        )
    notes = tuple(
        Finding("photo_unreadable", "warning", scene.photos[place].name, f"{text} It is left out.")
        for place, text in broken
    )
    findings = scene.findings + notes
    return with_photo_counts(dataclasses.replace(scene, photos=photos, findings=findings))
