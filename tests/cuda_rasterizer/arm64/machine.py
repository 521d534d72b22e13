"""Another machine for the CPU kernels: cross-compiled for 64-bit ARM, run under qemu.

The Python side stays as it is, on this machine. Each call of a kernel is sent with all memory that
its pointers reach to `replay.cpp`, and what comes back is put in place.
"""

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import cpu_backend, cpu_loss, kernel_arguments, native
from cuda_rasterizer.native_structs import AdamParams
from tests.child_process import BUSY_SECONDS

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
BUILD = ROOT / "build" / "arm64"
COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
NEEDED = (COMPILER, EMULATOR[0], "cmake", "ninja")
# Numbers of Python's own that kernels write into, by field: they come through no tensor.
OTHER_MEMORY = {"totals": 2 * 8, "terms": 4 * 8}


def build() -> Path:
    """Compiles library and `replay` as far as they are not up to date; the folder of both.

    Skips the calling test where a tool is missing.
    """
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} for another machine's kernels: see make test-arm64")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={FOLDER / 'toolchain.cmake'}"
    configure = ("cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", toolchain)
    link = (COMPILER, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror")
    for command in (
        configure,
        ("cmake", "--build", str(BUILD)),
        (*link, str(FOLDER / "replay.cpp"), "-o", str(BUILD / "replay")),
    ):
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return BUILD


class Machine:
    """The library on an emulated machine; `call` has the signature of `native.call`."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Starts it; `threads` are those of the library's pool over there."""
        library = folder / "libsplatscope_cpu.so"
        self._process = subprocess.Popen(
            [*EMULATOR, str(folder / "replay"), str(library), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._tensors: dict[int, Tensor] = {}
        self.layout: dict[str, int] = {}
        """Offsets and sizes by "structure.field", and constants by name, as compiled there."""
        while line := self._output.readline().decode().rstrip("\n"):
            name, value = line.split(" ")
            self.layout[name] = int(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        code = self._process.wait(timeout=BUSY_SECONDS)
        self._output.close()
        assert code == 0, f"the emulated machine ended with {code}"

    def pointer(self, tensor: Tensor | None) -> int | None:
        """As `kernel_arguments.pointer`; whose memory it is stays known, and so stays allocated."""
        if tensor is not None:
            self._tensors[tensor.untyped_storage().data_ptr()] = tensor
        return None if tensor is None else tensor.data_ptr()

    def call(self, kernel: str, dtype: torch.dtype, params: ctypes.Structure) -> None:
        """Runs one kernel over there."""
        name = f"{kernel}_{str(dtype).removeprefix('torch.')}".encode()
        regions: dict[int, int] = {}
        offsets = []
        for field, offset, address in _pointers(params):
            start, size = self._memory(field, address)
            if size > 0:
                regions[start] = max(size, regions.get(start, 0))
                offsets.append(offset)
        content = bytes(params)
        message = [_numbers(len(name)), name, _numbers(len(content)), content]
        message.append(_numbers(len(regions)))
        for start, size in regions.items():
            message += [_numbers(start, size), ctypes.string_at(start, size)]
        message.append(_numbers(len(offsets), *offsets))
        self._input.write(b"".join(message))
        self._input.flush()
        for start, size in regions.items():
            answer = self._output.read(size)
            assert len(answer) == size, f"{kernel} ended the emulated machine"
            ctypes.memmove(start, answer, size)

    def _memory(self, field: str, address: int) -> tuple[int, int]:
        if field in OTHER_MEMORY:
            return address, OTHER_MEMORY[field]
        for start, tensor in self._tensors.items():
            size = tensor.untyped_storage().nbytes()
            if start <= address < start + size or address == start:
                return start, size
        raise AssertionError(f"{field} points to no tensor that was asked for its address")


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def _pointers(params: Any, at: int = 0) -> Iterator[tuple[str, int, int]]:
    """Name, offset and value of every pointer that is not null."""
    for name, kind, *_ in params._fields_:
        value, offset = getattr(params, name), at + getattr(type(params), name).offset
        if kind is ctypes.c_void_p and value:
            yield name, offset, value
        elif isinstance(value, ctypes.Structure):
            yield from _pointers(value, offset)
        elif isinstance(value, ctypes.Array):
            used = params.group_count if isinstance(params, AdamParams) else len(value)
            for index in range(used):
                yield from _pointers(value[index], offset + index * ctypes.sizeof(value[index]))


@contextmanager
def kernels_on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Backend "cpu" runs its kernels on `machine` meanwhile."""
    with monkeypatch.context() as patch:
        patch.setattr(native, "call", machine.call)
        patch.setattr(cpu_backend, "pointer", machine.pointer)
        patch.setattr(cpu_loss, "pointer", machine.pointer)
        patch.setattr(kernel_arguments, "pointer", machine.pointer)
        yield
