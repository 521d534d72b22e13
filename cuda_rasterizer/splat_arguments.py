"""The arguments of `rasterize`: whether they fit each other, and the form that backends take."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.debug import debug_is_on
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.spherical_harmonics import coefficient_count, degree_of

_MAXIMUM_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Splats:
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


def checked_splats(
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
) -> Splats:
    """Shapes, types and devices agree; contiguous where the kernels want that."""
    _check_means(means)
    _check_choices(quaternions, scales, covariances, features, sh)
    count = means.shape[0]
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
    _refuse_skew(intrinsics)
    return Splats(
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


def _check_means(means: Tensor) -> None:
    if means.dtype not in (torch.float32, torch.float64):
        raise RasterizerError(f"means are {means.dtype}; expected torch.float32 or torch.float64")
    if means.dim() != 2:
        raise RasterizerError(f"means have shape {_shape(means)}; expected (n, 3)")
    count = means.shape[0]
    if count > _MAXIMUM_COUNT:
        raise RasterizerError(f"{count} splats; at most {_MAXIMUM_COUNT} can be drawn at once")


def _check_choices(
    quaternions: Tensor | None,
    scales: Tensor | None,
    covariances: Tensor | None,
    features: Tensor | None,
    sh: Tensor | tuple[Tensor, Tensor] | None,
) -> None:
    if (features is None) == (sh is None):
        found = "neither" if features is None else "both"
        raise RasterizerError(f"{found} of features and sh given; expected exactly one of them")
    is_given = (quaternions is not None, scales is not None, covariances is not None)
    if is_given not in ((True, True, False), (False, False, True)):
        raise RasterizerError("expected quaternions and scales, or covariances in their place")


def _refuse_skew(intrinsics: Tensor) -> None:
    # on a GPU the host would wait for this one number in every step
    if (intrinsics.device.type == "cpu" or debug_is_on()) and intrinsics[0, 1] != 0:
        raise RasterizerError(
            f"intrinsics have a skew of {float(intrinsics[0, 1])}; expected 0, undistort first"
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


def degree_in_use(splats: Splats, sh_degree: int | None) -> int:
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


def require_ceiling_below_one(cutoffs: Cutoffs, dtype: torch.dtype) -> None:
    """A ceiling of 1 would let the transmittance, by which backward divides, become 0."""
    # numbers below 1 are eps / 2 apart, and what is nearer to 1 than half of that becomes 1
    if 1 - cutoffs.alpha_ceiling <= torch.finfo(dtype).eps / 4:
        raise RasterizerError(
            f"alpha_ceiling {cutoffs.alpha_ceiling} rounds to 1 in {dtype}; it must stay below 1"
        )
