"""The drop-in face for programs written against the package `diff_gaussian_rasterization`.

Its names and the meaning of its arguments are those that package documents; everything behind them
is `rasterize`. What differs stands in `docs/drop-in.md`. Matrices are transposed (row vectors, so
that `point @ viewmatrix` is in camera coordinates), pictures are (channels, height, width), and the
gradient of `means2D` is in NDC units, which run from -1 to 1 over the picture.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from cuda_rasterizer.autograd import apply
from cuda_rasterizer.cutoffs import CLASSIC
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.rasterize import Rendering, rasterize

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

BACKEND_VARIABLE = "SPLATSCOPE_BACKEND"

# How far matrices that say the same in float32 may be apart, relative to their size.
_AGREEMENT = 1e-3


class GaussianRasterizationSettings(NamedTuple):
    """The camera and how to draw, as the package has them.

    Attributes:
        image_height: of the picture in pixels.
        image_width: of the picture in pixels.
        tanfovx: tangent of half the horizontal field of view.
        tanfovy: tangent of half the vertical field of view.
        bg: (channels) background colour.
        scale_modifier: every scale is multiplied by it; covariances are not.
        viewmatrix: (4, 4) world to camera, transposed; rigid.
        projmatrix: (4, 4) `viewmatrix` times the transposed projection; may be off-centre.
        sh_degree: bands of spherical harmonics in use.
        campos: (3,) centre of the camera in the world; must be that of `viewmatrix`.
        prefiltered: taken and not used: what cannot be seen is always left out.
        debug: taken and not used: errors always say what is wrong.
        antialiasing: keep the energy of splats smaller than a pixel. Older programs do not know
            of it; those that give it get the inverse depth as a third result.
    """

    image_height: int
    image_width: int
    tanfovx: float
    tanfovy: float
    bg: Float[Tensor, "channels"]
    scale_modifier: float
    viewmatrix: Float[Tensor, "4 4"]
    projmatrix: Float[Tensor, "4 4"]
    sh_degree: int
    campos: Float[Tensor, "3"]
    prefiltered: bool
    debug: bool
    antialiasing: bool | None = None


class GaussianRasterizer(nn.Module):
    """Draws with fixed settings.

    `backend` is "cuda", "cpu" or "reference"; None takes the one that the environment variable
    SPLATSCOPE_BACKEND names, or the fastest one for the device that `means3D` is on.
    """

    def __init__(
        self, raster_settings: GaussianRasterizationSettings, backend: str | None = None
    ) -> None:
        super().__init__()
        self.raster_settings = raster_settings
        self.backend = backend

    @torch.no_grad()
    def markVisible(self, positions: Float[Tensor, "splats 3"]) -> Bool[Tensor, "splats"]:
        """Which positions lie before the camera, farther than its near plane."""
        view = self.raster_settings.viewmatrix.to(positions)
        depths: Tensor = positions @ view[:3, 2] + view[3, 2]
        return depths > CLASSIC.near

    def forward(
        self,
        means3D: Float[Tensor, "splats 3"],
        means2D: Float[Tensor, "splats components"] | None,
        opacities: Tensor,
        shs: Float[Tensor, "splats coefficients 3"] | None = None,
        colors_precomp: Float[Tensor, "splats channels"] | None = None,
        scales: Float[Tensor, "splats 3"] | None = None,
        rotations: Float[Tensor, "splats 4"] | None = None,
        cov3D_precomp: Float[Tensor, "splats 6"] | None = None,
    ) -> tuple[Tensor, ...]:
        """Draws the splats.

        Args:
            means3D: centres in the world.
            means2D: at least two columns, whose values are not read; backward leaves in them the
                gradient of the centres on the screen, in NDC units. None when nobody asks.
            opacities: (splats,) or (splats, 1), between 0 and 1.
            shs: spherical harmonics. Exactly one of this and `colors_precomp`.
            colors_precomp: colours, drawn as they are.
            scales: standard deviations along the splat's axes.
            rotations: quaternions (w, x, y, z) of any norm.
            cov3D_precomp: (splats, 6) covariances in the place of scales and rotations: xx, xy, xz,
                yy, yz, zz. Their projection is plain torch, and slower.

        Returns:
            The picture (channels, height, width) and the radii (splats,) int32, 0 where a splat is
            not seen. With `antialiasing` in the settings, the sum of inverse depths (1, height,
            width) as well, weighted as the colours are.

        Raises:
            RasterizerError: arguments do not fit each other, or the backend cannot be used here.
        """
        settings = self.raster_settings
        scales, rotations, covariances = _shapes_of(scales, rotations, cov3D_precomp)
        box = _ScreenGradient(settings.image_width, settings.image_height)
        means = means3D
        if means2D is not None and means2D.requires_grad:
            _require_columns(means2D, means3D)
            means = apply(_CarryScreenGradient, means3D, means2D, box)
        world_to_camera, intrinsics = _camera_of(settings)
        opacities = opacities.reshape(-1)
        if scales is not None:
            scales = scales * settings.scale_modifier
        features, sh = _colors_of(shs, colors_precomp)
        picture = rasterize(
            means,
            rotations,
            scales,
            opacities,
            covariances=covariances,
            world_to_camera=world_to_camera,
            intrinsics=intrinsics,
            width=settings.image_width,
            height=settings.image_height,
            features=features,
            sh=sh,
            sh_degree=None if sh is None else settings.sh_degree,
            background=settings.bg,
            antialiased=bool(settings.antialiasing),
            depth=False,
            inverse_depth=settings.antialiasing is not None,
            backend=self.backend or os.environ.get(BACKEND_VARIABLE, "auto"),
        )
        box.listen(picture)
        results = picture.color.permute(2, 0, 1).contiguous(), picture.radii.amax(dim=1)
        if picture.inverse_depth is None:
            return results
        return *results, picture.inverse_depth[None].contiguous()


class _ScreenGradient:
    """The gradient of the centres in pixels, on its way from the picture to `means2D`."""

    def __init__(self, width: int, height: int) -> None:
        self._to_ndc = (width / 2, height / 2)
        self._pixels: Tensor | None = None

    def listen(self, picture: Rendering) -> None:
        """Have the picture's backward leave its gradient here."""
        if picture.means_2d.requires_grad:
            picture.means_2d.register_hook(self._keep)  # type: ignore[no-untyped-call]

    def _keep(self, gradient: Tensor) -> None:
        self._pixels = gradient

    def take_into(self, result: Tensor) -> Tensor:
        """Put it into the zeros of `result` in NDC units, and forget it: another may come.

        A pixel is 2 / width of the NDC, hence the factors.
        """
        pixels, self._pixels = self._pixels, None
        if pixels is not None:
            result[:, :2] = pixels * pixels.new_tensor(self._to_ndc)
        return result


