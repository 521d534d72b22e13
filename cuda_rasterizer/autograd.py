"""The two differentiable steps of the fast backends: projection, then compositing.

`means_2d` is the tensor between them, so that its gradient exists (`retain_grad`), which
densification lives on. All that a backward needs belongs to its own call; nothing is kept where no
gradient is wanted, and no work is done for gradients that nobody asked for. A second derivative is
the reference's job.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from cuda_rasterizer.backends import kernels_of
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.debug import empty_like
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import BlendGradients, SplatGradients, SplatInputs, View
from cuda_rasterizer.projected import Projected


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """`function.apply`, which torch leaves without types."""
    return function.apply(*arguments)  # type: ignore[no-untyped-call]


class _RefuseSecondDerivative(torch.autograd.Function):
    """Passes gradients on; where somebody differentiates them again, says why that cannot be."""

    @staticmethod
    def forward(_ctx: FunctionCtx, count: int, *tensors: Tensor | None) -> Any:
        return tuple(None if t is None else t.view_as(t) for t in tensors[:count])

    @staticmethod
    def backward(_ctx: FunctionCtx, *_gradients: Tensor | None) -> Any:
        raise RasterizerError(
            "the fast backends have no second derivative; use backend='reference' for it"
        )


def _final(
    gradients: tuple[Tensor | None, ...], sources: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients as they are; tied to their sources by a refusal if a graph is being built."""
    if not torch.is_grad_enabled():
        return gradients
    refused: tuple[Tensor | None, ...] = apply(
        _RefuseSecondDerivative, len(gradients), *gradients, *sources
    )
    return refused


def _empty_like_if(wanted: bool, tensor: Tensor | None) -> Tensor | None:
    if not wanted or tensor is None:
        return None
    return empty_like(tensor)


