"""The CUDA driver through cuda-bindings: modules, functions, launches, every answer checked."""

import ctypes
import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from cuda_rasterizer.cuda.nvrtc import bindings_hint
from cuda_rasterizer.errors import RasterizerError

FREE_SHARED_BYTES = 48 * 1024
"""Shared memory that a block may have without asking for more."""


_OnePointer = ctypes.c_void_p * 1


class DriverUnavailableError(RasterizerError):
    """cuda-bindings or the NVIDIA driver is absent; the message says which, and the fix."""


@dataclass(frozen=True)
class FunctionAttributes:
    """What the compiler made of a kernel."""

    registers: int
    spilled_bytes: int
    static_shared_bytes: int
    max_threads: int


class Driver:
    """One GPU by its ordinal; `bindings` is the module `cuda.bindings.driver`.

    Works in the primary context, which is torch's too, and leaves the caller's context as it was.
    """

    def __init__(self, bindings: Any, ordinal: int) -> None:
        """Starts the driver and takes part in the device's primary context."""
        self._bindings = bindings
        self._ask("cuInit", 0)
        (self._device,) = self._ask("cuDeviceGet", ordinal)
        (self._context,) = self._ask("cuDevicePrimaryCtxRetain", self._device)
        self._context_number = int(self._context)

    @property
    def version(self) -> str:
        """The newest CUDA that the driver knows, as "13.0"."""
        (number,) = self._ask("cuDriverGetVersion")
        return f"{number // 1000}.{number % 1000 // 10}"

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability."""
        return (
            self._device_attribute("COMPUTE_CAPABILITY_MAJOR"),
            self._device_attribute("COMPUTE_CAPABILITY_MINOR"),
        )

    @property
    def multiprocessors(self) -> int:
        """How many there are."""
        return self._device_attribute("MULTIPROCESSOR_COUNT")

    def load_module(self, image: bytes) -> Any:
        """A module from a cubin or PTX."""
        with self._in_context():
            (module,) = self._ask("cuModuleLoadData", image)
        return module

    def function(self, module: Any, name: str) -> Any:
        """The handle of a kernel."""
        with self._in_context():
            (function,) = self._ask("cuModuleGetFunction", module, name.encode())
        return function

    def attributes(self, function: Any) -> FunctionAttributes:
        """What the compiler made of it."""
        names = ("NUM_REGS", "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        kinds = self._bindings.CUfunction_attribute
        asked = [getattr(kinds, f"CU_FUNC_ATTRIBUTE_{name}") for name in names]
        with self._in_context():
            found = [self._ask("cuFuncGetAttribute", kind, function) for kind in asked]
        return FunctionAttributes(*(int(value) for (value,) in found))

    def resident_blocks(self, function: Any, block: int, shared_bytes: int) -> int:
        """Blocks of such a launch that fit one multiprocessor at once."""
        with self._in_context():
            (count,) = self._ask(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor", function, block, shared_bytes
            )
        return int(count)

    def allow_shared_bytes(self, function: Any, shared_bytes: int) -> None:
        """Opts in to more dynamic shared memory than every kernel has.

        Raises:
            RasterizerError: the device has less.
        """
        limit = self._device_attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        if shared_bytes > limit:
            raise RasterizerError(
                f"a kernel asks for {shared_bytes} bytes of shared memory; this GPU has {limit}"
            )
        kind = self._bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self._in_context():
            self._ask("cuFuncSetAttribute", function, kind, shared_bytes)

    def launch(
        self,
        function: Any,
        parameters: ctypes.Structure,
        *,
        grid: int,
        block: int,
        shared_bytes: int,
        stream: int,
    ) -> None:
        """Queues one launch; the structure is copied before this returns."""
        array = _OnePointer(ctypes.addressof(parameters))
        arguments = (
            *(function, grid, 1, 1, block, 1, 1),
            *(shared_bytes, stream, ctypes.addressof(array), 0),
        )
        # once for each kernel of each step, so without the context manager where it can be
        if self._is_current():
            self._ask("cuLaunchKernel", *arguments)
            return
        with self._in_context():
            self._ask("cuLaunchKernel", *arguments)

    def wait(self, stream: int) -> None:
        """Until everything queued there is done; raises what went wrong there."""
        with self._in_context():
            self._ask("cuStreamSynchronize", stream)

    def _is_current(self) -> bool:
        (current,) = self._ask("cuCtxGetCurrent")
        return int(current) == self._context_number

    @contextmanager
    def _in_context(self) -> Iterator[None]:
        if self._is_current():
            yield
            return
        self._ask("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            self._ask("cuCtxPopCurrent")

    def _device_attribute(self, name: str) -> int:
        kind = getattr(self._bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        (value,) = self._ask("cuDeviceGetAttribute", kind, self._device)
        return int(value)

    def _ask(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        result, *values = getattr(self._bindings, function)(*arguments)
        if int(result) == 0:
            return tuple(values)
        _, name = self._bindings.cuGetErrorName(result)
        _, text = self._bindings.cuGetErrorString(result)
        message = f"{function} failed with {_decoded(name)}: {_decoded(text)}"
        if _decoded(name) == "CUDA_ERROR_OUT_OF_MEMORY":
            raise torch.OutOfMemoryError(message)
        raise RasterizerError(message)


def _decoded(text: bytes | None) -> str:
    return text.decode() if text else "an unknown error"


@functools.cache
def load_driver(ordinal: int) -> Driver:
    """The driver for one GPU.

    Raises:
        DriverUnavailableError: says whether cuda-bindings or the driver is missing.
    """
    try:
        bindings = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DriverUnavailableError(bindings_hint(error)) from error
    try:
        return Driver(bindings, ordinal)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # what cuda-bindings raises when the library is not found
        raise DriverUnavailableError(
            f"the NVIDIA driver does not load ({error}); install the driver of your GPU"
        ) from error
