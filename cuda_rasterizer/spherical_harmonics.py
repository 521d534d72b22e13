"""Real spherical harmonics to degree 3, as colour: the constants and the plain torch formula.

Signs and order are those that 3DGS files use: in band 1 the coefficients belong to -y, z, -x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_rasterizer.errors import RasterizerError

if TYPE_CHECKING:
    from jaxtyping import Float

MAXIMUM_DEGREE = 3

C0 = 0.28209479177387814
C1 = 0.4886025119029199
C2 = (
    1.0925484305920792,
    -1.0925484305920792,
    0.31539156525252005,
    -1.0925484305920792,
    0.5462742152960396,
)
C3 = (
    -0.5900435899266435,
    2.890611442640554,
    -0.4570457994644658,
    0.3731763325901154,
    -0.4570457994644658,
    1.445305721320277,
    -0.5900435899266435,
)


def coefficient_count(degree: int) -> int:
    """How many coefficients a colour channel has up to and including band `degree`."""
    return (degree + 1) ** 2


def degree_of(count: int) -> int:
    """The degree that `count` coefficients reach; RasterizerError where no degree has that many."""
    for degree in range(MAXIMUM_DEGREE + 1):
        if coefficient_count(degree) == count:
            return degree
    raise RasterizerError(
        f"{count} SH coefficients a channel; expected 1, 4, 9 or 16 (degrees 0 to {MAXIMUM_DEGREE})"
    )


def basis(
    directions: Float[Tensor, "splats 3"], degree: int
) -> Float[Tensor, "splats coefficients"]:
    """The values (n, (degree + 1)^2) of the basis functions at unit `directions` (n, 3)."""
    x, y, z = directions.unbind(-1)
    values = [torch.full_like(x, C0)]
    if degree >= 1:
        values += [-C1 * y, C1 * z, -C1 * x]
    if degree >= 2:
        values += [
            C2[0] * x * y,
            C2[1] * y * z,
            C2[2] * (2 * z * z - x * x - y * y),
            C2[3] * x * z,
            C2[4] * (x * x - y * y),
        ]
    if degree >= 3:
        values += [
            C3[0] * y * (3 * x * x - y * y),
            C3[1] * x * y * z,
            C3[2] * y * (4 * z * z - x * x - y * y),
            C3[3] * z * (2 * z * z - 3 * x * x - 3 * y * y),
            C3[4] * x * (4 * z * z - x * x - y * y),
            C3[5] * z * (x * x - y * y),
            C3[6] * x * (x * x - 3 * y * y),
        ]
    return torch.stack(values, dim=-1)


def color(
    coefficients: Float[Tensor, "splats coefficients 3"], directions: Float[Tensor, "splats 3"]
) -> Float[Tensor, "splats 3"]:
    """The colours (n, 3) of `coefficients` (n, k, 3) seen along `directions` (n, 3) of any length.

    `max(0, SH + 0.5)`; a channel below zero has no gradient. All k coefficients are used.
    """
    degree = degree_of(coefficients.shape[1])
    units = directions / directions.norm(dim=-1, keepdim=True)
    summed = (basis(units, degree)[:, :, None] * coefficients).sum(dim=1)
    return (summed + 0.5).clamp(min=0)
