"""Painted patterns with crisp edges: tiles, planks, lettering, stripes, stickers.

Patterns take coordinates in scene units and give linear albedo (n, 3). Sharp edges, not noise:
they hold fine detail that a half-size copy loses, yet each piece of paint is one flat colour.
"""

import torch
from torch import Tensor

Color = tuple[float, float, float]

GLYPHS = {  # 5 columns by 7 rows, drawn for this file
    "A": "01110 10001 10001 11111 10001 10001 10001",
    "C": "01111 10000 10000 10000 10000 10000 01111",
    "D": "11110 10001 10001 10001 10001 10001 11110",
    "E": "11111 10000 10000 11110 10000 10000 11111",
    "G": "01111 10000 10000 10111 10001 10001 01111",
    "I": "11111 00100 00100 00100 00100 00100 11111",
    "L": "10000 10000 10000 10000 10000 10000 11111",
    "M": "10001 11011 10101 10101 10001 10001 10001",
    "N": "10001 11001 10101 10101 10011 10001 10001",
    "O": "01110 10001 10001 10001 10001 10001 01110",
    "P": "11110 10001 10001 11110 10000 10000 10000",
    "R": "11110 10001 10001 11110 10100 10010 10001",
    "S": "01111 10000 10000 01110 00001 00001 11110",
    "T": "11111 00100 00100 00100 00100 00100 00100",
    "U": "10001 10001 10001 10001 10001 10001 01110",
    "V": "10001 10001 10001 10001 10001 01010 00100",
    " ": "00000 00000 00000 00000 00000 00000 00000",
}


def srgb(text: str) -> Color:
    """Linear albedo of a colour written as six hexadecimal digits."""
    levels = (int(text[i : i + 2], 16) / 255 for i in (0, 2, 4))
    r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in levels)
    return r, g, b


def flat(color: Color, like: Tensor) -> Tensor:
    """One colour for every point."""
    return torch.tensor(color).expand(len(like), 3)


def choose(mask: Tensor, yes: Tensor | Color, no: Tensor | Color) -> Tensor:
    """`yes` where the mask (n,) holds, else `no`."""
    return torch.where(mask[:, None], torch.as_tensor(yes), torch.as_tensor(no))


def hashed(a: Tensor, b: Tensor, salt: int = 0) -> Tensor:
    """A repeatable number in 0..1 for each pair of whole numbers (n,)."""
    x = (a.long() * 73_856_093) ^ (b.long() * 19_349_663) ^ (salt * 83_492_791)
    x = (x ^ (x >> 13)) * 1_274_126_177 & 0x7FFFFFFF
    x = (x ^ (x >> 15)) * 668_265_263 & 0x7FFFFFFF
    return (x & 0xFFFF).float() / 65_536


def arcs(u: Tensor, v: Tensor, cell: float, colors: tuple[Color, Color, Color]) -> Tensor:
    """Square tiles with two quarter rings each, turned at random (Truchet); ground, ring, heart."""
    i, j = (u / cell).floor(), (v / cell).floor()
    x, y = u / cell - i, v / cell - j
    turn = hashed(i, j) < 0.5
    x = torch.where(turn, 1 - x, x)
    near = torch.minimum(x.hypot(y), (1 - x).hypot(1 - y))
    ground, ring, heart = colors
    painted = choose((near - 0.5).abs() < 0.155, ring, ground)
    return choose((near - 0.5).abs() < 0.055, heart, painted)


def checker(u: Tensor, v: Tensor, cell: float, one: Color, other: Color) -> Tensor:
    """Squares of two colours."""
    odd = ((u / cell).floor() + (v / cell).floor()).remainder(2) > 0.5
    return choose(odd, one, other)


def planks(u: Tensor, v: Tensor, width: float, length: float, one: Color, other: Color) -> Tensor:
    """Boards along u with dark joints; each board has its own tint between two colours."""
    row = (v / width).floor()
    shifted = u + hashed(row, row, 5) * length
    board = (shifted / length).floor()
    share = hashed(row, board, 9)[:, None]
    painted = torch.tensor(one) * share + torch.tensor(other) * (1 - share)
    joint = (v / width - row < 0.07) | (shifted / length - board < 0.07 * width / length)
    return choose(joint, painted * 0.25, painted)


def lettering(u: Tensor, v: Tensor, text: str, size: float) -> Tensor:
    """Where (n,) capitals of height `size` lie; u runs right from the text's middle, v up."""
    pixel = size / 7
    bitmap = torch.tensor(
        [[c == "1" for g in text for c in (GLYPHS[g].split()[row] + "0")] for row in range(7)]
    )
    width = bitmap.shape[1]
    column = ((u / pixel) + (width - 1) / 2).floor().long()
    row = (3.5 - v / pixel).floor().long()
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < 7)
    return inside & bitmap[row.clamp(0, 6), column.clamp(0, width - 1)]


def text_lines(u: Tensor, v: Tensor, pitch: float, salt: int) -> Tensor:
    """Where (n,) rows of small print lie: words of random length, one row a pitch."""
    row = (v / pitch).floor()
    in_row = (v / pitch - row - 0.5).abs() < 0.25
    word = (u / (pitch * 0.8)).floor()
    return in_row & (hashed(word, row, salt) < 0.72)


def stickers(local: Tensor, normal_axis: Tensor, half: float, colors: list[Color]) -> Tensor:
    """A puzzle cube: three by three coloured squares a side; `normal_axis` (n,) is 0..2."""
    others = torch.tensor([[1, 2], [0, 2], [0, 1]])[normal_axis]
    plane = local.gather(1, others) / half  # (points, 2) in -1..1
    cell = ((plane + 1) * 1.5).floor().clamp(0, 2)
    inside = ((plane + 1) * 1.5 - cell - 0.5).abs().amax(dim=1) < 0.42
    sign = local.gather(1, normal_axis[:, None])[:, 0] > 0
    face = normal_axis * 2 + sign.long()
    number = hashed(cell[:, 0] + 3 * cell[:, 1], face, 3) * len(colors)
    painted = torch.tensor(colors)[number.long().clamp(0, len(colors) - 1)]
    return choose(inside, painted, (0.012, 0.012, 0.014))
