"""The still life: a round table with a patterned cloth, a vase, a bird cage, books, fruit, a mug.

Units are about half a metre; the table top is z = 0, z points up. The room around it is plain on
purpose: the eye, and the splats, belong on the table.
"""

import itertools
import math

import torch
from torch import Tensor

from scripts.make_demo_scene.shapes import Box, Ellipsoid, Lathe, Room, Wires
from scripts.make_demo_scene.textures import (
    arcs,
    checker,
    choose,
    flat,
    lettering,
    planks,
    srgb,
    stickers,
    text_lines,
)
from scripts.make_demo_scene.tracer import Lamp, Material, Shade, Thing, World

Point = tuple[float, float, float]

INK, CREAM, OCHRE = srgb("35567f"), srgb("e9dec8"), srgb("d9902f")
BRICK, SAGE, TEAL = srgb("b5442e"), srgb("8aa37b"), srgb("1f7a78")
CAGE_CENTER = (-0.42, 0.38)
CAGE_RADIUS = 0.34


def _room(local: Tensor, normal: Tensor) -> Tensor:
    x, y, z = local.unbind(1)
    tiles = checker(x + 0.13, y + 0.21, 0.62, srgb("8d6b52"), srgb("c4ab8c"))
    along = torch.where(normal[:, 0].abs() > 0.5, y, x)
    stripe = (along / 0.9).floor().remainder(2) > 0.5
    wall = choose(stripe, srgb("5d8a92"), srgb("6d9aa0"))
    wall = choose(z < -0.15, srgb("cfbf9f"), wall)
    wall = choose((z + 0.15).abs() < 0.05, srgb("6b4a36"), wall)
    return choose(normal[:, 2] > 0.5, tiles, choose(normal[:, 2] < -0.5, CREAM, wall))


def _table_top(local: Tensor, normal: Tensor) -> Tensor:
    angle, radius = local[:, 0] * math.pi, local[:, 2]
    radius = (4.0 - radius).clamp(0, 1) * 1.45  # the last piece of the profile is the top
    x, y = radius * angle.cos(), radius * angle.sin()
    wood = planks(x, y, 0.22, 1.5, srgb("8a5a34"), srgb("b98550"))
    turn = math.radians(28)
    u, v = x * math.cos(turn) + y * math.sin(turn), y * math.cos(turn) - x * math.sin(turn)
    edge = torch.maximum(u.abs(), v.abs())
    cloth = arcs(u, v, 0.26, (CREAM, INK, OCHRE))
    band = choose((edge - 0.82).abs() < 0.025, CREAM, INK)
    tooth = (torch.where(u.abs() > v.abs(), v, u) / 0.1).floor().remainder(2) > 0.5
    band = choose((edge > 0.87) & tooth, CREAM, band)
    cloth = choose(edge > 0.78, band, cloth)
    top = choose(edge < 0.91, cloth, wood)
    return choose(normal[:, 2] > 0.5, top, srgb("6e4526"))


def _vase(local: Tensor, normal: Tensor) -> Tensor:
    angle, z = local[:, 0], local[:, 1]
    glaze = flat(TEAL, local)
    wave = (angle * 9).remainder(1.0)
    zigzag = 0.40 + 0.05 * (2 * (wave - 0.5).abs())
    band = choose((z - zigzag).abs() < 0.016, CREAM, glaze)
    petals = ((z - 0.24) / 0.085) ** 2 + ((angle * 6).remainder(1.0) - 0.5) ** 2 * 9 < 1
    band = choose(petals, OCHRE, band)
    rings = ((z - 0.10).abs() < 0.012) | ((z - 0.36).abs() < 0.008) | ((z - 0.74).abs() < 0.02)
    return choose(rings, CREAM, band)


