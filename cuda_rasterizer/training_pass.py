"""Forward and backward of a training step, straight through the kernels.

Autograd costs a small step a tenth of its time for a graph that is always the same one. Here the
same kernels run in the same order on the same numbers, so that gradients have the very bits of
`rasterize` and `l1_ssim` with autograd; only the reference, which has no kernels, still uses it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from cuda_rasterizer.backends import KernelBackend, backend_for, kernels_of
from cuda_rasterizer.cpu_loss import Loss
from cuda_rasterizer.cpu_step import CpuPicture, StepMemory
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import (
    SplatGradients,
    SplatInputs,
    View,
    empty_blend_gradients,
    empty_splat_gradients,
)
from cuda_rasterizer.rasterize import rasterize
from cuda_rasterizer.step_guard import GRADIENTS, StepGuard
from cuda_rasterizer.training_steps import check_pictures, l1_ssim

if TYPE_CHECKING:
    from jaxtyping import Float, Int32, UInt8


_CPU = ("auto", "cpu")
_MATRICES = {"world_to_camera": 4, "intrinsics": 3}


class TrainingPicture(Protocol):
    """A picture, and the way back from it to the splats.

    Attributes:
        color: SH colours over the background, without a graph.
        radii: half of each splat's box per axis in whole pixels; 0 where it is not seen.
    """

    color: Float[Tensor, "height width 3"]
    radii: Int32[Tensor, "splats 2"]

    def differentiate(
        self, grad_color: Float[Tensor, "height width 3"]
    ) -> tuple[SplatGradients, Float[Tensor, "splats 2"] | None]:
        """Gradients of the splats, and of their centres in pixels; once only.

        Notes in the guard what it found. None stands for a gradient that is not wanted; the
        reference also has none where no splat is seen.
        """
        ...


def draw_for_training(
    splats: SplatInputs,
    view: View,
    background: Float[Tensor, "3"],
    *,
    rest_learns: bool,
    guard: StepGuard,
    backend: str,
    memory: StepMemory | None = None,
) -> TrainingPicture:
    """Draws raw splats with SH colours, as `rasterize` does, and keeps what the way back takes.

    Args:
        splats: raw, contiguous, of one type and device, without features; `sh_rest` may be None.
        view: with `raw`.
        background: on their device.
        rest_learns: whether `sh_rest` gets a gradient.
        guard: takes note of what is found.
        backend: as `rasterize` has it.
        memory: of the step before; this one overwrites what that one made.

    Raises:
        RasterizerError: the backend cannot be used here, or the splats are not as said above.
    """
    picture = None if memory is None or backend not in _CPU else memory.picture
    if picture is not None and picture.fits(splats, view, rest_learns, guard):
        _check_rows(splats, _MATRICES)
    else:
        del picture
        name = backend_for(backend, "means are", splats.means)
        _check(splats, view)
        if name == "reference":
            return ReferencePicture(splats, view, background, rest_learns, guard)
        if name != "cpu":
            return KernelPicture(splats, view, background, rest_learns, guard, name)
        if memory is not None:
            memory.clear()
        picture = CpuPicture(splats, view, rest_learns, guard)
        if memory is not None:
            memory.picture = picture
    picture.draw(splats, view, background)
    return picture


def l1_ssim_with_gradient(
    render: Float[Tensor, "height width channels"],
    target: Float[Tensor, "height width channels"] | UInt8[Tensor, "height width channels"],
    ssim_weight: float,
    guard: StepGuard,
    backend: str,
    memory: StepMemory | None = None,
) -> tuple[Float[Tensor, "4"], Float[Tensor, "height width channels"]]:
    """The values of `LossTerms`, and the gradient of the loss by the render.

    Notes in the guard whether the loss is finite; `memory` is that of the render, if it has one.
    Raises as `l1_ssim`.
    """
    check_pictures(render, target)
    kept = None if memory is None else memory.picture
    if memory is None or kept is None or kept.color is not render:
        name = backend_for(backend, "the render is", render)
        if name == "reference":
            values, gradient = _reference_loss(render, target, ssim_weight)
            guard.note_loss(values[0])
            return values, gradient
        if name != "cpu":
            return _kernel_loss(kernels_of(name), render, target, ssim_weight, guard)
        loss = Loss(render, for_backward=True)
    elif memory.loss is None:
        loss = memory.loss = Loss(render, for_backward=True)
    else:
        loss = memory.loss
    values = loss.run(render.contiguous(), target.contiguous(), ssim_weight, guard.flags)
    assert loss.gradient is not None
    return values, loss.gradient


@torch.no_grad()
def _kernel_loss(
    kernels: KernelBackend, render: Tensor, target: Tensor, ssim_weight: float, guard: StepGuard
) -> tuple[Tensor, Tensor]:
    values, saved = kernels.l1_ssim(
        *(render.contiguous(), target.contiguous(), ssim_weight),
        for_backward=True,
        flags=guard.flags,
    )
    assert saved is not None
    one = _one(render.dtype, render.device)
    return values, kernels.l1_ssim_backward(saved, ssim_weight, one)


@functools.lru_cache(maxsize=4)
def _one(dtype: torch.dtype, device: torch.device) -> Tensor:
    """The gradient of the loss by itself; nobody writes it."""
    return torch.ones((), dtype=dtype, device=device)


def _reference_loss(render: Tensor, target: Tensor, ssim_weight: float) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = render.detach().requires_grad_()
        terms = l1_ssim(leaf, target, ssim_weight, "reference")
        (gradient,) = torch.autograd.grad(terms.loss, leaf)
    return terms.values, gradient


def _check(splats: SplatInputs, view: View) -> None:
    if splats.features is not None or splats.sh_dc is None or not view.raw:
        raise RasterizerError("a training step draws raw splats with spherical harmonics")
    _check_rows(splats, (*GRADIENTS, *_MATRICES))


def _check_rows(splats: SplatInputs, names: Iterable[str]) -> None:
    count, kind = splats.means.shape[0], (splats.means.dtype, splats.means.device)
    for name in names:
        tensor = getattr(splats, name)
        if tensor is None:
            continue
        rows = _MATRICES.get(name, count)
        if tensor.shape[0] != rows or (tensor.dtype, tensor.device) != kind:
            raise RasterizerError(
                f"{name} are {tuple(tensor.shape)} {tensor.dtype} on {tensor.device}; expected "
                f"{rows} rows of {kind[0]} on {kind[1]} as the means are"
            )
        if not tensor.is_contiguous():
            raise RasterizerError(f"{name} are not contiguous; the kernels read whole rows")


class KernelPicture:
    """By the kernels of a backend that needs no memory kept: CUDA's, whose host runs ahead."""

    def __init__(
        self,
        splats: SplatInputs,
        view: View,
        background: Tensor,
        rest_learns: bool,
        guard: StepGuard,
        backend: str,
    ) -> None:
        self._splats, self._view, self._background = splats, view, background
        self._rest_learns, self._guard = rest_learns, guard
        self._kernels = kernels_of(backend)
        with torch.no_grad():
            self._projected = self._kernels.project(splats, view)
            self.color, _, _, self._saved = self._kernels.blend(
                *(self._projected, background, view.width, view.height, view.cutoffs),
                with_depth=False,
                for_backward=True,
            )
        self.radii = self._projected.radii

    @torch.no_grad()
    def differentiate(self, grad_color: Tensor) -> tuple[SplatGradients, Tensor]:
        """See `TrainingPicture`."""
        projected, splats, saved = self._projected, self._splats, self._saved
        assert saved is not None
        self._saved = None  # the largest of it goes before gradients are made
        flat = empty_blend_gradients(projected)
        self._kernels.blend_backward(
            *(saved, projected.colors, self._background, self._view.cutoffs),
            *((grad_color, None, None), flat, None),
        )
        found = empty_splat_gradients(splats, self._rest_learns)
        incoming = (flat.means_2d, flat.conics, None, flat.opacities, flat.colors)
        self._kernels.project_backward(
            *(splats, self._view, self.radii, incoming, found, self._guard.flags)
        )
        assert flat.means_2d is not None
        return found, flat.means_2d


