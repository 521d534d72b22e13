"""Scenes that every rasteriser test can draw from: random ones, closed-form ones, hard cases.

A `SplatScene` holds everything one call of `rasterize` (or of the reference) takes. Random scenes
come from a seed and are the same in every dtype up to rounding.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

# What autograd may be asked for, in the order in which `SplatScene.leaves` gives it.
PARAMETERS = ("means", "quaternions", "scales", "opacities", "features", "sh", "background")


@dataclasses.dataclass(frozen=True)
class SplatScene:
    """Splats with activated parameters, one camera, a background."""

    means: Tensor  # (n, 3)
    quaternions: Tensor  # (n, 4), w x y z
    scales: Tensor  # (n, 3)
    opacities: Tensor  # (n,)
    features: Tensor | None  # (n, c)
    sh: Tensor | None  # (n, k, 3)
    world_to_camera: Tensor  # (4, 4)
    intrinsics: Tensor  # (3, 3)
    width: int
    height: int
    background: Tensor | None = None  # (c,) or (h, w, c)

    def to(self, dtype: torch.dtype) -> "SplatScene":
        """The same scene in another float type; no tensor is shared."""
        return self._mapped(lambda tensor: tensor.detach().to(dtype, copy=True))

    def with_gradients(self) -> "SplatScene":
        """A copy whose splats and background are leaves that require a gradient."""
        copy = self._mapped(lambda tensor: tensor.detach().clone())
        for _, leaf in copy.leaves():
            leaf.requires_grad_()
        return copy

    def leaves(self) -> Iterator[tuple[str, Tensor]]:
        """Name and tensor of everything differentiable that this scene has."""
        for name in PARAMETERS:
            tensor = getattr(self, name)
            if tensor is not None:
                yield name, tensor

    def replace(self, **changes: Any) -> "SplatScene":
        return dataclasses.replace(self, **changes)

    @property
    def splats(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The positional arguments of `rasterize` and `reference.project`."""
        return self.means, self.quaternions, self.scales, self.opacities

    @property
    def projection(self) -> dict[str, Any]:
        """The keyword arguments of `reference.project`, without cut-offs and antialiasing."""
        return {
            "world_to_camera": self.world_to_camera,
            "intrinsics": self.intrinsics,
            "width": self.width,
            "height": self.height,
            "features": self.features,
            "sh": self.sh,
        }

    def _mapped(self, change: Any) -> "SplatScene":
        values = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            values[field.name] = change(value) if isinstance(value, Tensor) else value
        return SplatScene(**values)


def pinhole(focal: float, width: int, height: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Intrinsics (3, 3) with the principal point in the picture's centre."""
    return torch.tensor(
        [[focal, 0.0, width / 2], [0.0, focal, height / 2], [0.0, 0.0, 1.0]], dtype=dtype
    )


def tilted_pose(dtype: torch.dtype = torch.float64) -> Tensor:
    """A world-to-camera pose with every entry of the rotation in play."""
    axis = torch.tensor([0.3, -0.5, 0.2], dtype=torch.float64)
    cross = torch.tensor(
        [[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]],
        dtype=torch.float64,
    )
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, :3] = torch.linalg.matrix_exp(cross)
    pose[:3, 3] = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)
    return pose.to(dtype)


def random_scene(
    seed: int,
    count: int = 60,
    width: int = 41,
    height: int = 30,
    *,
    dtype: torch.dtype = torch.float64,
    sh_degree: int | None = None,
    channels: int = 3,
    scale_range: tuple[float, float] = (0.02, 0.3),
    opacity_range: tuple[float, float] = (0.05, 1.0),
    depth_range: tuple[float, float] = (1.0, 6.0),
    per_pixel_background: bool = False,
) -> SplatScene:
    """Splats of all shapes strewn over the picture and a little past its edges.

    Quaternions are not normalised; scales are log-uniform a axis. Colour is `channels` features, or
    SH coefficients when `sh_degree` is given.
    """
    random = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random, dtype=torch.float64)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    focal = 0.9 * max(width, height)
    depths = depth_range[0] + (depth_range[1] - depth_range[0]) * uniform(count)
    slopes = (uniform(count, 2) - 0.5) * 1.2 * torch.tensor([width, height]).double() / focal
    in_camera = torch.cat([slopes * depths[:, None], depths[:, None]], dim=1)
    pose = tilted_pose()
    means = (in_camera - pose[:3, 3]) @ pose[:3, :3]
    low, high = torch.tensor(scale_range, dtype=torch.float64).log()
    features = uniform(count, channels) if sh_degree is None else None
    sh = None if sh_degree is None else 0.4 * normal(count, (sh_degree + 1) ** 2, 3)
    out_channels = 3 if features is None else channels
    shape = (height, width, out_channels) if per_pixel_background else (out_channels,)
    scene = SplatScene(
        means=means,
        quaternions=normal(count, 4),
        scales=(low + (high - low) * uniform(count, 3)).exp(),
        opacities=opacity_range[0] + (opacity_range[1] - opacity_range[0]) * uniform(count),
        features=features,
        sh=sh,
        world_to_camera=pose,
        intrinsics=pinhole(focal, width, height),
        width=width,
        height=height,
        background=uniform(*shape),
    )
    return scene.to(dtype)


