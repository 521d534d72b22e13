"""Projection of 3D Gaussians to the screen in plain torch: the truth that the kernels are held to.

Each formula stands as the papers write it (EWA splatting, 3DGS); gradients of any order are
autograd's. What a splat must have to be drawn is decided first, without a graph; only the splats
that pass are then projected, so that a dead one gets a gradient of exactly zero and never NaN.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_rasterizer import spherical_harmonics
from cuda_rasterizer.cutoffs import Cutoffs
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.projected import Projected

if TYPE_CHECKING:
    from jaxtyping import Float

# A quaternion whose squared norm is below this has no direction left to normalise: not drawn.
DEAD_QUATERNION_NORM_SQUARED = 1e-30

# Antialiasing never multiplies an opacity by less than this.
SMALLEST_COMPENSATION = 0.005

# Radii are 32-bit integers; without cut-offs they would be infinite.
LARGEST_RADIUS = 1e9


@dataclasses.dataclass(frozen=True)
class _View:
    rotation: Tensor  # (3, 3) world to camera
    translation: Tensor  # (3,)
    intrinsics: Tensor  # (3, 3); only fx, fy, cx, cy are read
    width: int
    height: int


@dataclasses.dataclass(frozen=True)
class _Splats:
    means: Tensor  # (n, 3)
    shapes: Tensor  # (n, 7) quaternions, then scales; or (n, 3, 3) covariances
    opacities: Tensor  # (n,)
    colors: Tensor  # (n, c) features, or (n, k, 3) SH coefficients in use

    def __getitem__(self, chosen: Tensor) -> _Splats:
        return _Splats(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))

    def activated(self) -> _Splats:
        """From logarithms of scales and logits of opacities to what is drawn."""
        shapes = self.shapes
        if shapes.ndim == 2:
            shapes = torch.cat([shapes[:, :4], shapes[:, 4:].exp()], dim=1)
        return dataclasses.replace(self, shapes=shapes, opacities=self.opacities.sigmoid())

    def covariances(self) -> Tensor:
        """(n, 3, 3), given or of quaternions and scales."""
        if self.shapes.ndim == 3:
            return self.shapes
        return covariances(self.shapes[:, :4], self.shapes[:, 4:])


@dataclasses.dataclass(frozen=True)
class _OnScreen:
    means_2d: Tensor  # (n, 2)
    conics: Tensor  # (n, 3)
    depths: Tensor  # (n,)
    opacities: Tensor  # (n,)
    colors: Tensor  # (n, c)
    variances: Tensor  # (n, 2) of the dilated footprint along x and y
    determinant: Tensor  # (n,) of the dilated footprint


def project(
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
    cutoffs: Cutoffs,
    antialiased: bool,
    raw: bool = False,
) -> Projected:
    """The splats as the screen sees them; rows of those that cannot be seen are zero.

    Quaternions are (w, x, y, z) of any norm, scales and opacities activated values, or with `raw`
    their logarithms and logits; `covariances` stand in the place of quaternions and scales.
    `world_to_camera` is rigid; of `intrinsics` only fx, fy, cx and cy are read. Either `features`,
    drawn as they are, or `sh`: one tensor or the pair (n, 1, 3) and (n, k - 1, 3), of which the
    bands to `sh_degree` are used (all when None).

    Which splats cannot be seen is written in `projected`. Everything is differentiable, the pose
    and the intrinsics too. RasterizerError when `sh` has not 1, 4, 9 or 16 coefficients a channel
    or fewer than `sh_degree` needs.
    """
    pose = world_to_camera.to(means)
    view = _View(pose[:3, :3], pose[:3, 3], intrinsics.to(means), width, height)
    colors = features if sh is None else _coefficients_in_use(sh, sh_degree)
    if colors is None:
        raise RasterizerError("neither features nor sh given; expected exactly one of them")
    splats = _Splats(means, _shapes(quaternions, scales, covariances), opacities, colors)

    with torch.no_grad():
        activated = splats.activated() if raw else splats
        alive = _finite_splats(activated).nonzero().squeeze(1)
        screen = _to_screen(activated[alive], view, cutoffs, antialiased)
        radii = _radii(screen, cutoffs)
        seen = _is_seen(screen, radii, view, cutoffs)
        chosen, radii = alive[seen], radii[seen]
    drawn = splats[chosen].activated() if raw else splats[chosen]
    screen = _to_screen(drawn, view, cutoffs, antialiased)
    count = means.shape[0]
    return Projected(
        means_2d=_spread(screen.means_2d, chosen, count),
        conics=_spread(screen.conics, chosen, count),
        depths=_spread(screen.depths, chosen, count),
        opacities=_spread(screen.opacities, chosen, count),
        colors=_spread(screen.colors, chosen, count),
        radii=_spread(radii.to(torch.int32), chosen, count),
    )


def _shapes(
    quaternions: Tensor | None, scales: Tensor | None, covariances: Tensor | None
) -> Tensor:
    if covariances is not None and quaternions is None and scales is None:
        return covariances
    if covariances is None and quaternions is not None and scales is not None:
        return torch.cat([quaternions, scales], dim=1)
    raise RasterizerError("expected quaternions and scales, or covariances in their place")


def rotation_matrices(quaternions: Tensor) -> Tensor:
    """The rotations (n, 3, 3) of quaternions (n, 4), (w, x, y, z), of any norm; zero: none."""
    shortest = DEAD_QUATERNION_NORM_SQUARED**0.5
    norms = quaternions.norm(dim=-1, keepdim=True).clamp_min(shortest)
    w, x, y, z = (quaternions / norms).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], dim=-1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], dim=-1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1),
    ]
    return torch.stack(rows, dim=-2)


def covariances(quaternions: Tensor, scales: Tensor) -> Tensor:
    """R S S R^T (n, 3, 3): the shape of each Gaussian in the world."""
    axes = rotation_matrices(quaternions) * scales[:, None, :]
    return axes @ axes.transpose(-1, -2)


def _coefficients_in_use(sh: Tensor | tuple[Tensor, Tensor], sh_degree: int | None) -> Tensor:
    coefficients = sh if isinstance(sh, Tensor) else torch.cat(sh, dim=1)
    given = spherical_harmonics.degree_of(coefficients.shape[1])
    degree = given if sh_degree is None else sh_degree
    if not 0 <= degree <= given:
        raise RasterizerError(f"sh_degree is {degree}; the coefficients given reach 0 to {given}")
    return coefficients[:, : spherical_harmonics.coefficient_count(degree)]


def _finite_splats(splats: _Splats) -> Tensor:
    """(n,) whether every parameter is finite and the quaternion long enough."""
    finite = torch.ones_like(splats.opacities, dtype=torch.bool)
    for field in dataclasses.fields(splats):
        values = getattr(splats, field.name)
        finite &= values.isfinite().flatten(1).all(1) if values.ndim > 1 else values.isfinite()
    if splats.shapes.ndim == 3:
        return finite
    norm_squared = splats.shapes[:, :4].square().sum(-1)
    return finite & (norm_squared >= DEAD_QUATERNION_NORM_SQUARED) & norm_squared.isfinite()


def _to_screen(splats: _Splats, view: _View, cutoffs: Cutoffs, antialiased: bool) -> _OnScreen:
    in_camera = splats.means @ view.rotation.T + view.translation
    x, y, z = in_camera.unbind(-1)
    fx, fy = view.intrinsics[0, 0], view.intrinsics[1, 1]
    cx, cy = view.intrinsics[0, 2], view.intrinsics[1, 2]
    means_2d = torch.stack([fx * x / z + cx, fy * y / z + cy], dim=-1)

    footprints = _footprints(splats, in_camera, view, cutoffs)
    a, b, c = footprints[:, 0, 0], footprints[:, 0, 1], footprints[:, 1, 1]
    before = a * c - b * b
    a, c = a + cutoffs.dilation, c + cutoffs.dilation
    determinant = a * c - b * b
    conics = torch.stack([c, -b, a], dim=-1) / determinant[:, None]
    opacities = splats.opacities
    if antialiased:
        share = (before / determinant).clamp(min=SMALLEST_COMPENSATION**2)
        opacities = opacities * share.sqrt()

    colors = splats.colors
    if colors.ndim == 3:
        center = -view.rotation.T @ view.translation
        colors = spherical_harmonics.color(colors, splats.means - center)
    return _OnScreen(
        means_2d=means_2d,
        conics=conics,
        depths=z,
        opacities=opacities,
        colors=colors,
        variances=torch.stack([a, c], dim=-1),
        determinant=determinant,
    )


def _footprints(splats: _Splats, in_camera: Tensor, view: _View, cutoffs: Cutoffs) -> Tensor:
    """J W Sigma W^T J^T (n, 2, 2), before dilation: EWA's affine approximation."""
    x, y, z = in_camera.unbind(-1)
    slope_x = _clamp_slope(x / z, view.intrinsics[0, 0], view.intrinsics[0, 2], view.width, cutoffs)
    slope_y = _clamp_slope(
        y / z, view.intrinsics[1, 1], view.intrinsics[1, 2], view.height, cutoffs
    )
    fx, fy = view.intrinsics[0, 0], view.intrinsics[1, 1]
    zero = torch.zeros_like(z)
    jacobian = torch.stack(
        [
            torch.stack([fx / z, zero, -fx * slope_x / z], dim=-1),
            torch.stack([zero, fy / z, -fy * slope_y / z], dim=-1),
        ],
        dim=-2,
    )  # (n, 2, 3)
    to_screen = jacobian @ view.rotation
    return to_screen @ splats.covariances() @ to_screen.transpose(-1, -2)