class ReferencePicture:
    """By plain torch and its autograd."""

    def __init__(
        self,
        splats: SplatInputs,
        view: View,
        background: Tensor,
        rest_learns: bool,
        guard: StepGuard,
    ) -> None:
        self._guard = guard
        leaves = {
            name: tensor.detach().requires_grad_(name != "sh_rest" or rest_learns)
            for name in GRADIENTS
            if (tensor := getattr(splats, name)) is not None
        }
        sh = leaves["sh_dc"], leaves.get("sh_rest", leaves["sh_dc"][:, :0])
        with torch.enable_grad():
            self._rendering = rasterize(
                *(leaves[name] for name in ("means", "quaternions", "scales", "opacities")),
                world_to_camera=splats.world_to_camera,
                intrinsics=splats.intrinsics,
                width=view.width,
                height=view.height,
                sh=sh,
                sh_degree=view.sh_degree,
                background=background,
                cutoffs=view.cutoffs,
                antialiased=view.antialiased,
                raw=True,
                depth=False,
                backend="reference",
            )
        self._leaves = leaves
        self.color, self.radii = self._rendering.color.detach(), self._rendering.radii

    def differentiate(self, grad_color: Tensor) -> tuple[SplatGradients, Tensor | None]:
        """See `TrainingPicture`."""
        drawn, means_2d = self._rendering.color, self._rendering.means_2d
        if drawn.requires_grad:  # else no splat is seen
            if means_2d.requires_grad:
                means_2d.retain_grad()
            torch.autograd.backward(drawn, grad_color)
        gradients = {name: leaf.grad for name, leaf in self._leaves.items()}
        self._guard.note_seen(self.radii)
        self._guard.look_at(gradients)
        found = SplatGradients(
            **{name: gradients.get(name) for name in GRADIENTS}, world_to_camera=None
        )
        return found, means_2d.grad
