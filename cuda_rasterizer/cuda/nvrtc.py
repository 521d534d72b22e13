"""NVRTC, NVIDIA's run-time compiler, through cuda-bindings: one .cu file in, one cubin out.

It needs neither a GPU nor a driver. The headers are handed over in memory, so an installed package
compiles without any include path.
"""

import contextlib
import functools
import importlib
import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.layout_header import LAYOUT_HEADER
from cuda_rasterizer.errors import RasterizerError

OPTIONS: Final = ("-std=c++17", "-fmad=false", "-ftz=true", f"--pre-include={LAYOUT_HEADER}")
"""No contraction: products and sums are fused where the source says so, as on the CPU; and as
there, denormals are flushed, which spares every exponential and reciprocal the scaling for them.
Every source is compiled together with the layouts that Python assumes."""

OLDEST_ARCHITECTURE: Final = 75
_DISTRIBUTIONS: Final = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


class NvrtcUnavailableError(RasterizerError):
    """cuda-bindings or NVRTC is absent or does not load; the message says which, and the fix."""


class CompilationError(RasterizerError):
    """NVRTC refused a source; the message carries its log."""


@dataclass(frozen=True)
class Compilation:
    """What came of one .cu file.

    Attributes:
        image: a cubin; PTX text where the compiler is older than the GPU.
        log: what the compiler said; registers and spills with "--ptxas-options=-v".
    """

    image: bytes
    log: str


class Compiler:
    """NVRTC as it was found; `bindings` is the module `cuda.bindings.nvrtc`."""

    def __init__(self, bindings: Any) -> None:
        """Asks for version and architectures."""
        self._bindings = bindings
        major, minor = self._ask("nvrtcVersion")
        self.version = _with_build(f"{major}.{minor}")
        (found,) = self._ask("nvrtcGetSupportedArchs")
        self.architectures = tuple(sorted(int(number) for number in found))

    def target_for(self, capability: tuple[int, int]) -> str:
        """What to compile for so that a GPU of this capability runs it: "sm_89", or "compute_..".

        A cubin runs on later GPUs of the same major number; beyond that the driver compiles PTX.
        """
        wanted = 10 * capability[0] + capability[1]
        known = [number for number in self.architectures if number <= wanted]
        if wanted < OLDEST_ARCHITECTURE or not known:
            oldest = max(OLDEST_ARCHITECTURE, self.architectures[0])
            raise RasterizerError(
                f"the GPU is sm_{wanted}; the kernels need sm_{oldest} or newer "
                f"(NVRTC {self.version})"
            )
        same_major = known[-1] // 10 == capability[0]
        return f"{'sm' if same_major else 'compute'}_{known[-1]}"

    def compile(
        self, name: str, text: str, target: str, options: tuple[str, ...] = OPTIONS
    ) -> Compilation:
        """Compiles the text of one .cu file for "sm_.." (cubin) or "compute_.." (PTX).

        Raises:
            CompilationError: with NVRTC's log.
        """
        kind = "CUBIN" if target.startswith("sm_") else "PTX"
        arguments = [f"--gpu-architecture={target}".encode(), *(o.encode() for o in options)]
        with self._program(name, text) as program:
            (result,) = self._bindings.nvrtcCompileProgram(program, len(arguments), arguments)
            log = self._text(program, "ProgramLog").decode(errors="replace").rstrip("\0\n")
            if int(result) != 0:
                raise CompilationError(
                    f"{name}.cu does not compile for {target} with NVRTC {self.version} "
                    f"({self._error(result)}):\n{log}"
                )
            return Compilation(self._text(program, kind), log)

    @contextlib.contextmanager
    def _program(self, name: str, text: str) -> Iterator[Any]:
        included = sources.headers()
        (program,) = self._ask(
            "nvrtcCreateProgram",
            text.encode(),
            f"{name}.cu".encode(),
            len(included),
            [header.encode() for header in included.values()],
            [header_name.encode() for header_name in included],
        )
        try:
            yield program
        finally:
            self._ask("nvrtcDestroyProgram", program)

    def _text(self, program: Any, what: str) -> bytes:
        (size,) = self._ask(f"nvrtcGet{what}Size", program)
        buffer = bytes(max(size, 2))  # the call writes into it, and shorter ones are shared
        self._ask(f"nvrtcGet{what}", program, buffer)
        return buffer[:size]

    def _ask(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        result, *values = getattr(self._bindings, function)(*arguments)
        if int(result) != 0:
            raise RasterizerError(f"NVRTC: {function} failed with {self._error(result)}")
        return tuple(values)

    def _error(self, result: Any) -> str:
        _, text = self._bindings.nvrtcGetErrorString(result)
        return str(text.decode())


def _with_build(version: str) -> str:
    """The version with its build, where the package that brought NVRTC tells it."""
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found = importlib.metadata.version(name)
            if found.startswith(f"{version}."):
                return found
    return version


@functools.cache
def load_compiler() -> Compiler:
    """The compiler of this machine.

    Raises:
        NvrtcUnavailableError: says whether cuda-bindings or NVRTC itself is missing.
    """
    try:
        bindings = importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        raise NvrtcUnavailableError(bindings_hint(error)) from error
    try:
        return Compiler(bindings)
    except RuntimeError as error:  # what cuda-bindings raises when the library is not found
        raise NvrtcUnavailableError(
            f"NVRTC does not load ({_first_line(error)}); install nvidia-cuda-nvrtc in the major "
            "version of torch's CUDA (torch's own CUDA packages for Linux bring it along)"
        ) from error


def bindings_hint(error: Exception) -> str:
    """Why cuda-bindings cannot be imported, and what to do."""
    return (
        f"cuda-bindings cannot be imported ({_first_line(error)}); install it in the major version "
        "of torch's CUDA: pip install 'splatscope[cuda]'"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
