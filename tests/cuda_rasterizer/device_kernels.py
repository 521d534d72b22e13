"""Drives binning and compositing on the device kernel by kernel, for the tests of those kernels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_rasterizer.cuda import binning, sources
from cuda_rasterizer.cuda.binning import DepthOrder, TileLists
from cuda_rasterizer.cuda.launches import WARP, blocks, launch
from cuda_rasterizer.cuda.structures import SortParams
from cuda_rasterizer.cutoffs import CLASSIC, Cutoffs
from cuda_rasterizer.kernel_arguments import pointer
from cuda_rasterizer.projected import Projected
from tests.cuda_rasterizer import margins
from tests.cuda_rasterizer.scenes import SplatScene

CPU = torch.device("cpu")
GUARD = 37
"""Numbers behind each buffer that no kernel may touch."""


def projected_scene(scene: SplatScene, cutoffs: Cutoffs = CLASSIC) -> Projected:
    """The scene on the image plane in float32, contiguous."""
    with torch.no_grad():
        projected = margins.project(scene.to(torch.float32), cutoffs)
    return Projected(*(getattr(projected, name).contiguous() for name in vars(projected)))


@dataclass(frozen=True)
class Binned:
    """All that binning leaves on the device, cut to the instances that there are."""

    ordered: DepthOrder
    lists: TileLists

    @property
    def instances(self) -> int:
        """How many there are."""
        return int(self.ordered.totals[1])

    @property
    def splats(self) -> Tensor:
        """Splat of each instance, tile by tile."""
        return self.lists.instance_splats[: self.instances]


def binned(
    projected: Projected,
    width: int,
    height: int,
    cutoffs: Cutoffs = CLASSIC,
    *,
    with_slots: bool = False,
) -> Binned:
    """Bins with buffers that just hold the instances."""
    ordered = binning.order_by_depth(projected, width, height, cutoffs)
    capacity = int(ordered.totals[1])
    lists = binning.deal_to_tiles(ordered, capacity, width, height, with_slots=with_slots)
    return Binned(ordered, lists)


def sort_once(
    keys: Tensor, values: Tensor, count: int, shift: int, *, narrow: bool
) -> tuple[Tensor, Tensor]:
    """One digit of the device's sort over the first `count` items; each result has a guard."""
    capacity = keys.shape[0]
    sizes = sources.constants()
    sorted_keys = torch.full((capacity + GUARD,), -1, dtype=keys.dtype)
    sorted_values = torch.full((capacity + GUARD,), -1, dtype=torch.int32)
    grid = blocks(capacity, sizes["sort_items"])
    digit_counts = torch.full((sizes["sort_digits"], grid), -1, dtype=torch.int32)
    digit_totals = torch.full((sizes["sort_digits"],), -1, dtype=torch.int32)
    counted = torch.tensor([count])
    params = SortParams(
        keys=pointer(keys),
        values=pointer(values),
        sorted_keys=pointer(sorted_keys),
        sorted_values=pointer(sorted_values),
        digit_counts=pointer(digit_counts),
        digit_totals=pointer(digit_totals),
        count=pointer(counted),
        capacity=capacity,
        shift=shift,
    )
    suffix = "_narrow" if narrow else ""
    launch(f"sort_count{suffix}", params, CPU, grid)
    launch("sort_scan", params, CPU, sizes["sort_digits"], WARP)
    launch(f"sort_scatter{suffix}", params, CPU, grid)
    return sorted_keys, sorted_values
