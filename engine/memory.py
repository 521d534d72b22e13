"""Whether an error means that memory ran out, which ends no run."""

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
