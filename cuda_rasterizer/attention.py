"""Lets a thread that is inside a long kernel of the CPU do something else in between.

Kernels of many tasks (tiles, blocks of splats) can stop between two of them; not Adam, which moves
what others would look at. A thread that says so (`Attention.heeded`) is called back there as soon
as another one calls, and the kernel goes on where it stopped: its results are the same bits. Other
kernels, other threads and other backends heed nothing; nor do the kernels of the call back itself.
"""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from cuda_rasterizer import native
from cuda_rasterizer.native_structs import PieceParams

Serve = Callable[[], float | None]
"""What is done between two tasks. Returns the seconds after which it wants to be called again even
if nobody calls; None where it does not. An error in it ends the kernel."""


class Attention:
    """One thread's; everybody may call it."""

    def __init__(self) -> None:
        self._called = ctypes.c_int64(0)  # kernels read it while they run, without the GIL

    def call(self) -> None:
        """Have the thread called back soon, if it is heeding: from any thread, at any time."""
        self._called.value = 1

    @contextlib.contextmanager
    def heeded(self, serve: Serve, patience: float | None = None) -> Iterator[None]:
        """In this block this thread calls `serve` between two tasks when it is called.

        `patience`, in seconds, is that of the first time, as `serve` returns it.
        """
        before = _current()
        _here.heeding = _Heeding(self._called, serve, _deadline(patience))
        try:
            yield
        finally:
            _here.heeding = before


@dataclass
class _Heeding:
    called: ctypes.c_int64
    serve: Serve
    deadline: float | None  # of `time.perf_counter`

    def patience_ns(self) -> int:
        if self.deadline is None:
            return -1
        return max(0, round(1e9 * (self.deadline - time.perf_counter())))

    def call_back(self) -> None:
        """Serve, with nothing heeded meanwhile."""
        self.called.value = 0  # before: whoever calls from here on has not been served yet
        _here.heeding = None
        try:
            self.deadline = _deadline(self.serve())
        finally:
            _here.heeding = self


_here = threading.local()


def _current() -> _Heeding | None:
    heeding: _Heeding | None = getattr(_here, "heeding", None)
    return heeding


def _deadline(patience: float | None) -> float | None:
    return None if patience is None else time.perf_counter() + patience


def call_in_pieces(
    kernel: native.KernelName,
    dtype: torch.dtype,
    params: ctypes.Structure,
) -> None:
    """As `native.call`; in between, this thread is called back if it heeds somebody."""
    heeding = _current()
    if heeding is None:
        native.call(kernel, dtype, params)
        return
    done = native.constants()["all_pieces_done"]
    pieces = PieceParams(called=ctypes.addressof(heeding.called))
    params.pieces = ctypes.addressof(pieces)
    try:
        while True:
            pieces.patience_ns = heeding.patience_ns()
            native.call(kernel, dtype, params)
            if pieces.next == done:
                return
            heeding.call_back()
    finally:
        params.pieces = None  # they end here, and `params` may be called again