class _CarryScreenGradient(torch.autograd.Function):
    """`means3D` as they are; ties `means2D` into the graph, where its gradient passes by.

    Whatever goes through the projection has been through the centres on the screen before, so their
    gradient is complete when that of `means3D` arrives here.
    """

    @staticmethod
    def forward(ctx: Any, means3D: Tensor, means2D: Tensor, box: _ScreenGradient) -> Tensor:
        """Pass on the centres."""
        ctx.box, ctx.shape = box, means2D.shape
        return means3D.view_as(means3D)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of both."""
        return gradient, ctx.box.take_into(gradient.new_zeros(ctx.shape)), None


def _is_given(tensor: Tensor | None) -> bool:
    """Programs hand over None or an empty tensor for what they do not have."""
    return tensor is not None and tensor.numel() > 0


def _shapes_of(
    scales: Tensor | None, rotations: Tensor | None, upper: Tensor | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Scales and rotations, or covariances; of no splats, those that are given at all."""
    if upper is None or not _is_given(upper):
        missing = "scales" if scales is None else "rotations" if rotations is None else None
        if missing:
            raise RasterizerError(
                f"{missing} are missing; expected scales and rotations, or cov3D_precomp"
            )
        return scales, rotations, None
    if _is_given(scales) or _is_given(rotations):
        raise RasterizerError("expected scales and rotations, or cov3D_precomp, but not both")
    if upper.dim() != 2 or upper.shape[1] != 6:
        raise RasterizerError(f"cov3D_precomp has shape {tuple(upper.shape)}; expected (splats, 6)")
    return None, None, upper[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)


