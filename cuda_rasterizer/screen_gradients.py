"""How strongly each splat was pulled about on the screen, summed over views: densifying asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_rasterizer import native
from cuda_rasterizer.backends import backend_for
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import pointer
from cuda_rasterizer.native_structs import ScreenGradientParams

if TYPE_CHECKING:
    from jaxtyping import Float, Int32


def add_screen_gradients(
    sums: Float[Tensor, "splats"],
    visits: Float[Tensor, "splats"],
    gradients: Float[Tensor, "splats 2"],
    radii: Int32[Tensor, "splats 2"],
    width: int,
    height: int,
    backend: str = "auto",
) -> tuple[Float[Tensor, "splats"], Float[Tensor, "splats"]]:
    """Sums of norms and numbers of visits with one view of `width` by `height` pixels added, anew.

    `gradients` are those of the centres in pixels; norms are in NDC, which run from -1 to 1 over
    the picture, hence the factors width/2 and height/2. Splats of radius 0 were not seen.

    The root of the CPU's kernel is correctly rounded; torch's own may be off by the last bit, so
    that backends differ by that.

    Raises:
        RasterizerError: shapes or types are not as said; on the CPU, one is not contiguous.
    """
    name = backend_for(backend, "the gradients are", gradients)
    _check(sums, visits, gradients, radii, rows=name == "cpu")
    if name == "cpu":
        made = torch.empty_like(sums), torch.empty_like(visits)
        params = ScreenGradientParams(
            gradients=pointer(gradients),
            radii=pointer(radii),
            sums=pointer(sums),
            visits=pointer(visits),
            new_sums=pointer(made[0]),
            new_visits=pointer(made[1]),
            count=sums.shape[0],
            half_width=width / 2.0,
            half_height=height / 2.0,
        )
        native.call("add_screen_gradients", gradients.dtype, params)
        return made
    x, y = gradients[:, 0] * (width / 2.0), gradients[:, 1] * (height / 2.0)
    seen = radii[:, 0] > 0
    norm = torch.sqrt(x * x + y * y)  # three times as fast as vector_norm over two columns
    return sums + norm * seen, visits + seen


def _check(sums: Tensor, visits: Tensor, gradients: Tensor, radii: Tensor, *, rows: bool) -> None:
    count, dtype = sums.shape[0], gradients.dtype
    for label, tensor, shape, of_type in (
        ("sums", sums, (count,), dtype),
        ("visits", visits, (count,), dtype),
        ("gradients", gradients, (count, 2), dtype),
        ("radii", radii, (count, 2), torch.int32),
    ):
        if tensor.shape != shape or tensor.dtype != of_type:
            raise RasterizerError(
                f"the {label} are {tuple(tensor.shape)} {tensor.dtype}; expected {shape} {of_type}"
            )
        if rows and not tensor.is_contiguous():
            raise RasterizerError(f"the {label} are not contiguous; the kernels read whole rows")
