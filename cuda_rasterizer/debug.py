"""The debug switch SPLATSCOPE_CUDA_DEBUG: fresh memory is poisoned, what kernels leave is checked.

With it, a number that a kernel forgot to write or made out of nothing is found behind that kernel,
and named, and not a thousand steps later. It is read once, when this module is imported: a step
asks dozens of times.
"""

import os
from collections.abc import Mapping

import torch
from torch import Tensor

from cuda_rasterizer.errors import RasterizerError

POISON_BYTE = 0xA5
_POISON_INTEGERS = {
    torch.int64: int.from_bytes(bytes([POISON_BYTE]) * 8, "little", signed=True),
    torch.int32: int.from_bytes(bytes([POISON_BYTE]) * 4, "little", signed=True),
}


_is_on = os.environ.get("SPLATSCOPE_CUDA_DEBUG", "") not in ("", "0")


def debug_is_on() -> bool:
    """Whether every launch and every result is to be checked; anything but nothing and 0 is yes."""
    return _is_on


def empty(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """As `torch.empty`; poisoned with the debug switch: NaN, or a whole number nobody means."""
    fresh = torch.empty(shape, dtype=dtype, device=device)
    return _poisoned(fresh) if _is_on else fresh


def empty_like(tensor: Tensor) -> Tensor:
    """As `torch.empty_like`, contiguous; poisoned as `empty` does it."""
    fresh = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return _poisoned(fresh) if _is_on else fresh


def _poisoned(fresh: Tensor) -> Tensor:
    if fresh.dtype.is_floating_point:
        return fresh.fill_(float("nan"))
    return fresh.fill_(_POISON_INTEGERS.get(fresh.dtype, POISON_BYTE))


def check_written(kernel: str, outputs: Mapping[str, Tensor | None]) -> None:
    """Every number of every output is written, and finite.

    Raises:
        RasterizerError: names the kernel, the output and the first index at fault.
    """
    for name, output in outputs.items():
        if output is None or output.numel() == 0:
            continue
        if output.dtype.is_floating_point:
            wrong = ~torch.isfinite(output)
        else:
            wrong = output == _POISON_INTEGERS.get(output.dtype, POISON_BYTE)
        if bool(wrong.any()):
            index = [int(i) for i in wrong.nonzero()[0]]
            raise RasterizerError(
                f"kernel {kernel} left {output[tuple(index)].item()} in {name} at index {index}, "
                f"one of {int(wrong.sum())} of {output.numel()}; expected a finite number that it "
                "wrote itself"
            )
