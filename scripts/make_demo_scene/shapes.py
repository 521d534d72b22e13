"""Shapes that rays can hit: ellipsoids, boxes, lathed profiles, wires and a room seen from inside.

Every shape answers two questions: how far along each ray its first surface lies, and what the
normal and the shape's own coordinates are at points on it. Rays come in batches, float32.
"""

import dataclasses
import itertools
import math
from typing import Protocol

import torch
from torch import Tensor

FAR = 1e9  # the distance of a miss
NEAR = 1e-4  # hits closer than this are the surface that the ray started on


class Shape(Protocol):
    """What the tracer needs of a shape."""

    def distance(self, origins: Tensor, directions: Tensor) -> Tensor:
        """Distance (n,) along each unit ray to the first surface beyond NEAR, else FAR."""

    def surface(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Unit normals (n, 3) and the shape's own coordinates (n, 3) of points on it."""

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Corners (3,) of an axis-aligned box around the shape."""


def unit(vectors: Tensor) -> Tensor:
    """Vectors (n, 3) scaled to length 1."""
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)


def hits_box(origins: Tensor, directions: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Whether each ray passes through an axis-aligned box (n,)."""
    inverse = 1.0 / directions
    a = (low - origins) * inverse
    b = (high - origins) * inverse
    entry = torch.minimum(a, b).amax(dim=1)
    leave = torch.maximum(a, b).amin(dim=1)
    return (leave >= entry) & (leave > 0)


def nearest_root(a: Tensor, half_b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Both roots of a t^2 + 2 half_b t + c = 0, the smaller first; FAR where there are none."""
    discriminant = half_b * half_b - a * c
    real = (discriminant > 0) & (a.abs() > 1e-12)
    root = discriminant.clamp_min(0).sqrt()
    safe = torch.where(real, a, torch.ones_like(a))
    t0, t1 = (-half_b - root) / safe, (-half_b + root) / safe
    far = torch.full_like(a, FAR)
    low = torch.where(real, torch.minimum(t0, t1), far)
    return low, torch.where(real, torch.maximum(t0, t1), far)


def turned(angle_degrees: float) -> Tensor:
    """The rotation (3, 3) about the vertical axis that takes a shape to its place."""
    c, s = math.cos(math.radians(angle_degrees)), math.sin(math.radians(angle_degrees))
    return torch.tensor([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@dataclasses.dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid, turned about the vertical and then tilted about its own second axis."""

    center: tuple[float, float, float]
    radii: tuple[float, float, float]
    angle: float = 0.0
    tilt: float = 0.0

    def _frame(self) -> Tensor:
        c, s = math.cos(math.radians(self.tilt)), math.sin(math.radians(self.tilt))
        return turned(self.angle) @ torch.tensor([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])

    def _local(self, points: Tensor) -> Tensor:
        return (points - torch.tensor(self.center)) @ self._frame() / torch.tensor(self.radii)

    def distance(self, origins: Tensor, directions: Tensor) -> Tensor:
        """As `Shape.distance`."""
        o = self._local(origins)
        d = directions @ self._frame() / torch.tensor(self.radii)
        first, second = nearest_root((d * d).sum(1), (o * d).sum(1), (o * o).sum(1) - 1.0)
        far = torch.full_like(first, FAR)
        return torch.where(first > NEAR, first, torch.where(second > NEAR, second, far))

    def surface(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """As `Shape.surface`."""
        local = self._local(points)
        normal = unit(local / torch.tensor(self.radii)) @ self._frame().T
        return normal, local

    def bounds(self) -> tuple[Tensor, Tensor]:
        """As `Shape.bounds`."""
        reach = ((self._frame() * torch.tensor(self.radii)) ** 2).sum(1).sqrt()
        return torch.tensor(self.center) - reach, torch.tensor(self.center) + reach


@dataclasses.dataclass(frozen=True)
class Box:
    """A box turned about the vertical; its own coordinates run from -half to +half."""

    center: tuple[float, float, float]
    half: tuple[float, float, float]
    angle: float = 0.0

    def _local(self, points: Tensor) -> Tensor:
        return (points - torch.tensor(self.center)) @ turned(self.angle)

    def distance(self, origins: Tensor, directions: Tensor) -> Tensor:
        """As `Shape.distance`."""
        o, inverse = self._local(origins), 1.0 / (directions @ turned(self.angle))
        half = torch.tensor(self.half)
        a, b = (-half - o) * inverse, (half - o) * inverse
        entry = torch.minimum(a, b).amax(dim=1)
        leave = torch.maximum(a, b).amin(dim=1)
        t = torch.where(entry > NEAR, entry, leave)
        return torch.where((leave >= entry) & (t > NEAR), t, torch.full_like(t, FAR))

    def surface(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """As `Shape.surface`."""
        local = self._local(points)
        scaled = local / torch.tensor(self.half)
        axis = scaled.abs().argmax(dim=1, keepdim=True)
        normal = torch.zeros_like(local).scatter_(1, axis, scaled.gather(1, axis).sign())
        return normal @ turned(self.angle).T, local

    def bounds(self) -> tuple[Tensor, Tensor]:
        """As `Shape.bounds`."""
        reach = turned(self.angle).abs() @ torch.tensor(self.half)
        return torch.tensor(self.center) - reach, torch.tensor(self.center) + reach


@dataclasses.dataclass(frozen=True)
class Room:
    """The inside of an axis-aligned box: every ray that starts in it ends on it."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    def distance(self, origins: Tensor, directions: Tensor) -> Tensor:
        """As `Shape.distance`."""
        inverse = 1.0 / directions
        a = (torch.tensor(self.low) - origins) * inverse
        b = (torch.tensor(self.high) - origins) * inverse
        return torch.maximum(a, b).amin(dim=1)

    def surface(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """As `Shape.surface`."""
        low, high = torch.tensor(self.low), torch.tensor(self.high)
        gaps = torch.cat([(points - low).abs(), (points - high).abs()], dim=1)
        side = gaps.argmin(dim=1)
        normals = torch.cat([torch.eye(3), -torch.eye(3)])
        return normals[side], points

    def bounds(self) -> tuple[Tensor, Tensor]:
        """As `Shape.bounds`."""
        return torch.tensor(self.low), torch.tensor(self.high)


@dataclasses.dataclass(frozen=True)
class Lathe:
    """A profile of (radius, height) points turned about a vertical axis.

    Each piece of the profile is a cone, a cylinder or a flat ring; `smooth` blends the normals
    along the profile. Own coordinates: angle / pi, height, position along the profile in pieces.
    """

    center: tuple[float, float, float]
    profile: tuple[tuple[float, float], ...]
    smooth: bool = True

    def distance(self, origins: Tensor, directions: Tensor) -> Tensor:
        """As `Shape.distance`."""
        o = origins - torch.tensor(self.center)
        best = torch.full((len(o),), FAR)
        for (r0, z0), (r1, z1) in itertools.pairwise(self.profile):
            if abs(z1 - z0) < 1e-6:
                candidates = [(z0 - o[:, 2]) / directions[:, 2]]
            else:
                slope = (r1 - r0) / (z1 - z0)
                radius = r0 + slope * (o[:, 2] - z0)
                growth = slope * directions[:, 2]
                a = directions[:, 0] ** 2 + directions[:, 1] ** 2 - growth**2
                half_b = o[:, 0] * directions[:, 0] + o[:, 1] * directions[:, 1] - radius * growth
                c = o[:, 0] ** 2 + o[:, 1] ** 2 - radius**2
                candidates = list(nearest_root(a, half_b, c))
            for t in candidates:
                z = o[:, 2] + t * directions[:, 2]
                x, y = o[:, 0] + t * directions[:, 0], o[:, 1] + t * directions[:, 1]
                if abs(z1 - z0) < 1e-6:
                    inside = (x * x + y * y).sqrt()
                    on = (inside >= min(r0, r1)) & (inside <= max(r0, r1))
                else:
                    on = (z >= min(z0, z1)) & (z <= max(z0, z1))
                best = torch.where(on & (t > NEAR) & (t < best), t, best)
        return best

    def surface(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """As `Shape.surface`."""
        local = points - torch.tensor(self.center)
        radius = local[:, :2].norm(dim=1)
        profile = torch.tensor(self.profile)
        start, step = profile[:-1], profile[1:] - profile[:-1]
        flat = torch.stack([radius, local[:, 2]], dim=1)
        along = ((flat[:, None] - start) * step).sum(2) / (step * step).sum(1)
        along = along.clamp(0.0, 1.0)  # (points, pieces)
        gap = (flat[:, None] - start - along[:, :, None] * step).norm(dim=2)
        piece = gap.argmin(dim=1)
        share = along.gather(1, piece[:, None])[:, 0]
        normals = unit(torch.stack([step[:, 1], -step[:, 0]], dim=1))
        if self.smooth:
            padded = torch.cat([normals[:1], normals, normals[-1:]])
            corners = unit(padded[:-1] + padded[1:])
            chosen = corners[piece] * (1 - share[:, None]) + corners[piece + 1] * share[:, None]
        else:
            chosen = normals[piece]
        outward = local[:, :2] / radius.clamp_min(1e-9)[:, None]
        normal = torch.cat([outward * chosen[:, :1], chosen[:, 1:]], dim=1)
        angle = torch.atan2(local[:, 1], local[:, 0]) / math.pi
        return unit(normal), torch.stack([angle, local[:, 2], piece + share], dim=1)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """As `Shape.bounds`."""
        center = torch.tensor(self.center)
        reach = max(r for r, _ in self.profile)
        heights = [z for _, z in self.profile]
        low = center + torch.tensor([-reach, -reach, min(heights) - 1e-3])
        return low, center + torch.tensor([reach, reach, max(heights) + 1e-3])


@dataclasses.dataclass(frozen=True)
class Wires:
    """Round wires of one radius between pairs of points, with round ends."""

    pieces: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...]
    radius: float

    def distance(self, origins: Tensor, directions: Tensor) -> Tensor:
        """As `Shape.distance`."""
        rays, pieces = self._close_pairs(origins, directions)
        ends = torch.tensor(self.pieces)
        start, axis = ends[pieces, 0], ends[pieces, 1] - ends[pieces, 0]
        d = directions[rays]
        o = origins[rays] - start
        length2 = (axis * axis).sum(1)
        axis_o, axis_d, o_d = (o * axis).sum(1), (d * axis).sum(1), (o * d).sum(1)
        body, _ = nearest_root(
            length2 - axis_d * axis_d,
            length2 * o_d - axis_o * axis_d,
            length2 * ((o * o).sum(1) - self.radius**2) - axis_o * axis_o,
        )
        along = axis_o + body * axis_d
        miss = torch.full_like(body, FAR)
        best = torch.where((along > 0) & (along < length2) & (body > NEAR), body, miss)
        for tip in (o, o - axis):
            half_b, one = (tip * d).sum(1), torch.ones_like(o_d)
            cap, _ = nearest_root(one, half_b, (tip * tip).sum(1) - self.radius**2)
            best = torch.where((cap > NEAR) & (cap < best), cap, best)
        nothing = torch.full((len(origins),), FAR)
        return nothing.scatter_reduce(0, rays, best, "amin")

    def _close_pairs(self, origins: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of the rays and pieces whose line passes through the ball around the piece."""
        ends = torch.tensor(self.pieces)
        middle = ends.mean(1)
        ball = (ends[:, 0] - ends[:, 1]).norm(dim=1) / 2 + self.radius
        ahead = directions @ middle.T - (origins * directions).sum(1, keepdim=True)
        squared = (origins * origins).sum(1, keepdim=True) - 2 * origins @ middle.T
        reach = (middle * middle).sum(1) - ball * ball
        rays, pieces = (squared + reach <= ahead * ahead).nonzero(as_tuple=True)
        return rays, pieces

    def surface(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """As `Shape.surface`."""
        ends = torch.tensor(self.pieces)  # (pieces, 2, 3)
        start, axis = ends[:, 0], ends[:, 1] - ends[:, 0]
        share = ((points[:, None] - start) * axis).sum(2) / (axis * axis).sum(1)
        nearest = start + share.clamp(0.0, 1.0)[:, :, None] * axis
        gap = (points[:, None] - nearest).norm(dim=2)
        piece = gap.argmin(dim=1)
        rows = torch.arange(len(points))
        normal = unit(points - nearest[rows, piece])
        along = share[rows, piece]
        return normal, torch.stack([piece.float(), along, torch.zeros_like(along)], dim=1)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """As `Shape.bounds`."""
        ends = torch.tensor(self.pieces).reshape(-1, 3)
        return ends.amin(0) - self.radius, ends.amax(0) + self.radius
