"""Which rasteriser draws, on which GPU or how many threads, and with which priority.

torch itself runs one thread: its reductions change bits with their number, and its pool would
spin against the native one. Import this module before the first tensor operation.
"""

import contextlib
import os
import sys
from pathlib import Path

import torch

import cuda_rasterizer
from cuda_rasterizer.cuda.launches import installed_launcher
from engine.dataset.loading import Progress
from engine.errors import BackendError, SettingError
from engine.settings import Settings

LOW_PRIORITY = 10  # the nice value of a program that lets others go first

START_PRIORITY = 0 if sys.platform == "win32" else os.getpriority(os.PRIO_PROCESS, 0)

torch.set_num_threads(1)


def choose_backend(settings: Settings) -> str:
    """The name of the backend to use; raises BackendError when the one asked for is not to be had.

    CUDA is judged by the GPU that the settings name; that there is none such, `tensor_device` says.
    Changes nothing, so that a load that is given up leaves no trace.
    """
    wanted = settings.device.gpu
    gpu = wanted if wanted < torch.cuda.device_count() else None
    try:
        backend = cuda_rasterizer.resolve_backend(settings.device.backend, gpu)
    except cuda_rasterizer.RasterizerError as error:
        raise BackendError(str(error), value=settings.device.backend) from error
    return backend


def tensor_device(backend: str, settings: Settings) -> torch.device:
    """Where everything of a run is that a backend draws; raises BackendError without that GPU."""
    launcher = installed_launcher()
    if backend != "cuda" or (launcher is not None and launcher.device_type == "cpu"):
        return torch.device("cpu")
    count, wanted = torch.cuda.device_count(), settings.device.gpu
    if wanted >= count:
        names = ", ".join(f"{i}: {torch.cuda.get_device_name(i)}" for i in range(count))
        raise BackendError(
            f"There is no GPU {wanted}; torch sees {count} ({names}). Choose one of these, counted "
            "from 0.",
            value=wanted,
        )
    return torch.device("cuda", wanted)


def make_current(device: torch.device) -> None:
    """Let what this thread does on a GPU, such as page-locking memory, be on that one."""
    if device.type == "cuda":
        torch.cuda.set_device(device)


def prepare_kernels(backend: str, progress: Progress) -> None:
    """Compile for the GPU of this thread what is not compiled yet: some seconds, the first time.

    `progress` is told what is being compiled, and may cancel. Raises BackendError with the
    compiler's words.
    """

    def tell(what: str, done: int, count: int) -> None:
        progress("Compiling kernels for the GPU", what, done, count)

    try:
        cuda_rasterizer.prepare(backend, tell)
    except cuda_rasterizer.RasterizerError as error:
        raise BackendError(str(error), value=backend) from error


def put_into_force(settings: Settings, device: torch.device | None = None) -> str | None:
    """Set the GPU of this thread, the threads and the priority; a sentence when one is refused.

    Raises SettingError when the system does not give so many threads.
    """
    if device is not None:
        make_current(device)
    cuda_rasterizer.set_deterministic(settings.device.deterministic)
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