def _clamp_slope(
    slope: Tensor, focal: Tensor, center: Tensor, size: int, cutoffs: Cutoffs
) -> Tensor:
    """x/z (or y/z) held near the picture, for the Jacobian only, lest it explode off screen.

    Off-centre aware: the widened picture, not a symmetric cone (gsplat's rule).
    """
    slack = cutoffs.j_clamp * 0.5 * size / focal
    lowest = -center / focal - slack
    highest = (size - center) / focal + slack
    return torch.minimum(torch.maximum(slope, lowest), highest)


def _radii(screen: _OnScreen, cutoffs: Cutoffs) -> Tensor:
    """Half-sizes (n, 2) in whole pixels of the box in which alpha reaches the floor.

    o exp(-d^T Q d / 2) >= floor holds within sqrt(2 ln(o / floor)) standard deviations.
    """
    above_floor = screen.opacities >= cutoffs.alpha_floor
    ratio = torch.where(above_floor, screen.opacities / cutoffs.alpha_floor, 1.0)
    reach = (2 * ratio.log()).sqrt().clamp(max=cutoffs.footprint_cap)
    return (reach[:, None] * screen.variances.sqrt()).ceil().clamp(max=LARGEST_RADIUS)


def _is_seen(screen: _OnScreen, radii: Tensor, view: _View, cutoffs: Cutoffs) -> Tensor:
    """(n,) whether `project` says that the splat can be seen."""
    size = torch.tensor([view.width, view.height], dtype=radii.dtype, device=radii.device)
    on_screen = (screen.means_2d + radii > 0) & (screen.means_2d - radii < size)
    finite = (
        screen.means_2d.isfinite().all(-1)
        & screen.conics.isfinite().all(-1)
        & screen.colors.isfinite().all(-1)
        & screen.determinant.isfinite()
        & radii.isfinite().all(-1)
    )
    return (
        (screen.depths > cutoffs.near)
        & (screen.opacities >= cutoffs.alpha_floor)
        & (screen.opacities > 0)
        & (screen.determinant > 0)
        & (radii > 0).all(-1)
        & on_screen.all(-1)
        & finite
    )


def _spread(rows: Tensor, indices: Tensor, count: int) -> Tensor:
    """`rows` at `indices` of a tensor of `count` rows, zero elsewhere."""
    return rows.new_zeros((count, *rows.shape[1:])).index_copy(0, indices, rows)
