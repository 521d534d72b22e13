"""Draws splats: the public function, its checks, and the dispatch to a backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_rasterizer import autograd, reference
from cuda_rasterizer.backends import backend_for
from cuda_rasterizer.cutoffs import CLASSIC, Cutoffs
from cuda_rasterizer.debug import debug_is_on
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import View
from cuda_rasterizer.projected import Projected
from cuda_rasterizer.spherical_harmonics import coefficient_count, degree_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int32

_MAXIMUM_COUNT = 2**31 - 1


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


@dataclass(frozen=True)
class _Splats:
    """Checked arguments; colours are `features`, or SH as (dc, rest).

    Shapes are quaternions and scales, or covariances.
    """

    means: Tensor
    quaternions: Tensor | None
    scales: Tensor | None
    covariances: Tensor | None
    opacities: Tensor
    features: Tensor | None
    sh_dc: Tensor | None
    sh_rest: Tensor | None
    world_to_camera: Tensor
    intrinsics: Tensor
    background: Tensor | None


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
    splats = _checked(
        *(means, quaternions, scales, covariances, opacities),
        *(features, sh, world_to_camera, intrinsics),
        *(background, width, height),
    )
    _require_ceiling_below_one(cutoffs, splats.means.dtype)
    degree = _degree_in_use(splats, sh_degree)
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


def _require_ceiling_below_one(cutoffs: Cutoffs, dtype: torch.dtype) -> None:
    """A ceiling of 1 would let the transmittance, by which backward divides, become 0."""
    # numbers below 1 are eps / 2 apart, and what is nearer to 1 than half of that becomes 1
    if 1 - cutoffs.alpha_ceiling <= torch.finfo(dtype).eps / 4:
        raise RasterizerError(
            f"alpha_ceiling {cutoffs.alpha_ceiling} rounds to 1 in {dtype}; it must stay below 1"
        )


def _draw_by_kernels(
    name: str,
    splats: _Splats,
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


def _project_by_kernels(name: str, splats: _Splats, view: View) -> Projected:
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
    splats: _Splats, view: View, with_depth: bool, with_inverse_depth: bool
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


def _project_by_reference(splats: _Splats, view: View) -> Projected:
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


def _checked(
    means: Tensor,
    quaternions: Tensor | None,
    scales: Tensor | None,
    covariances: Tensor | None,
    opacities: Tensor,
    features: Tensor | None,
    sh: Tensor | tuple[Tensor, Tensor] | None,
    world_to_camera: Tensor,
    intrinsics: Tensor,
    background: Tensor | None,
    width: int,
    height: int,
) -> _Splats:
    """Shapes, types and devices agree; contiguous where the kernels want that."""
    if means.dtype not in (torch.float32, torch.float64):
        raise RasterizerError(f"means are {means.dtype}; expected torch.float32 or torch.float64")
    if means.dim() != 2:
        raise RasterizerError(f"means have shape {_shape(means)}; expected (n, 3)")
    count = means.shape[0]
    if count > _MAXIMUM_COUNT:
        raise RasterizerError(f"{count} splats; at most {_MAXIMUM_COUNT} can be drawn at once")
    if (features is None) == (sh is None):
        found = "neither" if features is None else "both"
        raise RasterizerError(f"{found} of features and sh given; expected exactly one of them")
    is_given = (quaternions is not None, scales is not None, covariances is not None)
    if is_given not in ((True, True, False), (False, False, True)):
        raise RasterizerError("expected quaternions and scales, or covariances in their place")
    dc, rest = _split_sh(sh)
    _check("means", means, (count, 3), means)
    _check("quaternions", quaternions, (count, 4), means)
    _check("scales", scales, (count, 3), means)
    _check("covariances", covariances, (count, 3, 3), means)
    _check("opacities", opacities, (count,), means)
    _check("features", features, (count, None), means)
    _check("SH dc", dc, (count, 1, 3), means)
    _check("SH rest", rest, (count, None, 3), means)
    channels = 3 if features is None else features.shape[1]
    _check("world_to_camera", world_to_camera, (4, 4))
    _check("intrinsics", intrinsics, (3, 3))
    # on a GPU the host would wait for this one number in every step
    if (intrinsics.device.type == "cpu" or debug_is_on()) and intrinsics[0, 1] != 0:
        raise RasterizerError(
            f"intrinsics have a skew of {float(intrinsics[0, 1])}; expected 0, undistort first"
        )
    return _Splats(
        means.contiguous(),
        _contiguous(quaternions),
        _contiguous(scales),
        covariances,
        opacities.contiguous(),
        _contiguous(features),
        _with_contiguous_rows(dc),
        _with_contiguous_rows(rest),
        _moved(world_to_camera, means).contiguous(),
        _moved(intrinsics.detach(), means).contiguous(),
        _checked_background(background, channels, width, height, means),
    )


def _contiguous(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _split_sh(
    sh: Tensor | tuple[Tensor, Tensor] | None,
) -> tuple[Tensor | None, Tensor | None]:
    """As (dc, rest), without a copy; no rest where there is only the constant band."""
    if sh is None:
        return None, None
    dc, rest = (sh[:, :1], sh[:, 1:]) if isinstance(sh, Tensor) else sh
    return dc, rest if rest.dim() != 3 or rest.shape[1] > 0 else None


def _with_contiguous_rows(tensor: Tensor | None) -> Tensor | None:
    """The kernels take any distance between splats, but the numbers of one in a row."""
    if tensor is None or (tensor.stride(-1) == 1 and tensor.stride(-2) == 3):
        return tensor
    return tensor.contiguous()


def _check(
    name: str, tensor: Tensor | None, shape: tuple[int | None, ...], like: Tensor | None = None
) -> None:
    if tensor is None:
        return
    fits = tensor.dim() == len(shape) and all(
        want in (None, have) for have, want in zip(tensor.shape, shape, strict=True)
    )
    if not fits:
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise RasterizerError(f"{name} have shape {_shape(tensor)}; expected ({expected})")
    if like is not None and (tensor.dtype != like.dtype or tensor.device != like.device):
        raise RasterizerError(
            f"{name} are {tensor.dtype} on {tensor.device}; expected {like.dtype} on {like.device} "
            "as the means are"
        )


def _degree_in_use(splats: _Splats, sh_degree: int | None) -> int:
    """The degree of SH to evaluate; -1 with features."""
    if splats.sh_dc is None:
        if sh_degree is not None:
            raise RasterizerError(f"sh_degree is {sh_degree} but features are given, not sh")
        return -1
    available = degree_of(1 + (0 if splats.sh_rest is None else splats.sh_rest.shape[1]))
    if sh_degree is None:
        return available
    if not 0 <= sh_degree <= available:
        raise RasterizerError(
            f"sh_degree is {sh_degree}; the {coefficient_count(available)} coefficients given "
            f"reach from 0 to {available}"
        )
    return sh_degree


def _checked_background(
    background: Tensor | None, channels: int, width: int, height: int, means: Tensor
) -> Tensor | None:
    if background is None:
        return None
    expected = ((channels,), (height, width, channels))
    if _shape(background) not in expected:
        raise RasterizerError(
            f"background has shape {_shape(background)}; expected {expected[0]} or {expected[1]}"
        )
    return _moved(background, means).contiguous()


def _moved(tensor: Tensor, like: Tensor) -> Tensor:
    """On the device and of the type of `like`; the host does not wait for a GPU to take it."""
    return tensor.to(like.device, like.dtype, non_blocking=like.is_cuda)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
