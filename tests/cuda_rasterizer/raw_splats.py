"""A handful of splats as training holds them, all in front of one small camera."""

import torch
from torch import Tensor

COUNT = 67  # two warps and a rest of a third
SIZE = (32, 24)
INTRINSICS = torch.tensor([[30.0, 0, 16], [0, 30, 12], [0, 0, 1]])


def raw_splats() -> dict[str, Tensor]:
    """By the names of `step_guard.GRADIENTS`; always the same."""
    random = torch.Generator().manual_seed(4)

    def normal(*shape: int) -> Tensor:
        return torch.randn(COUNT, *shape, generator=random)

    return {
        "means": 0.4 * normal(3) + torch.tensor([0.0, 0.0, 3.0]),
        "quaternions": normal(4),
        "scales": 0.3 * normal(3) - 2.0,
        "opacities": normal(),
        "sh_dc": normal(1, 3),
        "sh_rest": 0.1 * normal(15, 3),
    }
