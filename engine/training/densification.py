"""What a densification strategy is: it watches gradients and says which splats come and go.

A strategy decides and never touches model or optimiser; it answers with an `Edit`, which the
trainer carries out on parameters, moments and statistics alike. `classic` is the one of 3DGS.
"""

import dataclasses
from collections.abc import Mapping
from typing import Protocol

import torch
from jaxtyping import Float, Int32, Int64
from torch import Tensor

from cuda_rasterizer import add_screen_gradients
from engine.settings import Settings
from engine.training.gaussians import Gaussians


@dataclasses.dataclass(frozen=True)
class RefineCounts:
    """How many splats were cloned, split (parents) and pruned, and how many there are now.

    `refused`: how many more would have been cloned or split, had the splat cap left room.
    """

    cloned: int
    split: int
    pruned: int
    splats: int
    refused: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Edit:
    """Which splats there shall be: kept rows in order, then new rows.

    Each new row is a copy of the old row that `sources` names, but for the parameters in
    `overrides`, which hold a value for every new row.
    """

    kept: Int64[Tensor, "k"]
    sources: Int64[Tensor, "m"]
    overrides: Mapping[str, Tensor]
    counts: RefineCounts
    uses_statistics: bool  # the gradients seen so far were acted on, and start afresh
    notices: tuple[str, ...] = ()

    def parameters(self, model: Gaussians) -> dict[str, Tensor]:
        """The parameters after the edit: new tensors, the model's own are left whole."""
        after = model.gathered(torch.cat([self.kept, self.sources]))
        for name, values in self.overrides.items():
            after[name][len(self.kept) :] = values
        return after


class DensifyStatistics:
    """Screen gradients seen since the last refine.

    `gradient_sum` (n,): sum of the norms in NDC units; `visits` (n,): views that saw the splat.
    Every change makes new tensors, so that whoever holds the old ones can put them back.
    """

    def __init__(self, gradient_sum: Float[Tensor, "n"], visits: Float[Tensor, "n"]) -> None:
        self.gradient_sum = gradient_sum
        self.visits = visits

    @classmethod
    def zeros(cls, count: int, device: torch.device | None = None) -> "DensifyStatistics":
        """Nothing seen yet of `count` splats, on `device` (None: the CPU)."""
        return cls(torch.zeros(count, device=device), torch.zeros(count, device=device))

    def plus(
        self,
        gradient_px: Float[Tensor, "n 2"],
        radii: Int32[Tensor, "n 2"],
        width: int,
        height: int,
        backend: str,
    ) -> "DensifyStatistics":
        """With one view added: the gradient of the 2-D means in pixels; radius 0 was not seen."""
        return DensifyStatistics(
            *add_screen_gradients(
                *(self.gradient_sum, self.visits, gradient_px, radii, width, height, backend)
            )
        )

    def mean_gradient(self) -> Float[Tensor, "n"]:
        """Mean norm over the views that saw the splat; 0 for those never seen."""
        return self.gradient_sum / self.visits.clamp_min(1.0)


class DensifyStrategy(Protocol):
    """What the trainer asks of a strategy. Steps count from 1."""

    name: str

    def observe(self, gradient_px: Tensor, radii: Tensor, width: int, height: int) -> None:
        """Take in the gradient of one view's 2-D means (n, 2), in pixels, and its radii (n, 2)."""

    def refine(
        self,
        model: Gaussians,
        settings: Settings,
        extent: float,
        step: int,
        generator: torch.Generator,
    ) -> Edit:
        """What a refine at `step` changes; draws its random numbers from `generator`."""

    def grow(
        self, model: Gaussians, settings: Settings, extent: float, generator: torch.Generator
    ) -> Edit:
        """Only the cloning and splitting of a refine."""

    def prune(self, model: Gaussians, settings: Settings, extent: float, step: int) -> Edit:
        """Only the removing of a refine at `step`."""

    def follow(self, edit: Edit) -> None:
        """Bring the statistics into the order of the edited splats."""

    def export_state(self) -> dict[str, Tensor]:
        """Everything the strategy remembers, as named tensors that nobody writes again."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `export_state` gave."""