def _colors_of(
    shs: Tensor | None, colors_precomp: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Features and SH, one of which is None; of no splats, the one that is given at all."""
    if _is_given(shs) and _is_given(colors_precomp):
        raise RasterizerError("both shs and colors_precomp are given; expected exactly one of them")
    if shs is not None and not _is_given(colors_precomp):
        return None, shs
    if colors_precomp is not None:
        return colors_precomp, None
    raise RasterizerError("neither shs nor colors_precomp given; expected exactly one of them")


def _require_columns(means2D: Tensor, means3D: Tensor) -> None:
    if means2D.dim() != 2 or means2D.shape[0] != means3D.shape[0] or means2D.shape[1] < 2:
        raise RasterizerError(
            f"means2D has shape {tuple(means2D.shape)}; expected ({means3D.shape[0]}, 2 or more), "
            "to hold the gradient of the centres on the screen"
        )


def _camera_of(settings: GaussianRasterizationSettings) -> tuple[Tensor, Tensor]:
    """`world_to_camera` and `intrinsics`, on the CPU in float64.

    Two matrices on a GPU are read back here, which waits for the work before them. Programs that
    keep their cameras on the CPU do not pay it.
    """
    view, both = (m.detach().cpu().double().T for m in (settings.viewmatrix, settings.projmatrix))
    _require_rigid(view)
    _require_center(view, settings.campos.detach().cpu().double())
    projection = both @ torch.linalg.inv(view)
    x, y, w = projection[0], projection[1], projection[3]
    x, y, w = x / w[2], y / w[2], w / w[2]
    slopes = (1 / settings.tanfovx, 1 / settings.tanfovy)
    slack = _AGREEMENT * (1 + view[:3, 3].norm()) * max(1.0, *slopes)
    expected = ((slopes[0], 0.0, x[2], 0.0), (0.0, slopes[1], y[2], 0.0), (0.0, 0.0, 1.0, 0.0))
    off = (torch.stack([x, y, w]) - torch.tensor(expected, dtype=torch.float64)).abs().max()
    if not off <= slack:
        raise RasterizerError(
            f"projmatrix is not viewmatrix times a pinhole projection of tanfovx "
            f"{settings.tanfovx:.4f} and tanfovy {settings.tanfovy:.4f}: that projection is off by "
            f"{float(off):.2g}. Both matrices are expected transposed."
        )
    width, height = settings.image_width, settings.image_height
    rows = (
        (width / 2 * slopes[0], 0.0, width / 2 * (1 + x[2])),
        (0.0, height / 2 * slopes[1], height / 2 * (1 + y[2])),
        (0.0, 0.0, 1.0),
    )
    return view, torch.tensor(rows, dtype=torch.float64)


def _require_rigid(view: Tensor) -> None:
    rotation, last = view[:3, :3], view[3]
    off = (rotation @ rotation.T - torch.eye(3, dtype=view.dtype)).abs().max()
    bottom = (last - torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=view.dtype)).abs().max()
    if not (off <= _AGREEMENT and bottom <= _AGREEMENT):
        raise RasterizerError(
            f"viewmatrix is not the transposed matrix of a rigid motion: its last column is "
            f"{[round(float(value), 4) for value in last]}, and its rotation is off by "
            f"{float(off):.2g}. Expected a world-to-camera matrix, transposed."
        )


def _require_center(view: Tensor, campos: Tensor) -> None:
    center = -view[:3, :3].T @ view[:3, 3]
    if not (center - campos).norm() <= _AGREEMENT * (1 + center.norm()):
        raise RasterizerError(
            f"campos is {campos.tolist()}, but the camera of viewmatrix is at {center.tolist()}. "
            "Spherical harmonics are seen from there, so the two must agree."
        )
