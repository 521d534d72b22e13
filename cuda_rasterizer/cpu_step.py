"""Training steps on the CPU, one behind the other, in the same memory.

Behind a kernel, which empties the caches, each distinct line of Python or operation of torch takes
five to ten times what it takes in a loop. So what depends on the sizes alone is made once, the
structures that kernels read included; a step writes into them only the addresses that change. With
many splats memory made anew would cost more still: pages that the system clears first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from cuda_rasterizer import native
from cuda_rasterizer.attention import call_in_pieces
from cuda_rasterizer.cpu_backend import BlendBackward, BlendSaved, Compositing
from cuda_rasterizer.cpu_loss import Loss
from cuda_rasterizer.debug import debug_is_on
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.kernel_arguments import (
    AdamGroup,
    SplatGradients,
    SplatInputs,
    View,
    adam_calls,
    empty_blend_gradients,
    empty_projected,
    empty_splat_gradients,
    project_backward_params,
    project_params,
    write_camera,
    write_rates,
)
from cuda_rasterizer.step_guard import GRADIENTS, StepGuard

if TYPE_CHECKING:
    from jaxtyping import Float, Int32


class CpuPicture:
    """A `TrainingPicture` that can be drawn again: same splats, other camera and background.

    Colour, radii and gradients are overwritten then.
    """

    def __init__(
        self, splats: SplatInputs, view: View, rest_learns: bool, guard: StepGuard
    ) -> None:
        """Room for it."""
        self._splats, self._view, self._rest_learns, self._guard = splats, view, rest_learns, guard
        self._threads = native.thread_count()
        self._projected = empty_projected(splats)
        self._project = project_params(splats, view, self._projected)
        self._compositing = Compositing(
            *(self._projected, view.cutoffs), with_depth=False, for_backward=True
        )
        self.color: Float[Tensor, "height width 3"] = self._compositing.color
        self.radii: Int32[Tensor, "splats 2"] = self._projected.radii
        self._saved: BlendSaved | None = None
        self._flat = empty_blend_gradients(self._projected)
        self._blend_backward = BlendBackward(
            *(self._projected.colors, view.cutoffs, self._flat, None)
        )
        self._gradients: SplatGradients | None = None

    def fits(self, splats: SplatInputs, view: View, rest_learns: bool, guard: StepGuard) -> bool:
        """Whether it can be drawn of these: the very tensors, camera aside."""
        before, drawn = self._splats, self._view
        return (
            all(getattr(splats, name) is getattr(before, name) for name in GRADIENTS)
            and (view.sh_degree, view.antialiased) == (drawn.sh_degree, drawn.antialiased)
            and view.cutoffs is drawn.cutoffs
            and rest_learns == self._rest_learns
            and guard is self._guard
            and native.thread_count() == self._threads
            and not debug_is_on()  # with it memory is fresh and poisoned
        )

    def draw(self, splats: SplatInputs, view: View, background: Float[Tensor, "3"]) -> None:
        """Draw it with the camera of `splats`, which are checked."""
        self._splats, self._background, self._saved = splats, background, None
        write_camera(self._project.splats, splats, view)
        call_in_pieces("project", self.color.dtype, self._project)
        self._saved = self._compositing.run(background, view.width, view.height)

    def differentiate(
        self, grad_color: Float[Tensor, "height width 3"]
    ) -> tuple[SplatGradients, Float[Tensor, "splats 2"]]:
        """See `TrainingPicture`."""
        saved, self._saved = self._saved, None
        if saved is None:
            raise RasterizerError("this picture has been differentiated, or was never finished")
        self._blend_backward.run(saved, self._background, (grad_color.contiguous(), None, None))
        flat, splats = self._flat, self._splats
        if self._gradients is None:
            self._blend_backward.give_back()  # with gradients it would be the most of a step
            self._gradients = empty_splat_gradients(splats, self._rest_learns)
            incoming = (flat.means_2d, flat.conics, None, flat.opacities, flat.colors)
            self._project_backward = project_backward_params(
                *(splats, self._view, self.radii, incoming, self._gradients),
                *(None, self._guard.flags),
            )
        self._project_backward.splats = self._project.splats
        call_in_pieces("project_backward", self.color.dtype, self._project_backward)
        assert flat.means_2d is not None
        return self._gradients, flat.means_2d


class AdamCalls:
    """Adam on tensors that stay the same; from step to step only rates and counts differ."""

    def __init__(
        self,
        groups: Sequence[AdamGroup],
        betas_and_eps: tuple[float, float, float],
        radii: Tensor | None,
        flags: Tensor | None,
    ) -> None:
        """On checked groups."""
        self._groups, self._constants = groups, betas_and_eps
        self._radii, self._flags = radii, flags
        self._calls = [params for _, params in adam_calls(groups, *betas_and_eps, radii, flags)]

    def fits(
        self,
        groups: Sequence[AdamGroup],
        betas_and_eps: tuple[float, float, float],
        radii: Tensor | None,
        flags: Tensor | None,
    ) -> bool:
        """Whether it is these very tensors that are to be moved."""
        return (
            len(groups) == len(self._groups)
            and all(map(_are_alike, groups, self._groups))
            and betas_and_eps == self._constants
            and radii is self._radii
            and flags is self._flags
        )

    def run(self, groups: Sequence[AdamGroup]) -> None:
        """Move them, by the rates of `groups`."""
        first = 0
        for params in self._calls:
            chosen = groups[first : first + params.group_count]
            first += params.group_count
            write_rates(params, chosen)
            native.call("adam", chosen[0].parameter.dtype, params)


def _are_alike(group: AdamGroup, before: AdamGroup) -> bool:
    return (
        group.parameter is before.parameter
        and group.gradient is before.gradient
        and group.exp_avg is before.exp_avg
        and group.exp_avg_sq is before.exp_avg_sq
    )


@dataclass
class StepMemory:
    """What a model's steps on the CPU leave to those behind them; other backends leave nothing.

    What a step made, the picture, its gradients and that of the loss, is overwritten by the next
    one with the same memory. One thread's; views drawn meanwhile have their own.
    """

    picture: CpuPicture | None = None
    loss: Loss | None = None
    adam: AdamCalls | None = None

    def clear(self) -> None:
        """Give it all up."""
        self.picture = self.loss = self.adam = None
