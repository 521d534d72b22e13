"""Whether a training step may be followed, found out where its gradients are made.

A NaN enters through one gradient and is everywhere one step later. To look for it the host would
have to wait for the device in every step; so the kernel that writes the gradients notes on the
device what it found, and `adam_step` moves nothing where something was not finite. The host may
read the notes later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int32

GRADIENTS: Final = ("means", "quaternions", "scales", "opacities", "sh_dc", "sh_rest")
LOSS: Final = "loss"
_BITS: Final = {name: 1 << index for index, name in enumerate((*GRADIENTS, LOSS))}
LOSS_BIT: Final = _BITS[LOSS]
SEEN: Final = 1
GRADIENT: Final = 2


class StepGuard:
    """Notes about the steps of one model, on its device; nothing here waits for that.

    `flags` (2) int32: in the first a bit for each thing that was not finite (`not_finite` names
    them), in the second `SEEN` where a splat was seen and `GRADIENT` where one was not zero.

    A step: `begin`, `draw_for_training`, `l1_ssim_with_gradient`, `differentiate`, `adam_step`.
    """

    def __init__(self, device: torch.device) -> None:
        """Nothing is found yet."""
        self.flags: Int32[Tensor, "2"] = torch.zeros(2, dtype=torch.int32, device=device)

    def begin(self, *, keep: bool) -> None:
        """A step begins. With `keep` what was not finite before stays noted: nobody read it yet."""
        (self.flags[1:] if keep else self.flags).zero_()

    def note_loss(self, loss: Float[Tensor, ""]) -> None:
        """Note whether a loss that no kernel made is finite."""
        self.flags[0].bitwise_or_(_is_broken(loss) * LOSS_BIT)

    def note_seen(self, radii: Int32[Tensor, "splats 2"]) -> None:
        """Note whether a splat was seen, for a picture whose way back is not the kernels'."""
        self.flags[1].bitwise_or_((radii[:, 0] > 0).any().to(torch.int32) * SEEN)

    def look_at(self, gradients: Mapping[str, Tensor | None]) -> None:
        """Note what is in gradients, by the names of `GRADIENTS`, that no kernel looked at."""
        for name, gradient in gradients.items():
            if gradient is None:
                continue
            self.flags[0].bitwise_or_(_is_broken(gradient) * _BITS[name])
            self.flags[1].bitwise_or_((gradient != 0).any().to(torch.int32) * GRADIENT)


def _is_broken(numbers: Tensor) -> Bool[Tensor, ""]:
    """Whether a number is not finite."""
    return (numbers - numbers != 0).any()


def not_finite(flags: int) -> tuple[str, ...]:
    """What the bits of `StepGuard.flags[0]` stand for: `LOSS` first, then of `GRADIENTS`."""
    return tuple(name for name in (LOSS, *GRADIENTS) if flags & _BITS[name]) if flags else ()
