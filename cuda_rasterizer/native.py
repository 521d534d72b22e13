"""Loads the CPU kernels, a plain shared library, and calls them through ctypes.

ctypes releases the interpreter's lock during a call. The library knows neither torch nor Python: it
gets pointers in parameter structures (`native_structs`), so one build serves every version of both.
"""

import ctypes
import functools
import sys
from pathlib import Path
from typing import Final, Literal

import torch

from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.native_structs import STRUCTURES

KernelName = Literal[
    "project",
    "project_backward",
    "bin_count",
    "bin_fill",
    "blend",
    "blend_backward",
    "l1_ssim",
    "adam",
    "add_screen_gradients",
    "to_rgba8",
]

BUILD_HINT: Final = (
    "build it with `cmake -S . -B build/native -G Ninja && cmake --build build/native` in a "
    "checkout, or install a C++17 compiler and then this package again"
)
_SUFFIXES: Final = {torch.float32: "float32", torch.float64: "float64"}
_FILE_NAMES: Final = {"win32": "splatscope_cpu.dll", "darwin": "libsplatscope_cpu.dylib"}


class NativeUnavailableError(RasterizerError):
    """The CPU kernels are absent, do not load or are of another version; the message says."""


def library_path() -> Path:
    """Where the library lies: beside this package, wherever that is installed."""
    name = _FILE_NAMES.get(sys.platform, "libsplatscope_cpu.so")
    import cuda_rasterizer

    candidates = [Path(folder) / "native_lib" / name for folder in cuda_rasterizer.__path__]
    return next((path for path in candidates if path.is_file()), candidates[0])


@functools.cache
def load_library() -> ctypes.CDLL:
    """The library, its layouts compared with ours.

    Raises:
        NativeUnavailableError: absent, not loadable, or built from other sources.
    """
    path = library_path()
    if not path.is_file():
        raise NativeUnavailableError(f"the CPU kernels are not built: no file {path}; {BUILD_HINT}")
    try:
        library = ctypes.CDLL(str(path))
        _declare(library)
    except (OSError, AttributeError) as error:
        raise NativeUnavailableError(
            f"the CPU kernels in {path} do not load ({error}); {BUILD_HINT}"
        ) from error
    _check_layouts(library, path)
    return library


def _declare(library: ctypes.CDLL) -> None:
    library.splatscope_instruction_set.restype = ctypes.c_char_p
    library.splatscope_use_instruction_set.argtypes = [ctypes.c_char_p]
    library.splatscope_set_threads.argtypes = [ctypes.c_int]
    library.splatscope_layout.restype = ctypes.c_char_p
    library.splatscope_layout.argtypes = [
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_int64),
    ]
    library.splatscope_constant.restype = ctypes.c_char_p
    library.splatscope_constant.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int64)]


def native_layout(library: ctypes.CDLL) -> dict[tuple[str, str], int]:
    """Offset of every (structure, field) as C++ sees it; the field "" stands for the size."""
    layout: dict[tuple[str, str], int] = {}
    field, value = ctypes.c_char_p(), ctypes.c_int64()
    while structure := library.splatscope_layout(
        len(layout), ctypes.byref(field), ctypes.byref(value)
    ):
        layout[structure.decode(), (field.value or b"").decode()] = value.value
    return layout


def python_layout() -> dict[tuple[str, str], int]:
    """The same as ctypes sees it."""
    layout: dict[tuple[str, str], int] = {}
    for structure in STRUCTURES:
        layout[structure.__name__, ""] = ctypes.sizeof(structure)
        for name, *_ in structure._fields_:
            layout[structure.__name__, name] = getattr(structure, name).offset
    return layout


def _check_layouts(library: ctypes.CDLL, path: Path) -> None:
    native, here = native_layout(library), python_layout()
    if native == here:
        return
    key = next(key for key in {**native, **here} if native.get(key) != here.get(key))
    name = ".".join(filter(None, key)) + ("" if key[1] else " (size)")
    raise NativeUnavailableError(
        f"the CPU kernels in {path} are of another version: {name} is at {native.get(key)} there "
        f"and at {here.get(key)} here; {BUILD_HINT}"
    )


@functools.cache
def constants() -> dict[str, int]:
    """The sizes that allocation needs, from `include/constants.h`."""
    library = load_library()
    found: dict[str, int] = {}
    value = ctypes.c_int64()
    while name := library.splatscope_constant(len(found), ctypes.byref(value)):
        found[name.decode()] = value.value
    return found


def call(kernel: KernelName, dtype: torch.dtype, params: ctypes.Structure) -> None:
    """Runs one kernel; the caller keeps what `params` points to alive until it returns."""
    getattr(load_library(), f"splatscope_{kernel}_{_SUFFIXES[dtype]}")(ctypes.byref(params))


def instruction_set() -> str:
    """Which of "baseline", "avx2" and "avx512" is in use."""
    name: bytes = load_library().splatscope_instruction_set()
    return name.decode()


def use_instruction_set(name: str) -> None:
    """Switches all later calls, for tests and measurements.

    Raises:
        RasterizerError: this machine lacks it, or there is no such set.
    """
    if not load_library().splatscope_use_instruction_set(name.encode()):
        raise RasterizerError(f"instruction set {name!r} is unknown here or this machine lacks it")


def thread_count() -> int:
    """Threads of the pool, the caller's own included."""
    count: int = load_library().splatscope_threads()
    return count


def set_thread_count(count: int) -> None:
    """Resizes the pool.

    Raises:
        RasterizerError: the system gave fewer threads; the pool keeps those it got.
    """
    if not load_library().splatscope_set_threads(count):
        raise RasterizerError(f"asked for {count} threads, the system gave {thread_count()}")
