"""Which rasteriser draws, on how many threads and with which priority.

torch itself runs one thread: its reductions change bits with their number, and its pool would
spin against the native one. Import this module before the first tensor operation.
"""

import contextlib
import os
import sys
from pathlib import Path

import torch

import cuda_rasterizer
from engine.errors import BackendError, SettingError
from engine.settings import Settings

LOW_PRIORITY = 10  # the nice value of a program that lets others go first

START_PRIORITY = 0 if sys.platform == "win32" else os.getpriority(os.PRIO_PROCESS, 0)

torch.set_num_threads(1)


def choose_backend(settings: Settings) -> str:
    """The name of the backend to use; raises BackendError when the one asked for is not to be had.

    Changes nothing, so that a load that is given up leaves no trace.
    """
    try:
        backend = cuda_rasterizer.resolve_backend(settings.device.backend)
    except cuda_rasterizer.RasterizerError as error:
        raise BackendError(str(error), value=settings.device.backend) from error
    return backend


def put_into_force(settings: Settings) -> str | None:
    """Set the threads and the priority of the settings; a sentence when the system refuses one.

    Raises SettingError when the system does not give so many threads.
    """
    set_threads(settings.device.threads)
    low = settings.device.low_priority
    if low or _is_lowered():
        return set_low_priority(low)
    return None


def _is_lowered() -> bool:
    """Whether this thread has a lower priority than the program was started with."""
    if sys.platform == "win32":
        return False
    return os.getpriority(os.PRIO_PROCESS, 0) > START_PRIORITY


def set_threads(count: int) -> None:
    """Set the threads of the CPU kernels, at any time between two steps; 0 takes every core.

    Raises SettingError when the system does not give so many.
    """
    try:
        cuda_rasterizer.set_threads(count)
    except cuda_rasterizer.RasterizerError as error:
        raise SettingError(f"threads cannot be {count}: {error}.", value=count) from error


def describe(backend: str) -> str:
    """The device in words, such as "CPU, 2 threads, AVX2"."""
    return cuda_rasterizer.describe(backend)


def set_low_priority(low: bool) -> str | None:
    """Let other programs go first, or not any more; a sentence when the system refuses.

    An ordinary user may lower the priority of a program but not raise it again.
    """
    if sys.platform == "win32":
        return "The priority of this program cannot be changed here; use the task manager."
    wanted = max(LOW_PRIORITY, START_PRIORITY) if low else START_PRIORITY
    try:
        for thread in _threads():
            with contextlib.suppress(ProcessLookupError):  # it has ended in the meantime
                os.setpriority(os.PRIO_PROCESS, thread, wanted)
    except PermissionError:
        return (
            "The system does not let this program raise its priority again; it stays low until "
            "the program is started anew."
        )
    return None


def _threads() -> list[int]:
    """Ids of all threads of this process; on Linux a priority belongs to a single thread."""
    tasks = Path("/proc/self/task")
    return [int(task.name) for task in tasks.iterdir()] if tasks.is_dir() else [0]
