"""Splats in the order of a curve through space, so that neighbours lie together in memory.

The curve is Morton's: the bits of the three coordinates take turns in one number.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from engine.training.densification import Edit, RefineCounts
from engine.training.gaussians import Gaussians

BITS = 21  # of each coordinate: three fit into 63


def sorted_in_space(model: Gaussians) -> Edit:
    """The edit that puts all splats, with what belongs to them, into the order of the curve."""
    order = morton_order(model.means.detach())
    counts = RefineCounts(cloned=0, split=0, pruned=0, splats=len(model))
    return Edit(order, order[:0], {}, counts, uses_statistics=False)


def morton_order(means: Float[Tensor, "n 3"]) -> Int64[Tensor, "n"]:
    """Rows in the order of the curve through the box of all; rows of one cell keep their order."""
    places = means.to(torch.float64)
    lowest = places.amin(dim=0)
    width = (places.amax(dim=0) - lowest).amax().clamp_min(torch.finfo(torch.float64).tiny)
    cells = ((places - lowest) / width * (2**BITS - 1)).to(torch.int64)
    keys = _spread(cells[:, 0]) | _spread(cells[:, 1]) << 1 | _spread(cells[:, 2]) << 2
    return torch.sort(keys, stable=True).indices


def _spread(cells: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
    """Each of the 21 bits moved to three times its place."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        cells = (cells | cells << shift) & mask
    return cells
