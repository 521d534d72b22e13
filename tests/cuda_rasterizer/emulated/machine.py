"""Another machine for the CPU kernels: one that an emulator runs.

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
from typing import Any, Protocol

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import cpu_backend, cpu_loss, kernel_arguments, native, screen_gradients
from cuda_rasterizer.native_structs import AdamParams

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
# Numbers of Python's own that kernels write into, by field: they come through no tensor.
OTHER_MEMORY = {"totals": 2 * 8, "terms": 4 * 8}
_PATH = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])


def require(*programs: str, command: str) -> None:
    """Skips the calling test where a program is missing, which `command` would install."""
    missing = [name for name in programs if shutil.which(name, path=_PATH) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} for another machine's kernels: see {command}")


def run(*command: str | Path) -> None:
    """Runs a tool of the build to its end."""
    words = [str(word) for word in command]
    environment = {**os.environ, "PATH": _PATH}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"


class Wire(Protocol):
    """What carries bytes to `replay` over there and back."""

    def send(self, content: bytes) -> None:
        """All of `content`, at once."""

    def receive(self, size: int) -> bytes:
        """Waits for exactly `size` bytes; fewer where the machine has ended."""


class Machine:
    """The library on an emulated machine; `call` has the signature of `native.call`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._tensors: dict[int, Tensor] = {}
        words = self._receive(self._receive_number(), "loading the library").decode().split()
        self.instruction_set = words.pop(0)
        """Which of the library's sets it chose there."""
        self.layout = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        """Offsets and sizes by "structure.field", and constants by name, as compiled there."""

    def set_threads(self, count: int) -> None:
        """Threads of the library's pool over there."""
        self._wire.send(_numbers(0, count))

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
        self._wire.send(b"".join(message))
        for start, size in regions.items():
            ctypes.memmove(start, self._receive(size, kernel), size)

    def _receive(self, size: int, deed: str) -> bytes:
        answer = self._wire.receive(size)
        assert len(answer) == size, f"{deed} ended the emulated machine"
        return answer

    def _receive_number(self) -> int:
        (number,) = struct.unpack("<Q", self._receive(8, "starting"))
        return int(number)

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
        patch.setattr(screen_gradients, "pointer", machine.pointer)
        yield