def _mug(local: Tensor, normal: Tensor) -> Tensor:
    z = local[:, 1]
    stripe = (z > 0.05) & (z < 0.21) & ((z / 0.027).floor().remainder(2) > 0.5)
    dots = (local[:, 0] * 8).floor().remainder(2) > 0.5
    return choose(stripe & dots, BRICK, choose(stripe, INK, CREAM))


def _book(cover: Point, title: str, half: Point, salt: int) -> Material:
    def paint(local: Tensor, normal: Tensor) -> Tensor:
        x, z = local[:, 0] / half[0], local[:, 2] / half[2]
        paper = choose((local[:, 2] / 0.016).floor().remainder(2) > 0.5, CREAM, srgb("b9ab90"))
        u, v = local[:, 0], local[:, 1]
        front = choose(lettering(u, v - 0.10, title, 0.085), CREAM, cover)
        print_here = (v < 0.02) & (v > -half[1] + 0.06) & (u.abs() < half[0] - 0.07)
        front = choose(print_here & text_lines(u, v, 0.052, salt), CREAM, front)
        frame = torch.maximum(u.abs() - half[0], v.abs() - half[1])
        front = choose((frame + 0.032).abs() < 0.008, OCHRE, front)
        spine = choose(lettering(-v, local[:, 2], title, half[2] * 1.0), CREAM, cover)
        board = choose(z.abs() > 0.78, cover, paper)
        is_spine = x < -0.999
        return choose(z.abs() > 0.999, front, choose(is_spine, spine, board))

    return Material(paint, gloss=0.08)


def _puzzle(local: Tensor, normal: Tensor) -> Tensor:
    axis = (local.abs() / 0.13).argmax(dim=1)
    colors = ["c8322b", "f0f0ea", "e9b824", "2f6fb0", "3f8f4f", "e07a2c"]
    return stickers(local, axis, 0.13, [srgb(color) for color in colors])


def _apple(local: Tensor, normal: Tensor) -> Tensor:
    angle = torch.atan2(local[:, 1], local[:, 0]) / math.pi
    streak = (angle * 9).remainder(1.0) < 0.28 + 0.3 * local[:, 2]
    return choose(streak, srgb("d8963a"), srgb("a8201f"))


def _plain(text: str, gloss: float = 0.0) -> Material:
    color = srgb(text)
    return Material(lambda local, normal: flat(color, local), gloss=gloss)


def _cage() -> list[Thing]:
    """Wires of a bird cage: straight ribs, a dome of arcs, three hoops, a ring to hang it by."""
    x0, y0 = CAGE_CENTER
    pieces: list[tuple[Point, Point]] = []
    ribs, wall = 14, 0.52

    def dome(angle: float, rise: float) -> Point:
        r = CAGE_RADIUS * math.cos(rise)
        return (
            x0 + r * math.cos(angle),
            y0 + r * math.sin(angle),
            wall + CAGE_RADIUS * math.sin(rise),
        )

    for rib in range(ribs):
        angle = 2 * math.pi * rib / ribs
        foot = dome(angle, 0.0)
        heights = [0.03 + (wall - 0.03) * k / 4 for k in range(5)]
        straight = [(foot[0], foot[1], z) for z in heights]
        pieces += list(itertools.pairwise(straight))
        steps = [dome(angle, math.pi / 2 * k / 6) for k in range(7)]
        pieces += list(itertools.pairwise(steps))
    ring = [
        (x0 + 0.06 * math.cos(a), y0, wall + CAGE_RADIUS + 0.06 + 0.06 * math.sin(a))
        for a in (2 * math.pi * k / 10 for k in range(11))
    ]
    pieces += list(itertools.pairwise(ring))
    brass = Material(lambda local, normal: flat(srgb("c99a3f"), local), gloss=0.5, shininess=60)
    things = [Thing(Wires(tuple(pieces), 0.0095), brass)]
    for z in (0.20, 0.36, wall):
        hoop = ((CAGE_RADIUS + 0.01, z - 0.013), (CAGE_RADIUS + 0.01, z + 0.013))
        things.append(Thing(Lathe((x0, y0, 0.0), hoop, smooth=False), brass))
    base = ((0.0, 0.0), (0.38, 0.0), (0.38, 0.05), (0.0, 0.05))
    things.append(Thing(Lathe((x0, y0, 0.0), base, smooth=False), _plain("7a4a2a")))
    perch = (((x0 - 0.2, y0 - 0.2, 0.2), (x0 + 0.2, y0 + 0.2, 0.2)),)
    things.append(Thing(Wires(perch, 0.016), _plain("8a6a44")))
    return things