class Project(torch.autograd.Function):
    """From splats to `Projected`, as a tuple of its fields; colours are None with features.

    Gradients: means, quaternions, scales, opacities, SH and `world_to_camera`. With features the
    colours need no projection; they are only looked at for numbers that are not finite.
    """

    @staticmethod
    def forward(
        ctx: Any,
        means: Tensor,
        quaternions: Tensor,
        scales: Tensor,
        opacities: Tensor,
        sh_dc: Tensor | None,
        sh_rest: Tensor | None,
        features: Tensor | None,
        world_to_camera: Tensor,
        intrinsics: Tensor,
        view: View,
        backend: str,
    ) -> tuple[Tensor | None, ...]:
        """Projects."""
        tensors = (means, quaternions, scales, opacities, sh_dc, sh_rest, features)
        inputs = SplatInputs(*tensors, world_to_camera, intrinsics)
        projected = kernels_of(backend).project(inputs, view)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*_constant_outputs(ctx.needs_input_grad, projected, view))
        if any(ctx.needs_input_grad):
            ctx.view, ctx.backend = view, backend
            ctx.save_for_backward(*tensors, world_to_camera, intrinsics, projected.radii)
        colors = projected.colors if features is None else None
        return (
            projected.means_2d,
            projected.conics,
            projected.depths,
            projected.opacities,
            colors,
            projected.radii,
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Gradients of the inputs, in their order."""
        *saved, radii = ctx.saved_tensors
        with torch.no_grad():
            inputs = SplatInputs(*saved)
            needs = ctx.needs_input_grad
            wanted = SplatGradients(
                means=_empty_like_if(needs[0], inputs.means),
                quaternions=_empty_like_if(needs[1], inputs.quaternions),
                scales=_empty_like_if(needs[2], inputs.scales),
                opacities=_empty_like_if(needs[3], inputs.opacities),
                sh_dc=_empty_like_if(needs[4], inputs.sh_dc),
                sh_rest=_empty_like_if(needs[5], inputs.sh_rest),
                world_to_camera=_empty_like_if(needs[7], inputs.world_to_camera),
            )
            kernels_of(ctx.backend).project_backward(inputs, ctx.view, radii, gradients[:5], wanted)
        results = (
            wanted.means,
            wanted.quaternions,
            wanted.scales,
            wanted.opacities,
            wanted.sh_dc,
            wanted.sh_rest,
            None,
            wanted.world_to_camera,
            None,
            None,
            None,
        )
        return _final(results, (*saved, *gradients))


def _constant_outputs(
    needs: tuple[bool, ...], projected: Projected, view: View
) -> tuple[Tensor, ...]:
    """Outputs that no input with a gradient can change: compositing skips their gradients."""
    means, quaternions, scales, opacities, sh_dc, sh_rest, _, pose, *_ = needs
    moved = means or pose
    reshaped = moved or quaternions or scales
    colored = sh_dc or sh_rest or (moved and view.sh_degree > 0)
    varying = (
        (projected.means_2d, moved),
        (projected.depths, moved),
        (projected.conics, reshaped),
        (projected.opacities, opacities or (reshaped and view.antialiased)),
        (projected.colors, colored),
        (projected.radii, False),
    )
    return tuple(output for output, varies in varying if not varies)


class Blend(torch.autograd.Function):
    """From projected splats to (color, alpha, depth); depth is None without `with_depth`.

    Gradients: means_2d, conics, depths, opacities, colors and background. `absolute_gradient`,
    where given, is a tensor (n, 2) that backward fills with the sums of the absolute per-pixel
    gradients of `means_2d`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        means_2d: Tensor,
        conics: Tensor,
        depths: Tensor,
        opacities: Tensor,
        colors: Tensor,
        background: Tensor | None,
        radii: Tensor,
        size: tuple[int, int],
        cutoffs: Cutoffs,
        with_depth: bool,
        absolute_gradient: Tensor | None,
        backend: str,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Composites."""
        width, height = size
        projected = Projected(means_2d, conics, depths, opacities, colors, radii)
        wanted = any(ctx.needs_input_grad)
        color, alpha, depth, saved = kernels_of(backend).blend(
            *(projected, background, width, height, cutoffs),
            with_depth=with_depth,
            for_backward=wanted,
        )
        ctx.set_materialize_grads(False)
        if saved is not None:
            ctx.cutoffs, ctx.backend = cutoffs, backend
            ctx.absolute_gradient = absolute_gradient
            ctx.save_for_backward(means_2d, conics, depths, opacities, colors, background, *saved)
        return color, alpha, depth

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Gradients of the inputs, in their order."""
        sources, saved = ctx.saved_tensors[:6], ctx.saved_tensors[6:]
        means_2d, conics, depths, opacities, colors, background = sources
        grad_color, grad_alpha, grad_depth = gradients
        with torch.no_grad():
            needs = ctx.needs_input_grad
            wanted = BlendGradients(
                means_2d=_empty_like_if(needs[0], means_2d),
                conics=_empty_like_if(needs[1], conics),
                depths=_empty_like_if(needs[2] and grad_depth is not None, depths),
                opacities=_empty_like_if(needs[3], opacities),
                colors=_empty_like_if(needs[4] and grad_color is not None, colors),
                background=_empty_like_if(needs[5] and grad_color is not None, background),
            )
            kernels_of(ctx.backend).blend_backward(
                saved,
                colors,
                background,
                ctx.cutoffs,
                (grad_color, grad_alpha, grad_depth),
                wanted,
                ctx.absolute_gradient,
            )
        results = (
            wanted.means_2d,
            wanted.conics,
            wanted.depths,
            wanted.opacities,
            wanted.colors,
            wanted.background,
        )
        return _final((*results, *(None,) * 6), (*sources, *gradients))


class L1Ssim(torch.autograd.Function):
    """The loss of a render and a target, which has a gradient by the render, and all its terms."""

    @staticmethod
    def forward(
        ctx: Any, render: Tensor, target: Tensor, ssim_weight: float, backend: str
    ) -> tuple[Tensor, Tensor]:
        """Compares; where a gradient will be wanted, keeps what it takes."""
        terms, saved = kernels_of(backend).l1_ssim(
            render, target, ssim_weight, for_backward=ctx.needs_input_grad[0]
        )
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(terms)
        if saved is not None:
            ctx.ssim_weight, ctx.backend = ssim_weight, backend
            ctx.save_for_backward(render, *saved)
        return terms[0].clone(), terms

    @staticmethod
    def backward(
        ctx: Any, grad_loss: Tensor | None, *_: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Gradient of the render."""
        if grad_loss is None:
            return None, None, None, None
        render, *saved = ctx.saved_tensors
        with torch.no_grad():
            result = kernels_of(ctx.backend).l1_ssim_backward(saved, ctx.ssim_weight, grad_loss)
        return _final((result, None, None, None), (render, grad_loss))
