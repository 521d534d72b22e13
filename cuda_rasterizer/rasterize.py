"""Draws splats: the public function, and the dispatch to a backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_rasterizer import autograd, reference
from cuda_rasterizer.backends import backend_for
from cuda_rasterizer.cutoffs import CLASSIC, Cutoffs
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import View
from cuda_rasterizer.projected import Projected
from cuda_rasterizer.splat_arguments import (
    Splats,
    checked_splats,
    degree_in_use,
    require_ceiling_below_one,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int32


@dataclass(frozen=True)
class Rendering:
    """A picture, and what densification wants to know of how it came about.

    Attributes:
        color: features or SH colours over the background.
        alpha: how much of each pixel the splats cover.
        depth: sum of camera z weighted as the colours are; divide by alpha for a mean. None with
            `depth=False`.
        radii: half of each splat's box per axis in whole pixels; 0 where it is not seen.
        means_2d: splat centres in pixels; `retain_grad()` before backward keeps its gradient.
        absolute_gradient: with `absolute_gradient=True`, zeros until backward fills it with the sum
            over pixels of |gradient of means_2d|, by component.
        inverse_depth: with `inverse_depth=True`, the sum of 1 / z weighted as the colours are.
    """

    color: Float[Tensor, "height width channels"]
    alpha: Float[Tensor, "height width"]
    depth: Float[Tensor, "height width"] | None
    radii: Int32[Tensor, "splats 2"]
    means_2d: Float[Tensor, "splats 2"]
    absolute_gradient: Float[Tensor, "splats 2"] | None = None
    inverse_depth: Float[Tensor, "height width"] | None = None


def rasterize(
    means: Float[Tensor, "splats 3"],
    quaternions: Float[Tensor, "splats 4"] | None,
    scales: Float[Tensor, "splats 3"] | None,
    opacities: Float[Tensor, "splats"],
    *,
    covariances: Float[Tensor, "splats 3 3"] | None = None,
    world_to_camera: Float[Tensor, "4 4"],
    intrinsics: Float[Tensor, "3 3"],
    width: int,
    height: int,
    features: Float[Tensor, "splats channels"] | None = None,
    sh: Float[Tensor, "splats coefficients 3"] | tuple[Tensor, Tensor] | None = None,
    sh_degree: int | None = None,
    background: Tensor | None = None,
    cutoffs: Cutoffs = CLASSIC,
    antialiased: bool = False,
    raw: bool = False,
    depth: bool = True,
    absolute_gradient: bool = False,
    inverse_depth: bool = False,
    backend: str = "auto",
) -> Rendering:
    """Draws splats as a pinhole camera sees them (Kerbl et al. 2023).

    Args:
        means: centres in world units. Its dtype, float32 or float64, is that of the whole call.
        quaternions: (w, x, y, z) of any norm.
        scales: standard deviations along the splat's axes; their logarithms with `raw`.
        opacities: between 0 and 1; their logits with `raw`.
        covariances: in the world, symmetric, in the place of quaternions and scales, which are then
            None. They are projected by plain torch, which is slower, whatever the backend.
        world_to_camera: rigid; camera axes are x right, y down, z forward.
        intrinsics: pixels; fx, fy, cx, cy are read. A skew is refused where it can be read without
            waiting for a GPU, else not looked at. Has no gradient.
        width: of the picture in pixels.
        height: of the picture in pixels.
        features: any number of channels, drawn as they are. Exactly one of this and `sh`.
        sh: spherical harmonics with 1, 4, 9 or 16 coefficients, or the pair (dc (n, 1, 3),
            rest (n, k - 1, 3)); their colour is max(0, SH + 0.5).
        sh_degree: bands in use; all that there are when None.
        background: (channels) or (height, width, channels); black when None.
        cutoffs: where a splat stops to count.
        antialiased: keep the energy of splats smaller than a pixel (Yu et al. 2024).
        raw: scales and opacities are given as training holds them, and have their gradients so.
        depth: draw `Rendering.depth` too; a picture without it costs a tenth less on the CPU.
        absolute_gradient: have backward fill `Rendering.absolute_gradient` (not with "reference").
        inverse_depth: draw `Rendering.inverse_depth` too, as one more channel.
        backend: "auto" (the fastest on the device of the means), "cuda" (float32 only), "cpu" or
            "reference".

    Returns:
        A `Rendering`. Splats with a number that is not finite are not drawn and get gradient zero.

    Raises:
        RasterizerError: an argument does not fit the others, or the backend cannot be used here.
    """
    name = backend_for(backend, "means are", means)
    if width < 1 or height < 1:
        raise RasterizerError(f"the picture is {width} x {height} pixels; both must be at least 1")
    splats = checked_splats(
        *(means, quaternions, scales, covariances, opacities),
        *(features, sh, world_to_camera, intrinsics),
        *(background, width, height),
    )
    require_ceiling_below_one(cutoffs, splats.means.dtype)
    degree = degree_in_use(splats, sh_degree)
    view = View(width, height, degree, antialiased, cutoffs, raw)
    if name == "reference":
        if absolute_gradient:
            raise RasterizerError(
                "the reference backend has no absolute gradient; use backend='cpu' or 'cuda' for it"
            )
        rendering = _draw_reference(splats, view, depth, inverse_depth)
    else:
        rendering = _draw_by_kernels(*(name, splats, view, depth, absolute_gradient, inverse_depth))
    if not inverse_depth:
        return rendering
    color, inverse = rendering.color[..., :-1], rendering.color[..., -1]
    return replace(rendering, color=color, inverse_depth=inverse)


def _draw_by_kernels(
    name: str,
    splats: Splats,
    view: View,
    with_depth: bool,
    with_absolute_gradient: bool,
    with_inverse_depth: bool,
) -> Rendering:
    if splats.covariances is None:
        projected = _project_by_kernels(name, splats, view)
    else:
        projected = _project_by_reference(splats, view)
    means_2d, radii = projected.means_2d, projected.radii
    absolute = torch.zeros_like(means_2d) if with_absolute_gradient else None
    colors, background = projected.colors, splats.background
    if with_inverse_depth:
        colors, background = _with_inverse_depth(colors, background, projected.depths, radii)
    color, alpha, depth = autograd.apply(
        autograd.Blend,
        means_2d,
        projected.conics,
        projected.depths,
        projected.opacities,
        colors,
        background,
        radii,
        (view.width, view.height),
        view.cutoffs,
        with_depth,
        absolute,
        name,
    )
    return Rendering(color, alpha, depth, radii, means_2d, absolute)


def _project_by_kernels(name: str, splats: Splats, view: View) -> Projected:
    means_2d, conics, depths, opacities, colors, radii = autograd.apply(
        autograd.Project,
        splats.means,
        splats.quaternions,
        splats.scales,
        splats.opacities,
        splats.sh_dc,
        splats.sh_rest,
        None if splats.features is None else splats.features.detach(),
        splats.world_to_camera,
        splats.intrinsics,
        view,
        name,
    )
    colors = colors if splats.features is None else splats.features
    return Projected(means_2d, conics, depths, opacities, colors, radii)


def _with_inverse_depth(
    colors: Tensor, background: Tensor | None, depths: Tensor, radii: Tensor
) -> tuple[Tensor, Tensor | None]:
    """One more channel: 1 / z over a background of 0; z is 0 where a splat is not seen."""
    seen = radii[:, 0] > 0
    inverse = torch.where(seen, 1 / torch.where(seen, depths, 1.0), 0.0)
    if background is not None:
        background = torch.nn.functional.pad(background, (0, 1))
    return torch.cat([colors, inverse[:, None]], dim=1), background


def _draw_reference(
    splats: Splats, view: View, with_depth: bool, with_inverse_depth: bool
) -> Rendering:
    projected = _project_by_reference(splats, view)
    background = splats.background
    if with_inverse_depth:
        colors, background = _with_inverse_depth(
            projected.colors, background, projected.depths, projected.radii
        )
        projected = replace(projected, colors=colors)
    blended = reference.blend(
        projected,
        background=background,
        width=view.width,
        height=view.height,
        cutoffs=view.cutoffs,
        with_depth=with_depth,
    )
    return Rendering(
        blended.color, blended.alpha, blended.depth, projected.radii, projected.means_2d
    )


def _project_by_reference(splats: Splats, view: View) -> Projected:
    sh: Tensor | tuple[Tensor, Tensor] | None = splats.sh_dc
    if splats.sh_dc is not None and splats.sh_rest is not None:
        sh = (splats.sh_dc, splats.sh_rest)
    return reference.project(
        splats.means,
        splats.quaternions,
        splats.scales,
        splats.opacities,
        covariances=splats.covariances,
        world_to_camera=splats.world_to_camera,
        intrinsics=splats.intrinsics,
        width=view.width,
        height=view.height,
        features=splats.features,
        sh=sh,
        sh_degree=None if splats.features is not None else view.sh_degree,
        cutoffs=view.cutoffs,
        antialiased=view.antialiased,
        raw=view.raw,
    )
