"""What lies between projection and compositing, and the rules that every backend projects by.

Rules (beside `Cutoffs`), so that backends agree on the hard cases:

- A splat is culled when any number it is made of is not finite (means, quaternion, scales, opacity,
  its colour), when its squared quaternion norm is below 1e-30, when camera z <= near, when its
  effective opacity is below `alpha_floor` or not positive (tested before the logarithm), when the
  determinant of its projected covariance is not positive or its conic not finite, or when its
  box misses the image: mean + radius <= 0 or mean - radius >= size on either axis.
- A culled splat has radius 0 and zeros everywhere, and gets a gradient of exactly zero.
- The direction of spherical harmonics is mean - centre with centre = -R^T t of `world_to_camera`.
- Radii are ceil(min(footprint_cap, sqrt(2 ln(opacity / alpha_floor))) * sqrt(variance)) per axis,
  at most 1e9. With a finite cap a pixel is drawn only within the radii: |dx| <= radius_x and
  |dy| <= radius_y, for dx, dy from the mean to the pixel's centre. With no cap they decide nothing.
- Antialiasing multiplies the opacity by sqrt(max(0.005^2, det without dilation / det with)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int32


@dataclass(frozen=True)
class Projected:
    """Splats on the image plane, in the order they were given; culled ones are zeros.

    Attributes:
        means_2d: centres in pixels; pixel (i, j) of row j has its own centre at (i + 0.5, j + 0.5).
        conics: inverse covariance (A, B, C): the exponent is -(A dx^2 + C dy^2) / 2 - B dx dy.
        depths: camera z.
        opacities: effective opacity, that is with the antialiasing factor.
        colors: the features, or the colour of the spherical harmonics seen from this camera.
        radii: half the box per axis in whole pixels; 0 where culled.
    """

    means_2d: Float[Tensor, "splats 2"]
    conics: Float[Tensor, "splats 3"]
    depths: Float[Tensor, "splats"]
    opacities: Float[Tensor, "splats"]
    colors: Float[Tensor, "splats channels"]
    radii: Int32[Tensor, "splats 2"]


@dataclass(frozen=True)
class Blended:
    """A composited picture.

    Attributes:
        color: with the background showing through.
        alpha: 1 - transmittance.
        depth: sum of camera z weighted by each splat's share; not divided by alpha. None where
            nobody asked for it.
        margin: per pixel the distance to the nearest decision, where it was asked for.
    """

    color: Float[Tensor, "height width channels"]
    alpha: Float[Tensor, "height width"]
    depth: Float[Tensor, "height width"] | None
    margin: Float[Tensor, "height width"] | None = None
