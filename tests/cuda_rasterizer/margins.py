"""How far a scene is from every decision a rasteriser takes, and scenes drawn clear of them.

Near a decision two correct programs may differ by a whole splat, and a finite difference straddles
a step; so comparisons are strict where the margin is large, and gradcheck scenes are redrawn.
"""

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from cuda_rasterizer import reference, spherical_harmonics
from cuda_rasterizer.cutoffs import CLASSIC, Cutoffs
from cuda_rasterizer.projected import Blended, Projected
from tests.cuda_rasterizer.scenes import SplatScene


def project(
    scene: SplatScene, cutoffs: Cutoffs = CLASSIC, *, antialiased: bool = False
) -> Projected:
    """The reference's projection of `scene`."""
    return reference.project(
        *scene.splats, **scene.projection, cutoffs=cutoffs, antialiased=antialiased
    )


def render(
    scene: SplatScene,
    cutoffs: Cutoffs = CLASSIC,
    *,
    antialiased: bool = False,
    margins: bool = False,
) -> Blended:
    """The reference's picture of `scene`."""
    return reference.blend(
        project(scene, cutoffs, antialiased=antialiased),
        background=scene.background,
        width=scene.width,
        height=scene.height,
        cutoffs=cutoffs,
        margins=margins,
    )


@torch.no_grad()
def pixel_margins(
    scene: SplatScene, cutoffs: Cutoffs = CLASSIC, *, antialiased: bool = False
) -> Tensor:
    """(h, w) float64: each pixel's distance to the nearest decision, as `reference.blend` says."""
    scene = scene.to(torch.float64)
    margin = render(scene, cutoffs, antialiased=antialiased, margins=True).margin
    assert margin is not None
    return margin


@torch.no_grad()
def splat_margin(scene: SplatScene, cutoffs: Cutoffs = CLASSIC) -> float:
    """The least distance of any splat to a kink of its own: near plane, J clamp, colour clamp.

    Relative to the near plane, in units of the slope, and in units of colour.
    """
    scene = scene.to(torch.float64)
    in_camera = scene.means @ scene.world_to_camera[:3, :3].T + scene.world_to_camera[:3, 3]
    depths = in_camera[:, 2]
    distances = [(depths / cutoffs.near - 1).abs()]
    for axis, size in enumerate((scene.width, scene.height)):
        focal, center = scene.intrinsics[axis, axis], scene.intrinsics[axis, 2]
        slope, slack = in_camera[:, axis] / depths, cutoffs.j_clamp * 0.5 * size / focal
        distances += [(slope + center / focal + slack).abs()]
        distances += [(slope - (size - center) / focal - slack).abs()]
    if scene.sh is not None:
        center_of_camera = -scene.world_to_camera[:3, :3].T @ scene.world_to_camera[:3, 3]
        directions = torch.nn.functional.normalize(scene.means - center_of_camera, dim=-1)
        degree = spherical_harmonics.degree_of(scene.sh.shape[1])
        values = spherical_harmonics.basis(directions, degree)
        summed = (values[:, :, None] * scene.sh).sum(dim=1)
        distances.append((summed + 0.5).abs().amin(dim=1))
    return float(torch.stack(distances).min()) if scene.means.shape[0] else float("inf")


def clear_of_decisions(
    draw: Callable[[int], SplatScene],
    cutoffs: Cutoffs = CLASSIC,
    *,
    antialiased: bool = False,
    least: float = 1e-3,
    first_seed: int = 0,
) -> SplatScene:
    """The first scene of `draw(seed)` whose every margin exceeds `least`."""
    for seed in range(first_seed, first_seed + 500):
        scene = draw(seed)
        nearest = pixel_margins(scene, cutoffs, antialiased=antialiased).min()
        if nearest > least and splat_margin(scene, cutoffs) > least:
            return scene
    raise AssertionError(f"no scene of 500 keeps {least} away from every decision")


def wide_open(cutoffs: Cutoffs = CLASSIC) -> Cutoffs:
    """`cutoffs` with floor, ceiling and stop moved to where no ordinary splat meets them."""
    return dataclasses.replace(
        cutoffs, alpha_floor=1e-12, alpha_ceiling=1 - 1e-12, stop_transmittance=0.0
    )
