"""Whether gradients on CUDA must have the same bits at every repeat.

The CPU kernels and the reference always repeat; on CUDA sums of gradients are faster by atomic
additions, whose order and so whose last bits differ from run to run.
"""

import torch

_wanted: list[bool] = [False]


def set_deterministic(deterministic: bool) -> None:
    """Has pictures drawn from now on get a repeatable backward, at the price of memory and time."""
    _wanted[0] = deterministic


def is_deterministic() -> bool:
    """By `set_deterministic` or by torch's own switch."""
    return _wanted[0] or torch.are_deterministic_algorithms_enabled()
