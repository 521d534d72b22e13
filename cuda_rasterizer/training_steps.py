"""What a training step needs beside rendering: loss, optimiser step, a picture for a screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_rasterizer import autograd, reference
from cuda_rasterizer.backends import backend_for, kernels_of, resolve_backend
from cuda_rasterizer.cpu_step import AdamCalls, StepMemory
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import AdamGroup
from cuda_rasterizer.step_guard import StepGuard

if TYPE_CHECKING:
    from jaxtyping import Float, Int32, UInt8


@dataclass(frozen=True)
class LossTerms:
    """The photometric loss (1 - w) l1 + w (1 - ssim), and its terms; each a number in a tensor.

    `squared_error` is the mean square of the difference of the render limited to [0, 1], whose
    logarithm is the PSNR. Only `loss` has a gradient.

    Attributes:
        loss: to take the gradient of.
        values: loss, l1, ssim and squared error, without a graph.
    """

    loss: Float[Tensor, ""]
    values: Float[Tensor, "4"]

    @property
    def l1(self) -> Float[Tensor, ""]:
        """The mean absolute difference."""
        return self.values[1]

    @property
    def ssim(self) -> Float[Tensor, ""]:
        """The mean similarity."""
        return self.values[2]

    @property
    def squared_error(self) -> Float[Tensor, ""]:
        """That of the limited render."""
        return self.values[3]


def l1_ssim(
    render: Float[Tensor, "height width channels"],
    target: Float[Tensor, "height width channels"] | UInt8[Tensor, "height width channels"],
    ssim_weight: float,
    backend: str = "auto",
) -> LossTerms:
    """Compares a render with a photo, both in [0, 1]; a photo of bytes is meant in 255ths.

    SSIM has a Gaussian window of 11 pixels (sigma 1.5), borders padded with zeros, each channel by
    itself (Wang et al. 2004).

    Raises:
        RasterizerError: shapes or types differ, or the target asks for a gradient.
    """
    name = backend_for(backend, "the render is", render)
    check_pictures(render, target)
    if name == "reference":
        photo = target if target.dtype == render.dtype else target.to(render.dtype) / 255
        off = render.detach().clamp(0, 1) - photo.detach()
        terms = reference.l1_ssim(render, photo, ssim_weight)
        values = [term.detach() for term in (*terms, off.square().mean())]
        return LossTerms(terms[0], torch.stack(values))
    if target.requires_grad:
        raise RasterizerError(
            "the target asks for a gradient; only the render has one here: detach the target or "
            "use backend='reference'"
        )
    pictures = render.contiguous(), target.contiguous()
    return LossTerms(*autograd.apply(autograd.L1Ssim, *pictures, ssim_weight, name))


def check_pictures(render: Tensor, target: Tensor) -> None:
    """Raise RasterizerError unless the loss can compare them."""
    is_alike = target.shape == render.shape and target.device == render.device
    if render.dim() != 3 or not is_alike or target.dtype not in (render.dtype, torch.uint8):
        raise RasterizerError(
            f"the render is {_kind(render)}, the target {_kind(target)}; expected both "
            "(height, width, channels) alike, or the target in bytes"
        )


def adam_step(
    groups: Sequence[AdamGroup],
    *,
    beta1: float,
    beta2: float,
    eps: float,
    radii: Int32[Tensor, "splats 2"] | None = None,
    guard: StepGuard | None = None,
    backend: str = "auto",
    memory: StepMemory | None = None,
) -> None:
    """One step of Adam (Kingma and Ba 2015) in place, with the numbers of `torch.optim.Adam`.

    Args:
        groups: what to move; all of one type.
        beta1: decay of the mean.
        beta2: decay of the square.
        eps: added to the root.
        radii: of a rendering. Splats that were not seen in it keep their values and their moments;
            None moves every row.
        guard: of the step: nothing moves where it found something that is not finite, or where no
            splat was seen. The host does not wait for that.
        backend: "auto", "cuda", "cpu" or "reference".
        memory: of the step that made the gradients.

    Raises:
        RasterizerError: shapes or types differ, or what is changed is not contiguous.
    """
    if not groups:
        resolve_backend(backend)
        return
    flags, constants = None if guard is None else guard.flags, (beta1, beta2, eps)
    kept = None if memory is None else memory.adam
    if kept is not None and kept.fits(groups, constants, radii, flags):
        kept.run(groups)
        return
    name = backend_for(backend, "the parameters are", groups[0].parameter)
    for group in groups:
        _check_group(group, groups[0].parameter, radii)
    if name == "reference":
        _reference_adam(groups, constants, radii, flags)
        return
    for group in groups:
        _require_contiguous(group)
    ready = [group if group.gradient.is_contiguous() else _with_rows(group) for group in groups]
    seen = None if radii is None else radii.contiguous()
    if memory is not None and memory.picture is not None:
        memory.adam = AdamCalls(ready, constants, seen, flags)
    kernels_of(name).adam_step(ready, beta1=beta1, beta2=beta2, eps=eps, radii=seen, flags=flags)


@torch.no_grad()
def _reference_adam(
    groups: Sequence[AdamGroup],
    betas_and_eps: tuple[float, float, float],
    radii: Tensor | None,
    flags: Tensor | None,
) -> None:
    beta1, beta2, eps = betas_and_eps
    rows = None if radii is None else (radii[:, 0] > 0).nonzero().squeeze(1)
    for group in groups:
        reference.adam_step(
            *(group.parameter, group.gradient, group.exp_avg, group.exp_avg_sq),
            lr=group.lr,
            step=group.step,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            rows=rows,
            flags=flags,
        )


def _check_group(group: AdamGroup, first: Tensor, radii: Tensor | None) -> None:
    parameter = group.parameter
    if group.step < 1:
        raise RasterizerError(f"step is {group.step}; Adam's steps count from 1")
    if (parameter.dtype, parameter.device) != (first.dtype, first.device):
        raise RasterizerError(
            f"a parameter is {parameter.dtype} on {parameter.device}, the first of them "
            f"{first.dtype} on {first.device}"
        )
    kind = parameter.shape, parameter.dtype, parameter.device
    others = (
        ("gradient", group.gradient),
        ("mean", group.exp_avg),
        ("square", group.exp_avg_sq),
    )
    for label, tensor in others:
        if (tensor.shape, tensor.dtype, tensor.device) != kind:
            raise RasterizerError(
                f"the {label} is {_kind(tensor)}; expected {_kind(parameter)} as the parameter is"
            )
    if radii is None:
        return
    rows = parameter.shape[0] if parameter.dim() else 1
    expected = f"({rows}, 2) torch.int32 on {first.device}"
    if _kind(radii) != expected:
        raise RasterizerError(
            f"the radii are {_kind(radii)}; expected {expected} for the rows of the parameter"
        )


def _with_rows(group: AdamGroup) -> AdamGroup:
    """The group with its gradient copied into rows, as the kernels read it."""
    return dataclasses.replace(group, gradient=group.gradient.contiguous())


def _require_contiguous(group: AdamGroup) -> None:
    changed = (
        ("parameter", group.parameter),
        ("mean", group.exp_avg),
        ("square", group.exp_avg_sq),
    )
    for label, tensor in changed:
        if not tensor.is_contiguous():
            raise RasterizerError(f"the {label} is not contiguous, and it is changed in place")


@torch.no_grad()
def to_rgba8(
    color: Float[Tensor, "height width 3"], backend: str = "auto"
) -> UInt8[Tensor, "height width 4"]:
    """The picture as opaque bytes: limited to [0, 1], rounded to nearest, NaN black.

    Raises:
        RasterizerError: not three channels.
    """
    name = backend_for(backend, "the picture is", color)
    if color.dim() != 3 or color.shape[2] != 3:
        raise RasterizerError(f"the picture is {tuple(color.shape)}; expected (height, width, 3)")
    if name == "reference":
        return reference.to_rgba8(color)
    return kernels_of(name).to_rgba8(color.contiguous())


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype} on {tensor.device}"
