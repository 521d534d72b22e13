"""What the CPU can do at most, measured: multiply-adds a second, and bytes a second of a copy.

The two loops are C++ (`machine_peaks.cpp`), compiled when they are first wanted. They are run in
short windows between other measurements, since a machine's clock moves.
"""

import ctypes
import dataclasses
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

import numpy as np

SOURCE = Path(__file__).with_suffix(".cpp")
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC")
WINDOW_SECONDS = 0.02
COPIED_BYTES = 64 << 20  # twice over, and more than any cache holds


@dataclasses.dataclass(frozen=True)
class Peaks:
    """Medians over the windows, on one thread and on two."""

    lanes: int
    multiply_adds_a_second: float
    multiply_adds_a_second_on_two: float
    bytes_a_second: float
    bytes_a_second_on_two: float

    @property
    def second_core(self) -> float:
        """What a second thread adds to pure arithmetic: 2 is two whole cores."""
        return self.multiply_adds_a_second_on_two / self.multiply_adds_a_second


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
        self._arithmetic: dict[int, list[float]] = {1: [], 2: []}
        self._copying: dict[int, list[float]] = {1: [], 2: []}

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
        while (seconds := self._computing(1, rounds)) < WINDOW_SECONDS:
            rounds *= 2
        for threads in (1, 2):
            seconds = self._computing(threads, rounds)
            self._arithmetic[threads].append(threads * rounds * self._numbers_a_round / seconds)
            copied = 2 * len(self._source)  # read and written
            self._copying[threads].append(copied / self._copy_seconds(threads))

    def peaks(self) -> Peaks:
        """The medians so far."""
        medians = {
            threads: (statistics.median(self._arithmetic[threads]), statistics.median(copying))
            for threads, copying in self._copying.items()
        }
        return Peaks(self._lanes, medians[1][0], medians[2][0], medians[1][1], medians[2][1])

    def _computing(self, threads: int, rounds: int) -> float:
        return _seconds([lambda: self._library.multiply_adds(rounds)] * threads)

    def _copy_seconds(self, threads: int) -> float:
        size = len(self._source) // threads

        def part(index: int) -> None:
            target, source = self._target.ctypes.data, self._source.ctypes.data
            self._library.copy(target + index * size, source + index * size, size)

        return _seconds([lambda index=index: part(index) for index in range(threads)])  # type: ignore[misc]


def _seconds(actions: list) -> float:  # type: ignore[type-arg]
    """Wall time of all actions at once, each on a thread; ctypes lets go of the interpreter."""
    threads = [threading.Thread(target=action) for action in actions[1:]]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    actions[0]()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start
