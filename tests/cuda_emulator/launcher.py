"""Launches kernels that `building` made of the CUDA sources on the CPU (see `emulator.h`)."""

import ctypes
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.launcher import check_launch
from tests.cuda_emulator.building import EmulatorError


@dataclasses.dataclass(frozen=True)
class Order:
    """In which order blocks, warps and lanes run: as numbered, or shuffled by a seed."""

    seed: int | None = None


NATURAL = Order()


class EmulatedLauncher:
    """A `cuda_rasterizer.cuda.launcher.Launcher` whose device is the CPU."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.order = NATURAL

    @property
    def device_type(self) -> str:
        return "cpu"

    @contextmanager
    def ordered(self, order: Order) -> Iterator[None]:
        """Another order for the time being."""
        before, self.order = self.order, order
        try:
            yield
        finally:
            self.order = before

    def launch(
        self,
        kernel: str,
        params: ctypes.Structure,
        *,
        grid: int,
        block: int,
        shared_bytes: int = 0,
    ) -> None:
        """Runs the kernel to its end; EmulatorError where it breaks a rule."""
        check_launch(sources.kernels()[kernel], params, grid, block)
        run(self._library, kernel, params, grid, block, shared_bytes, self.order)


def run(
    library: ctypes.CDLL,
    kernel: str,
    params: ctypes.Structure,
    grid: int,
    block: int,
    shared_bytes: int = 0,
    order: Order = NATURAL,
) -> None:
    """Launches one kernel of a library that `building.build` made."""
    entry = getattr(library, f"emulate_{kernel}")
    entry.restype = ctypes.c_char_p
    entry.argtypes = [
        *(ctypes.c_int64, ctypes.c_int, ctypes.c_int64),
        *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int),
    ]
    size = getattr(library, f"emulate_size_{kernel}")
    size.restype = ctypes.c_int64
    if size() != ctypes.sizeof(params):
        raise EmulatorError(
            f"kernel {kernel} takes {size()} bytes of parameters, {type(params).__name__} has "
            f"{ctypes.sizeof(params)}"
        )
    shuffled = order.seed is not None
    message = entry(grid, block, shared_bytes, ctypes.byref(params), order.seed or 0, int(shuffled))
    if message is not None:
        raise EmulatorError(message.decode())