def _bird() -> list[Thing]:
    x, y = CAGE_CENTER
    orange, wing = _plain("e2682a"), _plain("8d2f1c")
    return [
        Thing(Ellipsoid((x, y, 0.30), (0.13, 0.085, 0.09), 45, -18), orange),
        Thing(Ellipsoid((x + 0.085, y + 0.085, 0.385), (0.06, 0.06, 0.06)), orange),
        Thing(Ellipsoid((x + 0.145, y + 0.145, 0.38), (0.04, 0.014, 0.014), 45), _plain("efc04a")),
        Thing(Ellipsoid((x - 0.13, y - 0.13, 0.26), (0.12, 0.03, 0.02), 45, -20), wing),
        Thing(Ellipsoid((x - 0.075, y + 0.035, 0.305), (0.1, 0.03, 0.055), 45, -18), wing),
        Thing(Ellipsoid((x + 0.035, y - 0.075, 0.305), (0.1, 0.03, 0.055), 45, -18), wing),
        Thing(Ellipsoid((x + 0.09, y + 0.135, 0.40), (0.012, 0.012, 0.012)), _plain("101010")),
        Thing(Ellipsoid((x + 0.135, y + 0.09, 0.40), (0.012, 0.012, 0.012)), _plain("101010")),
    ]


def _vase_and_ball() -> list[Thing]:
    profile = (
        (0.0, 0.0), (0.15, 0.0), (0.17, 0.02), (0.235, 0.12), (0.27, 0.24), (0.255, 0.34),
        (0.20, 0.44), (0.135, 0.53), (0.105, 0.61), (0.105, 0.68), (0.14, 0.75), (0.165, 0.77),
    )  # fmt: skip
    glaze = Material(_vase, gloss=1.2, shininess=140, mirror=0.07)
    gold = Material(
        lambda local, normal: flat(srgb("f3d28c"), local), 1.0, 200, mirror=0.85, metal=True
    )
    return [
        Thing(Lathe((0.46, 0.30, 0.0), profile), glaze),
        Thing(Ellipsoid((0.16, -0.02, 0.11), (0.11, 0.11, 0.11)), gold),
    ]


def _books() -> list[Thing]:
    low, high = (0.36, 0.27, 0.05), (0.31, 0.23, 0.045)
    return [
        Thing(Box((0.42, -0.50, 0.05), low, 14), _book(BRICK, "GAUSS", low, 1)),
        Thing(Box((0.40, -0.49, 0.145), high, -9), _book(SAGE, "SPLATS", high, 2)),
        Thing(Box((0.30, -0.45, 0.32), (0.13, 0.13, 0.13), 33), Material(_puzzle, gloss=0.15)),
    ]


def _fruit() -> list[Thing]:
    lemon = _plain("e8c22e", 0.15)
    pear = (
        (0.0, 0.0), (0.05, 0.004), (0.10, 0.04), (0.122, 0.10), (0.105, 0.17), (0.07, 0.23),
        (0.052, 0.28), (0.03, 0.31), (0.0, 0.318),
    )  # fmt: skip
    return [
        Thing(Ellipsoid((-0.30, -0.40, 0.105), (0.125, 0.125, 0.105)), Material(_apple, 0.3)),
        Thing(Wires((((-0.30, -0.40, 0.19), (-0.28, -0.39, 0.27)),), 0.009), _plain("4a3320")),
        Thing(Ellipsoid((-0.10, -0.58, 0.085), (0.125, 0.085, 0.085), 30), lemon),
        Thing(Ellipsoid((-0.50, -0.18, 0.08), (0.12, 0.08, 0.08), 110), lemon),
        Thing(Lathe((-0.57, -0.47, 0.0), pear), _plain("9fae3c", 0.12)),
        Thing(Wires((((-0.57, -0.47, 0.31), (-0.585, -0.46, 0.38)),), 0.009), _plain("4a3320")),
    ]