def scene_of(
    means: list[list[float]],
    *,
    scales: float | list[list[float]] = 0.1,
    opacities: float | list[float] = 0.5,
    colors: list[list[float]] | None = None,
    quaternions: list[list[float]] | None = None,
    focal: float = 40.0,
    width: int = 21,
    height: int = 21,
    background: list[float] | None = None,
    dtype: torch.dtype = torch.float64,
) -> SplatScene:
    """Splats given one by one in the frame of a camera at the origin that looks along +z.

    With the odd default size the principal point is the centre of pixel (10, 10).
    """
    count = len(means)

    def filled(value: Any, *shape: int) -> Tensor:
        return torch.as_tensor(value, dtype=dtype).expand(*shape).clone()

    return SplatScene(
        means=torch.tensor(means, dtype=dtype).reshape(count, 3),
        quaternions=filled([1.0, 0.0, 0.0, 0.0] if quaternions is None else quaternions, count, 4),
        scales=filled(scales, count, 3),
        opacities=filled(opacities, count),
        features=filled([1.0, 1.0, 1.0] if colors is None else colors, count, 3),
        sh=None,
        world_to_camera=torch.eye(4, dtype=dtype),
        intrinsics=pinhole(focal, width, height, dtype),
        width=width,
        height=height,
        background=None if background is None else torch.tensor(background, dtype=dtype),
    )


NAN, INF = float("nan"), float("inf")
_HEALTHY = [0.02, 0.03, 3.0]  # the mean of the splat that each dead one has for company


def _with_company(changed: dict[str, Any], dtype: torch.dtype) -> SplatScene:
    """Splat 0 is healthy, splat 1 has the given values instead of healthy ones."""
    scene = scene_of(
        [_HEALTHY, [0.1, -0.1, 2.0]],
        scales=[[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]],
        quaternions=[[0.9, 0.3, -0.4, 0.2], [0.9, 0.3, -0.4, 0.2]],
        dtype=dtype,
        background=[0.1, 0.2, 0.3],
    )
    for name, value in changed.items():
        getattr(scene, name)[1] = torch.as_tensor(value, dtype=dtype)
    return scene


# Splat 1 of these must leave no trace: neither in the picture nor in a gradient.
DEAD_SPLATS: dict[str, dict[str, Any]] = {
    "nan mean": {"means": [NAN, 0.0, 2.0]},
    "infinite mean": {"means": [0.0, INF, 2.0]},
    "mean at the end of float32": {"means": [3e38, 3e38, 2.0]},
    "mean that float32 cannot project": {"means": [3e37, 0.0, 0.21]},
    "nan quaternion": {"quaternions": [1.0, NAN, 0.0, 0.0]},
    "zero quaternion": {"quaternions": [0.0, 0.0, 0.0, 0.0]},
    "overflowing quaternion": {"quaternions": [1e200, 0.0, 0.0, 0.0]},
    "nan scale": {"scales": [0.1, NAN, 0.1]},
    "infinite scale": {"scales": [INF, 0.1, 0.1]},
    "overflowing scale": {"scales": [1e200, 1e200, 1e200]},
    "nan opacity": {"opacities": NAN},
    "infinite opacity": {"opacities": INF},
    "zero opacity": {"opacities": 0.0},
    "negative opacity": {"opacities": -0.5},
    "opacity under the floor": {"opacities": 0.99 / 255},
    "opacity at the floor": {"opacities": 1 / 255},
    "nan colour": {"features": [0.5, NAN, 0.5]},
    "infinite colour": {"features": [INF, 0.5, 0.5]},
    "behind the camera": {"means": [0.0, 0.0, -2.0]},
    "in the camera's plane": {"means": [0.1, 0.1, 0.0]},
    "before the near plane": {"means": [0.0, 0.0, 0.19]},
    "off screen to the right": {"means": [30.0, 0.0, 2.0]},
    "off screen to the left": {"means": [-30.0, 0.0, 2.0]},
    "off screen above": {"means": [0.0, -30.0, 2.0]},
    "off screen below": {"means": [0.0, 30.0, 2.0]},
}


