"""What to do when memory runs out, which ends no run: tell it, and give back what it holds."""

import traceback

import torch


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
