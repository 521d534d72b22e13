"""Which backends there are, which of them can run here, and how many threads they use."""

import os

from cuda_rasterizer import native
from cuda_rasterizer.errors import RasterizerError

BACKENDS = ("reference", "cpu", "cuda")
_PREFERRED = ("cpu", "reference")
_SET_NAMES = {"baseline": "SSE2", "avx2": "AVX2", "avx512": "AVX-512"}


def backend_status() -> dict[str, str | None]:
    """Why each backend cannot be used here, or None where it can."""
    try:
        native.load_library()
    except native.NativeUnavailableError as error:
        cpu: str | None = str(error)
    else:
        cpu = None
    return {"reference": None, "cpu": cpu, "cuda": "not part of this version"}


def resolve_backend(name: str) -> str:
    """The backend that `name` stands for; "auto" is the fastest that can run.

    Raises:
        RasterizerError: there is no such backend, or it cannot run here; the message says why.
    """
    status = backend_status()
    if name == "auto":
        return next(candidate for candidate in _PREFERRED if status[candidate] is None)
    if name not in status:
        raise RasterizerError(
            f"there is no backend {name!r}; choose auto or one of {', '.join(BACKENDS)}"
        )
    reason = status[name]
    if reason is not None:
        raise RasterizerError(f"backend {name!r} cannot be used here: {reason}")
    return name


def set_threads(count: int) -> None:
    """Sets how many threads the CPU kernels use, the caller's own included; 0 takes every core.

    Results do not depend on it. Without the kernels there is nothing to set.

    Raises:
        RasterizerError: below 0, or the system gives fewer.
    """
    if count < 0:
        raise RasterizerError(f"asked for {count} threads; expected 1 or more, or 0 for every core")
    if backend_status()["cpu"] is None:
        native.set_thread_count(count or available_cores())


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Threads of the CPU kernels; 1 where they are not built."""
    return native.thread_count() if backend_status()["cpu"] is None else 1


def describe(backend: str) -> str:
    """One line for people, for example "CPU, 2 threads, AVX2"."""
    if resolve_backend(backend) == "reference":
        return "reference (plain torch, slow)"
    threads = native.thread_count()
    instruction_set = _SET_NAMES[native.instruction_set()]
    return f"CPU, {threads} thread{'s' if threads != 1 else ''}, {instruction_set}"
