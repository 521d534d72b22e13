"""What the CPU can do at most, measured: multiply-adds a second, and bytes a second of a copy.

The two loops are C++ (`machine_peaks.cpp`), compiled when they are first wanted. They are run in
short windows between other measurements, since a machine's clock moves.
"""

import ctypes
import dataclasses
import functools
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

SOURCE = Path(__file__).with_suffix(".cpp")
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC")
WINDOW_SECONDS = 0.02
COPIED_BYTES = 64 << 20  # twice over, and more than any cache holds


@dataclasses.dataclass(frozen=True)
class Peaks:
    """Medians over the windows: rates of one thread's own time, and gains in wall time."""

    lanes: int
    multiply_adds_a_second: float
    bytes_a_second: float
    second_core: float  # what a second thread makes of pure arithmetic: 2 is two whole cores
    second_core_copying: float


class PeakMeter:
    """Measures a window whenever asked to; `peaks` gives the medians."""

    def __init__(self, library: ctypes.CDLL, copied_bytes: int) -> None:
        """Takes the compiled loops."""
        library.multiply_adds.argtypes = [ctypes.c_int64]
        library.multiply_adds.restype = ctypes.c_float
        library.copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        self._library = library
        self._source = np.ones(copied_bytes, dtype=np.uint8)
        self._target = np.ones(copied_bytes, dtype=np.uint8)
        self._lanes: int = library.peak_lanes()
        self._numbers_a_round = self._lanes * library.peak_chains()
        self._windows: list[Peaks] = []

    @classmethod
    def compiled(cls, copied_bytes: int = COPIED_BYTES) -> Self | None:
        """With the loops compiled for this machine; None where there is no compiler."""
        compiler = shutil.which("c++")
        if compiler is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "machine_peaks.so"
            command = [compiler, *FLAGS, str(SOURCE), "-o", str(path)]
            subprocess.run(command, check=True, capture_output=True)
            return cls(ctypes.CDLL(str(path)), copied_bytes)

    def window(self) -> None:
        """Measure everything once, for a few hundredths of a second each."""
        rounds = 20_000
        while self._computing(1, rounds).wall < WINDOW_SECONDS:
            rounds *= 2
        computing = [self._computing(threads, rounds) for threads in (1, 2)]
        copying = [self._copying(threads) for threads in (1, 2)]
        self._windows.append(
            Peaks(
                lanes=self._lanes,
                multiply_adds_a_second=rounds * self._numbers_a_round / computing[0].own,
                bytes_a_second=2 * len(self._source) / copying[0].own,  # read and written
                second_core=2 * computing[0].wall / computing[1].wall,
                second_core_copying=copying[0].wall / copying[1].wall,
            )
        )

    def peaks(self) -> Peaks:
        """The medians so far."""
        rows = [dataclasses.astuple(window)[1:] for window in self._windows]
        return Peaks(
            self._lanes, *(statistics.median(column) for column in zip(*rows, strict=True))
        )

    def _computing(self, threads: int, rounds: int) -> "_Times":
        return _times([lambda: self._library.multiply_adds(rounds)] * threads)

    def _copying(self, threads: int) -> "_Times":
        size = len(self._source) // threads

        def part(index: int) -> None:
            target, source = self._target.ctypes.data, self._source.ctypes.data
            self._library.copy(target + index * size, source + index * size, size)

        return _times([functools.partial(part, index) for index in range(threads)])


class _Times(NamedTuple):
    wall: float
    own: float  # of the calling thread


def _times(actions: Sequence[Callable[[], object]]) -> _Times:
    """All actions at once, the first in this thread; ctypes lets go of the interpreter."""
    threads = [threading.Thread(target=action) for action in actions[1:]]
    start, own = time.perf_counter(), time.thread_time()
    for thread in threads:
        thread.start()
    actions[0]()
    own = time.thread_time() - own
    for thread in threads:
        thread.join()
    return _Times(time.perf_counter() - start, own)
