"""Which launcher the kernels of a tensor's device go to, and how they are launched and checked."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from cuda_rasterizer.cuda.launcher import Launcher, launcher_of_gpu
from cuda_rasterizer.debug import check_written, debug_is_on

BLOCK = 256
"""Threads of a block, unless a kernel says otherwise."""

WARP = 32
"""Threads of a warp: a block is a multiple of it."""

_installed: list[Launcher] = []


@contextmanager
def use_launcher(launcher: Launcher) -> Iterator[None]:
    """Has the "cuda" backend run on another launcher for the time being, for tests.

    It then takes tensors of the launcher's own device.
    """
    _installed.append(launcher)
    try:
        yield
    finally:
        _installed.pop()


def installed_launcher() -> Launcher | None:
    """The one of `use_launcher`."""
    return _installed[-1] if _installed else None


def launcher_for(device: torch.device) -> Launcher:
    """Where kernels over tensors of this device go."""
    launcher = installed_launcher()
    if launcher is not None and launcher.device_type == device.type:
        return launcher
    return launcher_of_gpu(torch.cuda.current_device() if device.index is None else device.index)


def blocks(count: int, per_block: int = BLOCK) -> int:
    """How many blocks of so many items there are."""
    return -(-count // per_block)


def launch(
    kernel: str,
    params: ctypes.Structure,
    device: torch.device,
    grid: int,
    block: int = BLOCK,
    **outputs: Tensor | None,
) -> None:
    """Launches, unless there is nothing to do; with the debug switch checks the named outputs."""
    if grid == 0:
        return
    launcher_for(device).launch(kernel, params, grid=grid, block=block)
    if outputs and debug_is_on():
        check_written(kernel, outputs)
