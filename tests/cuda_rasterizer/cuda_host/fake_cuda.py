"""Stand-ins for cuda-bindings: a compiler and a driver that record what they are asked for."""

import ctypes
import types
from typing import Any


class Result(int):
    """A status code, 0 for success."""


class FakeNvrtc:
    """The functions of `cuda.bindings.nvrtc` that `Compiler` calls."""

    def __init__(self, architectures: tuple[int, ...] = (75, 80, 86, 89, 90)) -> None:
        self.architectures = architectures
        self.compiled: list[tuple[str, list[bytes]]] = []
        self.headers: dict[str, str] = {}
        self.broken = ""
        self.alive = 0

    def nvrtcVersion(self):
        return Result(0), 13, 0

    def nvrtcGetSupportedArchs(self):
        return Result(0), list(self.architectures)

    def nvrtcCreateProgram(self, text, name, count, headers, names):
        assert count == len(headers) == len(names)
        pairs = zip(names, headers, strict=True)
        self.headers = {key.decode(): value.decode() for key, value in pairs}
        self.alive += 1
        return Result(0), types.SimpleNamespace(text=text.decode(), name=name.decode())

    def nvrtcDestroyProgram(self, program):
        self.alive -= 1
        return (Result(0),)

    def nvrtcCompileProgram(self, program, count, options):
        assert count == len(options)
        self.compiled.append((program.name, options))
        return (Result(6 if self.broken else 0),)

    def nvrtcGetProgramLogSize(self, program):
        return Result(0), len(self.broken) + 1

    def nvrtcGetProgramLog(self, program, buffer):
        _write(buffer, self.broken.encode())
        return (Result(0),)

    def nvrtcGetCUBINSize(self, program):
        return Result(0), len(program.text)

    def nvrtcGetCUBIN(self, program, buffer):
        _write(buffer, program.text.encode())
        return (Result(0),)

    def nvrtcGetPTXSize(self, program):
        return Result(0), 3

    def nvrtcGetPTX(self, program, buffer):
        _write(buffer, b"ptx")
        return (Result(0),)

    def nvrtcGetErrorString(self, result):
        return Result(0), b"NVRTC_ERROR_COMPILATION"


def _write(buffer: bytes, content: bytes) -> None:
    """Into the caller's bytes, as the library does it."""
    place = ctypes.cast(ctypes.c_char_p(buffer), ctypes.c_void_p)
    assert place.value is not None
    ctypes.memmove(place.value, content, len(content))


class FakeDriver:
    """The functions of `cuda.bindings.driver` that `Driver` calls, on one GPU."""

    CUfunction_attribute = types.SimpleNamespace(
        CU_FUNC_ATTRIBUTE_NUM_REGS="registers",
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES="local",
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES="shared",
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK="threads",
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic",
    )
    CUdevice_attribute = types.SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT="multiprocessors",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="optin",
    )
    CONTEXT = 77

    def __init__(self, capability: tuple[int, int] = (8, 9)) -> None:
        self.device_of_ordinal: dict[int, dict[str, int]] = {}
        self.device: dict[str, int] = {
            "major": capability[0],
            "minor": capability[1],
            "multiprocessors": 10,
            "optin": 100_000,
        }
        self.function = {"registers": 40, "local": 0, "shared": 1024, "threads": 256}
        self.context = self.CONTEXT
        self.loaded: list[bytes] = []
        self.launches: list[dict[str, Any]] = []
        self.allowed: list[int] = []
        self.pushed = 0
        self.waited = 0
        self.fails: dict[str, int] = {}

    def _answer(self, name: str, *values: Any) -> tuple[Any, ...]:
        return Result(self.fails.get(name, 0)), *values

    def cuInit(self, flags):
        return self._answer("cuInit")

    def cuDeviceGet(self, ordinal):
        return self._answer("cuDeviceGet", ordinal)

    def cuDevicePrimaryCtxRetain(self, device):
        return self._answer("cuDevicePrimaryCtxRetain", self.CONTEXT)

    def cuDriverGetVersion(self):
        return self._answer("cuDriverGetVersion", 13020)

    def cuDeviceGetAttribute(self, kind, device):
        wanted = self.device_of_ordinal.get(device, self.device)
        return self._answer("cuDeviceGetAttribute", wanted[kind])

    def cuCtxGetCurrent(self):
        return self._answer("cuCtxGetCurrent", self.context)

    def cuCtxPushCurrent(self, context):
        self.pushed += 1
        self.before, self.context = self.context, context
        return self._answer("cuCtxPushCurrent")

    def cuCtxPopCurrent(self):
        self.pushed -= 1
        self.context = self.before
        return self._answer("cuCtxPopCurrent", self.CONTEXT)

    def cuModuleLoadData(self, image):
        assert self.context == self.CONTEXT
        self.loaded.append(image)
        return self._answer("cuModuleLoadData", f"module {len(self.loaded)}")

    def cuModuleGetFunction(self, module, name):
        assert self.context == self.CONTEXT
        return self._answer("cuModuleGetFunction", name.decode())

    def cuFuncGetAttribute(self, kind, function):
        assert self.context == self.CONTEXT
        return self._answer("cuFuncGetAttribute", self.function[kind])

    def cuFuncSetAttribute(self, function, kind, value):
        assert kind == "dynamic"
        self.allowed.append(value)
        return self._answer("cuFuncSetAttribute")

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function, block, shared):
        return self._answer("cuOccupancyMaxActiveBlocksPerMultiprocessor", 3)

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert self.context == self.CONTEXT
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, 0)
        address = ctypes.c_void_p.from_address(parameters).value
        self.launches.append(
            {
                "function": function,
                "grid": gx,
                "block": bx,
                "shared": shared,
                "stream": stream,
                "structure": address,
            }
        )
        return self._answer("cuLaunchKernel")

    def cuStreamSynchronize(self, stream):
        self.waited += 1
        return self._answer("cuStreamSynchronize")

    def cuGetErrorName(self, result):
        names = {2: b"CUDA_ERROR_OUT_OF_MEMORY", 700: b"CUDA_ERROR_ILLEGAL_ADDRESS"}
        return Result(0), names.get(int(result), b"CUDA_ERROR_UNKNOWN")

    def cuGetErrorString(self, result):
        return Result(0), b"it went wrong"
