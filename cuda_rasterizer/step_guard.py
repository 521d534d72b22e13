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

from cuda_rasterizer.kernel_arguments import SplatGradients

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int32

GRADIENTS: Final = ("means", "quaternions", "scales", "opacities", "sh_dc", "sh_rest")
LOSS: Final = "loss"
_BITS: Final = {name: 1 << index for index, name in enumerate((*GRADIENTS, LOSS))}
SEEN: Final = 1
GRADIENT: Final = 2


class StepGuard:
    """Notes about the steps of one model, on its device; nothing here waits for that.

    `flags` (2) int32: in the first a bit for each thing that was not finite (`not_finite` names
    them), in the second `SEEN` where a splat was seen and `GRADIENT` where one was not zero.

    A step: `begin`, `rasterize(guard=...)`, backward, `look_at`, `adam_step(guard=...)`.
    """

    def __init__(self, device: torch.device) -> None:
        """Nothing is found yet."""
        self.flags: Int32[Tensor, "2"] = torch.zeros(2, dtype=torch.int32, device=device)
        self._known: dict[int, torch.UntypedStorage] = {}

    def begin(self, *, keep: bool) -> None:
        """A step begins. With `keep` what was not finite before stays noted: nobody read it yet."""
        (self.flags[1:] if keep else self.flags).zero_()
        self._known.clear()

    def kernel_wrote(self, gradients: SplatGradients) -> None:
        """The kernel wrote these and noted what it found in them."""
        for name in GRADIENTS:
            gradient = getattr(gradients, name)
            if gradient is not None:
                # held, so that no other tensor gets the address before `look_at`
                self._known[gradient.data_ptr()] = gradient.untyped_storage()

    def note_seen(self, radii: Int32[Tensor, "splats 2"]) -> None:
        """Note whether a splat was seen, for a rendering whose backward is not the kernels'."""
        self.flags[1].bitwise_or_((radii[:, 0] > 0).any().to(torch.int32) * SEEN)

    def look_at(self, loss: Float[Tensor, ""], gradients: Mapping[str, Tensor | None]) -> None:
        """Note what no kernel looked at, behind backward.

        That is the loss, and those `gradients` (by the names of `GRADIENTS`) that are not, to the
        byte, what the kernel wrote: the reference's, and those that something was added to.
        """
        self.flags[0].bitwise_or_(_is_broken(loss.detach()) * _BITS[LOSS])
        for name, gradient in gradients.items():
            if gradient is None or self._is_known(gradient):
                continue
            self.flags[0].bitwise_or_(_is_broken(gradient) * _BITS[name])
            self.flags[1].bitwise_or_((gradient != 0).any().to(torch.int32) * GRADIENT)
        self._known.clear()

    def _is_known(self, gradient: Tensor) -> bool:
        return gradient.data_ptr() in self._known and gradient._version == 0


def _is_broken(numbers: Tensor) -> Bool[Tensor, ""]:
    """Whether a number is not finite."""
    return (numbers - numbers != 0).any()


def not_finite(flags: int) -> tuple[str, ...]:
    """What the bits of `StepGuard.flags[0]` stand for: `LOSS` first, then of `GRADIENTS`."""
    return tuple(name for name in (LOSS, *GRADIENTS) if flags & _BITS[name])
