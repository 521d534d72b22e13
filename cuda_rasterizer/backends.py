"""Which backends there are, which of them can run here, and what the fast ones have in common."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import torch
from torch import Tensor

from cuda_rasterizer import native
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import (
    AdamGroup,
    BlendGradients,
    SplatGradients,
    SplatInputs,
    View,
)
from cuda_rasterizer.projected import Projected

BACKENDS: Final = ("reference", "cpu", "cuda")
_PREFERRED: Final = ("cuda", "cpu", "reference")
_SET_NAMES: Final = {"baseline": "SSE2", "avx2": "AVX2", "avx512": "AVX-512"}


class KernelBackend(Protocol):
    """What a fast backend does, on checked and contiguous tensors of its own device and types.

    Allocates what it returns. What a backward needs comes back as a tuple of tensors, which is
    handed in again and means nothing to anybody else. Nothing here knows of autograd.
    """

    def project(self, inputs: SplatInputs, view: View) -> Projected:
        """Splats onto the image plane; see `projected.py` for the rules."""
        ...

    def project_backward(
        self,
        inputs: SplatInputs,
        view: View,
        radii: Tensor,
        gradients: Sequence[Tensor | None],
        wanted: SplatGradients,
        flags: Tensor | None = None,
    ) -> None:
        """Fills `wanted` from the gradients of (means_2d, conics, depths, opacities, colors)."""
        ...

    def blend(
        self,
        projected: Projected,
        background: Tensor | None,
        width: int,
        height: int,
        cutoffs: Cutoffs,
        *,
        with_depth: bool,
        for_backward: bool,
    ) -> tuple[Tensor, Tensor, Tensor | None, tuple[Tensor | None, ...] | None]:
        """Colour (h, w, c), alpha and depth (h, w), what backward needs; if they are asked for."""
        ...

    def blend_backward(
        self,
        saved: Sequence[Tensor | None],
        colors: Tensor,
        background: Tensor | None,
        cutoffs: Cutoffs,
        gradients: tuple[Tensor | None, Tensor | None, Tensor | None],
        wanted: BlendGradients,
        absolute_gradient: Tensor | None,
    ) -> None:
        """Fills `wanted` from the gradients of (color, alpha, depth)."""
        ...

    def l1_ssim(
        self,
        render: Tensor,
        target: Tensor,
        ssim_weight: float,
        *,
        for_backward: bool,
        flags: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        """The terms of the loss (4), in the order of `LossTerms`, and what backward needs.

        Adds to `flags` (2) int32 whether the loss is finite (`step_guard`), unless it is None.
        """
        ...

    def l1_ssim_backward(
        self, saved: Sequence[Tensor], ssim_weight: float, grad_loss: Tensor
    ) -> Tensor:
        """The gradient by the render."""
        ...

    def adam_step(
        self,
        groups: Sequence[AdamGroup],
        *,
        beta1: float,
        beta2: float,
        eps: float,
        radii: Tensor | None,
        flags: Tensor | None = None,
    ) -> None:
        """One step of Adam in place on contiguous tensors of one type; `radii` (n, 2) or None.

        Nothing moves where `flags` (2) say that something was not finite or nothing was seen.
        """
        ...

    def to_rgba8(self, color: Tensor) -> Tensor:
        """Bytes (h, w, 4) of a picture (h, w, 3)."""
        ...


@functools.cache
def kernels_of(name: str) -> KernelBackend:
    """The functions of "cpu" or "cuda"; loaded when they are first asked for."""
    if name == "cuda":
        from cuda_rasterizer import cuda_backend

        return cuda_backend
    from cuda_rasterizer import cpu_backend

    return cpu_backend


def _cpu_reason() -> str | None:
    try:
        native.load_library()
    except native.NativeUnavailableError as error:
        return str(error)
    return None


def _cuda_reason(gpu: int | None = None) -> str | None:
    """Without a torch that can use a GPU, nothing of cuda-bindings is even looked for."""
    from cuda_rasterizer.cuda import availability, launches

    if launches.installed_launcher() is not None:
        return None
    return availability.unavailable_reason(gpu)


def _reason(name: str, gpu: int | None = None) -> str | None:
    """Why a backend cannot be used, or None."""
    if name == "cuda":
        return _cuda_reason(gpu)
    return _cpu_reason() if name == "cpu" else None


def backend_status() -> dict[str, str | None]:
    """Why each backend cannot be used here, or None where it can."""
    return {name: _reason(name) for name in BACKENDS}


def resolve_backend(name: str, gpu: int | None = None) -> str:
    """The backend that `name` stands for; "auto" is the fastest that can run.

    `gpu` is the one to draw on, by torch's number; None: the one in use.

    Raises:
        RasterizerError: there is no such backend, or it cannot run here; the message says why.
    """
    if name == "auto":
        return next(candidate for candidate in _PREFERRED if _reason(candidate, gpu) is None)
    if name not in BACKENDS:
        raise RasterizerError(
            f"there is no backend {name!r}; choose auto or one of {', '.join(BACKENDS)}"
        )
    reason = _reason(name, gpu)
    if reason is not None:
        raise RasterizerError(f"backend {name!r} cannot be used here: {reason}")
    return name


def backend_for(name: str, label: str, tensor: Tensor) -> str:
    """As `resolve_backend`, for a tensor: "auto" is the fastest on the tensor's own device.

    Raises:
        RasterizerError: also when the tensor is not where the backend draws, or of another type.
            A tensor on a GPU is never drawn by another backend than "cuda" unless that is named.
    """
    if name == "auto" and tensor.is_cuda:
        name = "cuda"
    elif name == "auto":
        name = "cpu" if _cpu_reason() is None else "reference"
    name = resolve_backend(name, tensor.device.index if tensor.is_cuda else None)
    if name == "cpu":
        _require(name, label, tensor, "cpu", (torch.float32, torch.float64))
    elif name == "cuda":
        _require(name, label, tensor, _cuda_device_type(), (torch.float32,))
    return name


def _require(
    name: str, label: str, tensor: Tensor, device_type: str, dtypes: tuple[torch.dtype, ...]
) -> None:
    if tensor.device.type == device_type and tensor.dtype in dtypes:
        return
    types = " or ".join(str(dtype) for dtype in dtypes)
    raise RasterizerError(
        f"{label} {tensor.dtype} on {tensor.device}; backend {name!r} takes {types} on "
        f"{device_type}"
    )


def _cuda_device_type() -> str:
    from cuda_rasterizer.cuda import launches

    launcher = launches.installed_launcher()
    return "cuda" if launcher is None else launcher.device_type


def prepare(backend: str, progress: Callable[[str, int, int], None] | None = None) -> None:
    """Does now what the first picture would otherwise wait for: on CUDA the kernels are compiled.

    Seconds the first time on a GPU, then they come out of the user's cache. `progress` is told what
    was compiled, how many are done and of how many; nothing when nothing is to be compiled.

    Raises:
        RasterizerError: the backend cannot be used here, or a kernel does not compile.
    """
    if resolve_backend(backend) != "cuda":
        return
    from cuda_rasterizer.cuda import launches
    from cuda_rasterizer.cuda.launcher import launcher_of_gpu

    if launches.installed_launcher() is None:
        launcher_of_gpu(torch.cuda.current_device()).prepare(progress)


def set_threads(count: int) -> None:
    """Sets how many threads the CPU kernels use, the caller's own included; 0 takes every core.

    Results do not depend on it. Without the kernels there is nothing to set.

    Raises:
        RasterizerError: below 0, or the system gives fewer.
    """
    if count < 0:
        raise RasterizerError(f"asked for {count} threads; expected 1 or more, or 0 for every core")
    if _cpu_reason() is None:
        native.set_thread_count(count or available_cores())


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Threads of the CPU kernels; 1 where they are not built."""
    return native.thread_count() if _cpu_reason() is None else 1


def describe(backend: str) -> str:
    """One line for people, such as "CPU, 2 threads, AVX2" or "NVIDIA GeForce RTX 4090, sm_89"."""
    name = resolve_backend(backend)
    if name == "reference":
        return "reference (plain torch, slow)"
    if name == "cuda":
        return _describe_gpu()
    threads = native.thread_count()
    instruction_set = _SET_NAMES[native.instruction_set()]
    return f"CPU, {threads} thread{'s' if threads != 1 else ''}, {instruction_set}"


def _describe_gpu() -> str:
    from cuda_rasterizer.cuda import launches

    launcher = launches.installed_launcher()
    if launcher is not None:
        return f"CUDA kernels run by {type(launcher).__name__} on the {launcher.device_type}"
    major, minor = torch.cuda.get_device_capability()
    return f"{torch.cuda.get_device_name()}, sm_{major}{minor}"
