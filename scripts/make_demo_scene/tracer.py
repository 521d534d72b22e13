"""The ray tracer: soft shadow of one lamp, sky light with contact shade, two mirror bounces.

Colours are linear until the very end; a pixel is the mean of its samples. Everything is a
function of the scene and of a seeded generator, so that the same versions give the same pictures.
"""

import dataclasses
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from scripts.make_demo_scene.shapes import FAR, NEAR, Shape, hits_box, unit

CHUNK = 24_576  # rays at a time: the temporaries of one chunk stay in cache


@dataclasses.dataclass(frozen=True)
class Material:
    """How a surface looks: `paint` gives albedo (n, 3) from own coordinates and world normals."""

    paint: Callable[[Tensor, Tensor], Tensor]
    gloss: float = 0.0  # strength of the lamp's highlight
    shininess: float = 40.0
    mirror: float = 0.0  # reflectance seen straight on; rises at grazing angles (Schlick)
    metal: bool = False  # reflections take the colour of the paint


@dataclasses.dataclass(frozen=True)
class Thing:
    """A shape with a material."""

    shape: Shape
    material: Material


@dataclasses.dataclass(frozen=True)
class Shade:
    """A ball that stands for an object where the sky light is blocked near it."""

    center: tuple[float, float, float]
    radius: float


@dataclasses.dataclass(frozen=True)
class Lamp:
    """A round lamp facing the origin."""

    center: tuple[float, float, float]
    radius: float
    color: tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class World:
    """Things by group (a group is skipped by rays that miss its box), light and contact shade."""

    groups: Sequence[Sequence[Thing]]
    lamp: Lamp
    sky: tuple[float, float, float]
    ground: tuple[float, float, float]
    shades: Sequence[Shade]

    def things(self) -> list[Thing]:
        """All things, in the order of the numbers that `nearest` gives."""
        return [thing for group in self.groups for thing in group]


