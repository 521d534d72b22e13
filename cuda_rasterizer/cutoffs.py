"""The cut-offs of compositing, as parameters, with the two sets that the field uses.

Every backend takes its decisions from these numbers alone, so tests can move them out of the way of
a finite difference, and a scene trained with another program can be shown as that program shows it.
"""

import math
from dataclasses import dataclass

from cuda_rasterizer.errors import RasterizerError


@dataclass(frozen=True, kw_only=True)
class Cutoffs:
    """Where a splat, or one pixel of it, stops to count.

    Attributes:
        near: a splat is drawn when its camera z exceeds this; above 0, in scene units.
        alpha_floor: a pixel is skipped when the splat's alpha there is below this; a splat
            is culled when its opacity (antialiasing applied) is below it.
        alpha_ceiling: alpha is limited to this, below 1. Where it is limited, the gradient of alpha
            is zero; the colour still has its own.
        stop_transmittance: a pixel stops before the splat that would leave less than this.
        stop_inclusive: whether leaving exactly `stop_transmittance` stops too.
        dilation: added to both variances of the projected covariance, in pixels squared.
        j_clamp: x/z and y/z are limited, in the Jacobian only, to the image's edges widened on
            every side by this share of half the image (tan = W / (2 fx)).
        footprint_cap: a splat ends at this many standard deviations along each image axis, rounded
            up to whole pixels (`radii`). `inf`: only `alpha_floor` ends it.
    """

    near: float = 0.2
    alpha_floor: float = 1.0 / 255.0
    alpha_ceiling: float = 0.99
    stop_transmittance: float = 1e-4
    stop_inclusive: bool = False
    dilation: float = 0.3
    j_clamp: float = 0.3
    footprint_cap: float = math.inf

    def __post_init__(self) -> None:
        """Refuses values for which compositing has no meaning."""
        requirements = (
            (self.near > 0, "near", "above 0"),
            (0 <= self.alpha_floor < 1, "alpha_floor", "in [0, 1)"),
            (0 < self.alpha_ceiling < 1, "alpha_ceiling", "in (0, 1)"),
            (self.stop_transmittance < 1, "stop_transmittance", "below 1"),
            (self.dilation >= 0, "dilation", "at least 0"),
            (self.j_clamp >= 0, "j_clamp", "at least 0"),
            (self.footprint_cap > 0, "footprint_cap", "above 0 (inf for none)"),
        )
        for holds, name, expected in requirements:
            if not holds:
                raise RasterizerError(f"{name} is {getattr(self, name)}; it must be {expected}")


CLASSIC = Cutoffs()
"""3D Gaussian Splatting (2023), as published; the set that training uses unless told otherwise."""

GSPLAT = Cutoffs(near=0.01, stop_inclusive=True, footprint_cap=3.33)
"""gsplat as of 2026. At 3.33 sigma an opacity of 1 is below 1/255, so the cap is slack there."""
