"""Adam with one named group per parameter, whose moments can follow their splats.

Learning rates are handed in at every step, so that a changed setting needs no bookkeeping here.
Each group counts its own steps: a group without a gradient is skipped and its count stands still,
as in torch.optim.Adam. The counts are never reset, however the splats grow and shrink.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping

import torch
from jaxtyping import Int32, Int64
from torch import Tensor

from cuda_rasterizer import AdamGroup, StepGuard, StepMemory, adam_step

BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-15


@dataclasses.dataclass
class Moments:
    """Adam's state of one parameter: mean and mean square of its gradient, and steps taken."""

    exp_avg: Tensor
    exp_avg_sq: Tensor
    steps: int = 0


class Optimizer:
    """Adam over named parameters; moments start at zero."""

    def __init__(self, parameters: Iterator[tuple[str, Tensor]], backend: str) -> None:
        self._backend = backend
        self.groups: dict[str, Moments] = {
            name: Moments(torch.zeros_like(tensor.detach()), torch.zeros_like(tensor.detach()))
            for name, tensor in parameters
        }

    def step(
        self,
        parameters: Iterator[tuple[str, Tensor]],
        rates: Mapping[str, float],
        idle: Collection[str] = (),
        radii: Int32[Tensor, "n 2"] | None = None,
        guard: StepGuard | None = None,
        memory: StepMemory | None = None,
    ) -> None:
        """Move every parameter that has a gradient by its rate, in place, if `guard` lets it.

        `idle` names parameters known to have zero gradient and zero momentum: their step is
        counted, and nothing is computed because nothing would move. With the `radii` of a
        rendering, splats that it does not show keep their values and their moments; the step is
        counted for all alike, so that bias correction is the group's and not a splat's own.
        """
        moved: list[AdamGroup] = []
        for name, tensor in parameters:
            group = self.groups[name]
            if name in idle:
                group.steps += 1
            elif tensor.grad is not None:
                group.steps += 1
                moments = group.exp_avg, group.exp_avg_sq
                moved.append(AdamGroup(tensor, tensor.grad, *moments, rates[name], group.steps))
        adam_step(
            moved,
            beta1=BETA1,
            beta2=BETA2,
            eps=EPSILON,
            radii=radii,
            guard=guard,
            backend=self._backend,
            memory=memory,
        )

    def remembered(self) -> dict[str, Moments]:
        """The very moments, and the counts as they are now."""
        return {
            name: Moments(group.exp_avg, group.exp_avg_sq, group.steps)
            for name, group in self.groups.items()
        }

    def take_back_counts(self, before: Mapping[str, Moments]) -> None:
        """A step moved nothing, as turns out: the counts are those from before it."""
        for name, group in self.groups.items():
            group.steps = before[name].steps

    def gathered(self, rows: Int64[Tensor, "kept"], added: int) -> dict[str, Moments]:
        """The moments of the given rows, in that order, then `added` rows of zeros; all new."""
        return {
            name: Moments(
                _kept_then_zeros(group.exp_avg, rows, added),
                _kept_then_zeros(group.exp_avg_sq, rows, added),
                group.steps,
            )
            for name, group in self.groups.items()
        }

    def replace(self, groups: dict[str, Moments]) -> None:
        """Take moments for every parameter."""
        self.groups = groups

    def reset(self, name: str) -> None:
        """Zero both moments of one group for every splat; its step count stays."""
        group = self.groups[name]
        group.exp_avg = torch.zeros_like(group.exp_avg)
        group.exp_avg_sq = torch.zeros_like(group.exp_avg_sq)


def _kept_then_zeros(moment: Tensor, rows: Tensor, added: int) -> Tensor:
    grown = moment.new_zeros((len(rows) + added, *moment.shape[1:]))
    torch.index_select(moment, 0, rows, out=grown[: len(rows)])
    return grown