def dead_splat_scene(case: str, dtype: torch.dtype = torch.float64) -> SplatScene:
    """Two splats of which the second must not be drawn, for the reason that `case` names."""
    return _with_company(DEAD_SPLATS[case], dtype)


def _stack(count: int, opacity: float, dtype: torch.dtype) -> SplatScene:
    means = [[0.01 * i, -0.01 * i, 2.0 + 0.1 * i] for i in range(count)]
    colors = [[i / count, 1 - i / count, 0.5] for i in range(count)]
    return scene_of(
        means, opacities=opacity, scales=0.4, colors=colors, background=[1.0, 0.5, 0.2], dtype=dtype
    )


def _needles(dtype: torch.dtype) -> SplatScene:
    return random_scene(7, 20, scale_range=(0.001, 1.5), dtype=dtype)


def _shifted(scene: SplatScene, x: float, y: float) -> SplatScene:
    intrinsics = scene.intrinsics.clone()
    intrinsics[0, 2] += x
    intrinsics[1, 2] += y
    return scene.replace(intrinsics=intrinsics)


# Scenes that a rasteriser gets wrong first; every one must give a finite picture and gradient.
HARD_CASES: dict[str, Callable[[torch.dtype], SplatScene]] = {
    "no splats": lambda dtype: random_scene(1, 0, dtype=dtype),
    "nothing in view": lambda dtype: scene_of(
        [[0.0, 0.0, -1.0]], dtype=dtype, background=[0.2, 0.4, 0.6]
    ),
    "one pixel": lambda dtype: random_scene(2, 10, 1, 1, dtype=dtype),
    "odd size": lambda dtype: random_scene(3, 40, 17, 31, dtype=dtype),
    "a row": lambda dtype: random_scene(4, 20, 33, 1, dtype=dtype),
    "covers every tile": lambda dtype: random_scene(
        5, 12, 50, 40, scale_range=(2.0, 5.0), dtype=dtype
    ),
    "needles": _needles,
    "dust": lambda dtype: random_scene(6, 200, scale_range=(1e-5, 1e-3), dtype=dtype),
    "flat splats": lambda dtype: scene_of(
        [[0.0, 0.0, 2.0], [0.1, 0.0, 3.0]],
        scales=[[0.2, 0.0, 0.1], [0.0, 0.0, 0.0]],
        dtype=dtype,
    ),
    "opaque stack": lambda dtype: _stack(12, 1.0, dtype),
    "stopping stack": lambda dtype: _stack(40, 0.4, dtype),
    "equal depths": lambda dtype: scene_of(
        [[0.0, 0.0, 2.0], [0.02, 0.0, 2.0], [-0.02, 0.01, 2.0]],
        opacities=0.8,
        colors=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        dtype=dtype,
    ),
    "principal point far outside": lambda dtype: _shifted(
        random_scene(8, 40, dtype=dtype), 500.0, -300.0
    ),
    "principal point off centre": lambda dtype: _shifted(
        random_scene(9, 40, dtype=dtype), 8.0, -6.0
    ),
    "many channels": lambda dtype: random_scene(10, 30, channels=11, dtype=dtype),
    "one channel": lambda dtype: random_scene(11, 30, channels=1, dtype=dtype),
    "background a pixel": lambda dtype: random_scene(
        12, 30, per_pixel_background=True, dtype=dtype
    ),
    "near the near plane": lambda dtype: random_scene(
        13, 30, depth_range=(0.205, 0.4), scale_range=(0.01, 0.1), dtype=dtype
    ),
}


def hard_case(case: str, dtype: torch.dtype = torch.float64) -> SplatScene:
    """One of `HARD_CASES` by name."""
    return HARD_CASES[case](dtype)
