"""What a training step needs beside rendering: loss, optimiser step, a picture for a screen."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from cuda_rasterizer import autograd, cpu_backend, reference
from cuda_rasterizer.backends import resolve_backend
from cuda_rasterizer.errors import RasterizerError


@dataclass(frozen=True)
class LossTerms:
    """The photometric loss (1 - w) l1 + w (1 - ssim), and its terms; each a number in a tensor.

    With the fast backends only `loss` has a gradient.
    """

    loss: Float[Tensor, ""]
    l1: Float[Tensor, ""]
    ssim: Float[Tensor, ""]


def l1_ssim(
    render: Float[Tensor, "height width channels"],
    target: Float[Tensor, "height width channels"],
    ssim_weight: float,
    backend: str = "auto",
) -> LossTerms:
    """Compares a render with a photo, both in [0, 1].

    SSIM has a Gaussian window of 11 pixels (sigma 1.5), borders padded with zeros, each channel by
    itself (Wang et al. 2004).

    Raises:
        RasterizerError: shapes or types differ, or the target asks for a gradient.
    """
    name = resolve_backend(backend)
    if render.dim() != 3 or render.shape != target.shape or render.dtype != target.dtype:
        raise RasterizerError(
            f"the render is {tuple(render.shape)} {render.dtype}, the target "
            f"{tuple(target.shape)} {target.dtype}; expected both (height, width, channels) alike"
        )
    if name == "reference":
        return LossTerms(*reference.l1_ssim(render, target, ssim_weight))
    _require_kernel_dtype("the render", render)
    if target.requires_grad:
        raise RasterizerError(
            "the target asks for a gradient; only the render has one here: detach the target or "
            "use backend='reference'"
        )
    return LossTerms(
        *autograd.apply(autograd.L1Ssim, render.contiguous(), target.contiguous(), ssim_weight)
    )


@torch.no_grad()
def adam_step(
    parameter: Tensor,
    gradient: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    *,
    lr: float,
    step: int,
    beta1: float,
    beta2: float,
    eps: float,
    backend: str = "auto",
) -> None:
    """One step of Adam (Kingma and Ba 2015) in place, with the numbers of `torch.optim.Adam`.

    Args:
        parameter: changed.
        gradient: of the loss by the parameter.
        exp_avg: running mean of the gradient, changed.
        exp_avg_sq: running mean of its square, changed.
        lr: learning rate.
        step: of this parameter, counted from 1.
        beta1: decay of the mean.
        beta2: decay of the square.
        eps: added to the root.
        backend: "auto", "cpu" or "reference".

    Raises:
        RasterizerError: shapes or types differ, or what is changed is not contiguous.
    """
    name = resolve_backend(backend)
    if step < 1:
        raise RasterizerError(f"step is {step}; Adam's steps count from 1")
    for label, tensor in (("gradient", gradient), ("mean", exp_avg), ("square", exp_avg_sq)):
        if tensor.shape != parameter.shape or tensor.dtype != parameter.dtype:
            raise RasterizerError(
                f"the {label} is {tuple(tensor.shape)} {tensor.dtype}; expected "
                f"{tuple(parameter.shape)} {parameter.dtype} as the parameter is"
            )
    if name == "reference":
        reference.adam_step(
            *(parameter, gradient, exp_avg, exp_avg_sq),
            lr=lr,
            step=step,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
        )
        return
    _require_kernel_dtype("the parameter", parameter)
    for label, tensor in (("parameter", parameter), ("mean", exp_avg), ("square", exp_avg_sq)):
        if not tensor.is_contiguous():
            raise RasterizerError(f"the {label} is not contiguous, and it is changed in place")
    cpu_backend.adam_step(
        *(parameter, gradient.contiguous(), exp_avg, exp_avg_sq),
        lr=lr,
        step=step,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
    )


@torch.no_grad()
def to_rgba8(
    color: Float[Tensor, "height width 3"], backend: str = "auto"
) -> UInt8[Tensor, "height width 4"]:
    """The picture as opaque bytes: limited to [0, 1], rounded to nearest, NaN black.

    Raises:
        RasterizerError: not three channels.
    """
    name = resolve_backend(backend)
    if color.dim() != 3 or color.shape[2] != 3:
        raise RasterizerError(f"the picture is {tuple(color.shape)}; expected (height, width, 3)")
    if name == "reference":
        return reference.to_rgba8(color)
    _require_kernel_dtype("the picture", color)
    return cpu_backend.to_rgba8(color.contiguous())


def _require_kernel_dtype(label: str, tensor: Tensor) -> None:
    if tensor.dtype not in (torch.float32, torch.float64) or tensor.device.type != "cpu":
        raise RasterizerError(
            f"{label} is {tensor.dtype} on {tensor.device}; backend 'cpu' takes torch.float32 or "
            "torch.float64 on the CPU"
        )