def _mug_and_pencils() -> list[Thing]:
    x, y = 0.02, 0.62
    body = ((0.0, 0.0), (0.12, 0.0), (0.13, 0.02), (0.13, 0.26), (0.115, 0.26), (0.115, 0.03))
    turns = [-1.2 + 2.4 * k / 6 for k in range(7)]
    handle = [(x - 0.11 - 0.09 * math.cos(a), y, 0.135 + 0.09 * math.sin(a)) for a in turns]
    things = [
        Thing(Lathe((x, y, 0.0), body, smooth=False), Material(_mug, gloss=0.4, shininess=90)),
        Thing(Wires(tuple(itertools.pairwise(handle)), 0.018), _plain("f2e8d5", 0.3)),
    ]
    for color, lean, angle in (("e3b23c", 0.09, 0.4), ("3f8f6a", 0.10, 2.6), ("c8402f", 0.08, 4.6)):
        tip = (x + lean * math.cos(angle), y + lean * math.sin(angle), 0.50 + lean)
        foot = (x - 0.05 * math.cos(angle), y - 0.05 * math.sin(angle), 0.04)
        neck = tuple(foot[i] + 0.88 * (tip[i] - foot[i]) for i in range(3))
        things.append(Thing(Wires(((foot, neck),), 0.016), _plain(color, 0.2)))  # type: ignore[arg-type]
        things.append(Thing(Wires(((neck, tip),), 0.009), _plain("ead2a4")))  # type: ignore[arg-type]
    return things


def still_life() -> World:
    """The whole scene."""
    table = Lathe(
        (0.0, 0.0, 0.0),
        ((0.12, -0.9), (0.12, -0.06), (1.45, -0.06), (1.45, 0.0), (0.0, 0.0)),
        False,
    )
    foot = Lathe((0.0, 0.0, 0.0), ((0.6, -0.9), (0.55, -0.82), (0.1, -0.76)), False)
    room = Room((-3.6, -3.6, -0.9), (3.6, 3.6, 3.4))
    shades = [
        Shade((CAGE_CENTER[0], CAGE_CENTER[1], 0.05), 0.22),
        Shade((0.46, 0.30, 0.22), 0.25),
        Shade((0.16, -0.02, 0.10), 0.10),
        Shade((0.42, -0.50, 0.05), 0.24),
        Shade((-0.30, -0.40, 0.10), 0.115),
        Shade((-0.10, -0.58, 0.08), 0.09),
        Shade((-0.50, -0.18, 0.08), 0.09),
        Shade((-0.57, -0.47, 0.10), 0.11),
        Shade((0.02, 0.62, 0.12), 0.13),
        Shade((0.0, 0.0, -0.35), 0.9),
    ]
    return World(
        groups=[
            [Thing(room, Material(_room))],
            [Thing(table, Material(_table_top, gloss=0.03))],
            [Thing(foot, _plain("6e4526"))],
            _cage(),
            _bird(),
            _vase_and_ball(),
            _books(),
            _fruit(),
            _mug_and_pencils(),
        ],
        lamp=Lamp((1.6, -2.2, 3.1), 0.45, (1.02, 0.94, 0.80)),
        sky=(0.50, 0.53, 0.57),
        ground=(0.27, 0.24, 0.20),
        shades=shades,
    )