def nearest(world: World, origins: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Distance (n,) to the first surface and the number (n,) of its thing."""
    best = torch.full((len(origins),), FAR)
    which = torch.zeros(len(origins), dtype=torch.long)
    first = 0
    for group in world.groups:
        corners = [thing.shape.bounds() for thing in group]
        low = torch.stack([corner[0] for corner in corners]).amin(0)
        high = torch.stack([corner[1] for corner in corners]).amax(0)
        rows = hits_box(origins, directions, low, high).nonzero()[:, 0]
        if len(rows):
            some_origins, some_directions = origins[rows], directions[rows]
            best_here, which_here = best[rows], which[rows]
            for number, thing in enumerate(group, first):
                t = thing.shape.distance(some_origins, some_directions)
                closer = t < best_here
                best_here = torch.where(closer, t, best_here)
                which_here = torch.where(closer, torch.tensor(number), which_here)
            best[rows], which[rows] = best_here, which_here
        first += len(group)
    return best, which


def _lit(world: World, points: Tensor, normals: Tensor, random: Tensor) -> tuple[Tensor, Tensor]:
    """Direction (n, 3) to a point of the lamp and how much of it arrives (n,): 0 in shadow."""
    center = torch.tensor(world.lamp.center)
    axis = center / center.norm()
    side = torch.linalg.cross(axis, torch.tensor([0.0, 0.0, 1.0]))
    side = side / side.norm()
    other = torch.linalg.cross(axis, side)
    radius = world.lamp.radius * random[:, :1].sqrt()
    angle = 2 * torch.pi * random[:, 1:]
    target = center + radius * (angle.cos() * side + angle.sin() * other)
    to_lamp = target - points
    reach = to_lamp.norm(dim=1)
    direction = to_lamp / reach[:, None]
    cosine = (direction * normals).sum(1).clamp_min(0)
    arrives = torch.zeros_like(cosine)
    rows = (cosine > 0).nonzero()[:, 0]
    blocked, _ = nearest(world, points[rows] + 2 * NEAR * normals[rows], direction[rows])
    arrives[rows] = (blocked >= reach[rows] - 1e-3).float()
    return direction, arrives * cosine


def _sky_light(world: World, points: Tensor, normals: Tensor) -> Tensor:
    """Light (n, 3) from the whole room, less what the shades near the point block."""
    up = 0.5 + 0.5 * normals[:, 2:]
    light = up * torch.tensor(world.sky) + (1 - up) * torch.tensor(world.ground)
    openness = torch.ones(len(points))
    for shade in world.shades:
        offset = torch.tensor(shade.center) - points
        gap = offset.norm(dim=1).clamp_min(shade.radius * 0.6)
        cosine = (offset * normals).sum(1) / gap
        blocked = cosine.clamp_min(0) * (shade.radius / gap) ** 2
        openness = openness * (1 - 0.85 * blocked.clamp(0, 1))
    return light * openness[:, None]


def shade(
    world: World, origins: Tensor, directions: Tensor, random: Tensor, bounces: int
) -> tuple[Tensor, Tensor]:
    """Linear colour (n, 3) that each ray sees, and the distance (n,) to what it sees."""
    t, which = nearest(world, origins, directions)
    points = origins + t[:, None] * directions
    normals, albedo = torch.zeros_like(points), torch.zeros_like(points)
    gloss, shininess, mirror = (torch.zeros(len(points)) for _ in range(3))
    metal = torch.zeros(len(points), dtype=torch.bool)
    for number, thing in enumerate(world.things()):
        rows = (which == number).nonzero()[:, 0]
        if not len(rows):
            continue
        normal, local = thing.shape.surface(points[rows])
        normal = torch.where((normal * directions[rows]).sum(1, keepdim=True) > 0, -normal, normal)
        normals[rows] = normal
        albedo[rows] = thing.material.paint(local, normal)
        gloss[rows], shininess[rows] = thing.material.gloss, thing.material.shininess
        mirror[rows], metal[rows] = thing.material.mirror, thing.material.metal
    to_lamp, lit = _lit(world, points, normals, random)
    lamp = torch.tensor(world.lamp.color)
    color = albedo * (lit[:, None] * lamp + _sky_light(world, points, normals))
    half = unit(to_lamp - directions)
    highlight = gloss * (half * normals).sum(1).clamp_min(0) ** shininess * (lit > 0)
    color = color + highlight[:, None] * lamp
    rows = (mirror > 0).nonzero()[:, 0]
    if bounces and len(rows):
        n, d = normals[rows], directions[rows]
        facing = -(n * d).sum(1)
        grazing = (1 - facing.clamp(0, 1)) ** 5
        share = (mirror[rows] + (1 - mirror[rows]) * grazing)[:, None]
        bounced = d + 2 * facing[:, None] * n
        seen, _ = shade(world, points[rows] + 2 * NEAR * n, bounced, random[rows], bounces - 1)
        tint = torch.where(metal[rows, None], albedo[rows], torch.ones(3))
        color[rows] = color[rows] * (1 - share) + share * tint * seen
    return color, t


def to_display(linear: Tensor) -> Tensor:
    """Linear colour as display values in 0..1: a soft shoulder, then the sRGB curve."""
    shoulder = 0.8
    over = (linear - shoulder).clamp_min(0)
    curved = torch.where(linear > shoulder, shoulder + over / (1 + over / (1 - shoulder)), linear)
    bent = 1.055 * curved.clamp_min(0.0031308) ** (1 / 2.4) - 0.055
    return torch.where(curved <= 0.0031308, 12.92 * curved, bent).clamp(0, 1)


def pixel_rays(
    camera_to_world: Tensor, focal: float, width: int, height: int, offset: Tensor
) -> tuple[Tensor, Tensor]:
    """One unit ray a pixel, row by row, through `offset` (pixels, 2) in 0..1 inside each pixel."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    corner = torch.stack([columns.reshape(-1), rows.reshape(-1)], dim=1).float()
    flat = (corner + offset - torch.tensor([width / 2, height / 2])) / focal
    directions = (
        unit(torch.cat([flat, torch.ones(len(flat), 1)], dim=1)) @ camera_to_world[:3, :3].T
    )
    return camera_to_world[:3, 3].expand(len(flat), 3), directions


def render(
    world: World,
    camera_to_world: Tensor,
    focal: float,
    width: int,
    height: int,
    *,
    samples_per_side: int,
    generator: torch.Generator,
) -> Tensor:
    """Display picture (height, width, 3): the mean of stratified samples of pixel and lamp."""
    count, side = width * height, samples_per_side
    total = torch.zeros(count, 3)
    order = torch.rand(count, side * side, generator=generator).argsort(dim=1)
    for sample in range(side * side):
        jitter = torch.rand(count, 4, generator=generator)
        cell = torch.tensor([sample % side, sample // side])
        offset = (cell + jitter[:, :2]) / side
        origins, directions = pixel_rays(camera_to_world, focal, width, height, offset)
        lamp_cell = torch.stack([order[:, sample] % side, order[:, sample] // side], dim=1)
        random = (lamp_cell + jitter[:, 2:]) / side
        for first in range(0, count, CHUNK):
            rows = slice(first, first + CHUNK)
            color, _ = shade(world, origins[rows], directions[rows], random[rows], bounces=2)
            total[rows] += color
    return to_display(total / side**2).reshape(height, width, 3)


def depth_map(
    world: World, camera_to_world: Tensor, focal: float, width: int, height: int
) -> Tensor:
    """Distance along each pixel centre's ray (height, width)."""
    offset = torch.full((width * height, 2), 0.5)
    origins, directions = pixel_rays(camera_to_world, focal, width, height, offset)
    return nearest(world, origins, directions)[0].reshape(height, width)
