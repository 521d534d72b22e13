"""Memory of the host: what is freed goes back to the system, and running out of it ends no run."""

import ctypes
import sys
import time
import traceback
from collections.abc import Callable

import torch

HEAP_SECONDS = 10.0  # between two times; one takes about 1 ms, and the next steps as long again


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error`, or what caused it, is a lack of memory on the host or the device."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError | torch.OutOfMemoryError):
            return True
        if isinstance(cause, RuntimeError) and "can't allocate memory" in str(cause):
            return True  # how torch says it on the CPU
        cause = cause.__cause__
    return False


def out_of_memory_sentence(step: int, where: str = "") -> str:
    """What the user is told when training, after `step` steps, found no memory `where` it was."""
    return (
        f"Memory ran out{where}; the model is kept as it was after step {step:,}. Lower the "
        "resolution or the splat cap, or prune, and go on."
    )


def give_back_memory(error: BaseException) -> None:
    """Let go of what an attempt that failed still holds, so that the next one finds room.

    The tensors of a failed call live on in the frames of its traceback, and torch keeps the memory
    of a GPU for itself. The error must have been told in full.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()


class FreedHeap:
    """Gives back to the system what the process has freed, every `HEAP_SECONDS` at most.

    glibc keeps freed memory for itself, in pieces between what still lives. Pictures come in many
    sizes and splats change in number, so that those pieces add up to tens of megabytes in a run of
    hours, although nothing is lost.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._given_at = clock()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
        self._trim = trim  # musl and other systems have none
        if trim is not None:
            trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int

    def give_back_when_due(self) -> None:
        """Give back if the last time is long enough ago."""
        now = self._clock()
        if self._trim is None or now - self._given_at < HEAP_SECONDS:
            return
        self._given_at = now
        self._trim(0)
