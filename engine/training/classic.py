"""Adaptive density control as 3DGS does it (Kerbl et al. 2023, section 5.2).

Where the mean screen gradient reaches the threshold, small splats are cloned and large ones split
in two; then faint and huge splats are removed. The original also means to remove splats that are
large on the screen, but zeroes those sizes just before it looks at them, so that the rule never
fires, and pruning hard when repaired; it is left out here.
"""

import dataclasses
from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from cuda_rasterizer import rotation_matrices
from engine.settings import Settings
from engine.training.densification import DensifyStatistics, Edit, RefineCounts
from engine.training.gaussians import Gaussians
from engine.training.schedule import prunes_by_size
from engine.transfers import to_device

CHILDREN = 2
CHILD_SHRINK = 0.8 * CHILDREN  # the paper's 1.6
FEWEST_SPLATS = 10  # a prune never leaves fewer, if there were as many


class ClassicStrategy:
    """The original clone, split and prune; remembers gradients since the last refine."""

    name = "classic"

    def __init__(
        self, count: int, device: torch.device | None = None, backend: str = "auto"
    ) -> None:
        """Begin with `count` splats; `backend` makes their gradients on `device`, None: the CPU."""
        self._backend = backend
        self.statistics = DensifyStatistics.zeros(count, device)

    def observe(self, gradient_px: Tensor, radii: Tensor, width: int, height: int) -> None:
        """Add one view's gradients of the 2-D means (n, 2), in pixels, to the statistics."""
        view = radii, width, height
        self.statistics = self.statistics.plus(gradient_px, *view, self._backend)

    def refine(
        self,
        model: Gaussians,
        settings: Settings,
        extent: float,
        step: int,
        generator: torch.Generator,
    ) -> Edit:
        """Clone, then split, then prune."""
        grown = self.grow(model, settings, extent, generator)
        by_size = prunes_by_size(step, settings)
        return _pruned(grown, model, settings, extent, by_size=by_size)

    @torch.no_grad()
    def grow(
        self, model: Gaussians, settings: Settings, extent: float, generator: torch.Generator
    ) -> Edit:
        """Clone small splats and split large ones where the mean gradient asks for it.

        The new rows are the clones, then the first children of all parents, then the second. The
        splat cap is kept: with more candidates than room, those of the highest gradient grow.
        """
        densify = settings.densify
        gradient = self.statistics.mean_gradient()
        wanted = gradient >= densify.gradient_threshold
        chosen = _within_room(wanted, gradient, densify.max_splats - len(model))
        large = model.largest_scales() > densify.split_boundary * extent
        cloned = torch.nonzero(chosen & ~large).flatten()
        split = torch.nonzero(chosen & large).flatten()
        kept = torch.nonzero(~(chosen & large)).flatten()
        children = _children(model, split, generator)
        counts = RefineCounts(
            cloned=len(cloned),
            split=len(split),
            pruned=0,
            splats=len(kept) + len(cloned) + CHILDREN * len(split),
            refused=int(wanted.sum()) - len(cloned) - len(split),
        )
        overrides = {
            name: torch.cat([getattr(model, name).detach()[cloned], values])
            for name, values in children.items()
        }
        sources = torch.cat([cloned, split.repeat(CHILDREN)])
        return Edit(kept, sources, overrides, counts, uses_statistics=True)

    def prune(self, model: Gaussians, settings: Settings, extent: float, step: int) -> Edit:
        """Remove the splats that a refine at `step` would: before a first reset no huge ones."""
        everybody = torch.arange(len(model), device=model.means.device)
        nobody = everybody[:0]
        unchanged = Edit(
            everybody, nobody, {}, RefineCounts(0, 0, 0, len(model)), uses_statistics=False
        )
        by_size = prunes_by_size(step, settings)
        return _pruned(unchanged, model, settings, extent, by_size=by_size)

    def follow(self, edit: Edit) -> None:
        """Begin afresh after a refine or growth; after a mere prune keep the kept splats' sums."""
        if edit.uses_statistics:
            device = self.statistics.visits.device
            self.statistics = DensifyStatistics.zeros(edit.counts.splats, device)
        else:
            self.statistics = DensifyStatistics(
                self.statistics.gradient_sum[edit.kept], self.statistics.visits[edit.kept]
            )

    def export_state(self) -> dict[str, Tensor]:
        """The two accumulators, by name."""
        return {
            "gradient_sum": self.statistics.gradient_sum,
            "visits": self.statistics.visits,
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back the two accumulators."""
        self.statistics = DensifyStatistics(state["gradient_sum"], state["visits"])


def _within_room(
    wanted: Bool[Tensor, "n"], gradient: Float[Tensor, "n"], room: int
) -> Bool[Tensor, "n"]:
    """The wanted splats, or the `room` of them with the highest gradient, ties by lower index.

    A clone and a split each add one splat.
    """
    if int(wanted.sum()) <= room:
        return wanted
    candidates = torch.nonzero(wanted).flatten()
    order = torch.sort(gradient[candidates], descending=True, stable=True).indices
    chosen = torch.zeros_like(wanted)
    chosen[candidates[order[: max(room, 0)]]] = True
    return chosen


def _children(
    model: Gaussians, parents: Int64[Tensor, "p"], generator: torch.Generator
) -> dict[str, Tensor]:
    """Means and log-scales of the children: drawn from the parent's Gaussian, 1.6 times smaller."""
    scales = torch.exp(model.log_scales.detach()[parents]).repeat(CHILDREN, 1)
    noise = to_device(torch.randn(scales.shape, generator=generator), scales.device)
    rotations = rotation_matrices(model.rotations.detach()[parents]).repeat(CHILDREN, 1, 1)
    offsets = torch.einsum("pij,pj->pi", rotations, noise * scales)
    return {
        "means": model.means.detach()[parents].repeat(CHILDREN, 1) + offsets,
        "log_scales": torch.log(scales / CHILD_SHRINK),
    }


@torch.no_grad()
def _pruned(
    edit: Edit, model: Gaussians, settings: Settings, extent: float, *, by_size: bool
) -> Edit:
    """The edit without the faint and the huge among its splats, but never without all."""
    rows = torch.cat([edit.kept, edit.sources])
    opacities = model.opacities()[rows]
    remove = opacities < settings.prune.prune_opacity
    if by_size:
        sizes = model.largest_scales()[rows]
        if "log_scales" in edit.overrides:
            sizes[len(edit.kept) :] = torch.exp(edit.overrides["log_scales"].max(dim=1).values)
        remove = remove | (sizes > settings.prune.prune_size * extent)
    notices: tuple[str, ...] = ()
    fewest = min(FEWEST_SPLATS, len(rows))
    if len(rows) - int(remove.sum()) < fewest:
        remove, notices = _most_opaque_stay(opacities, remove, fewest)
    stay = ~remove
    stay_new = stay[len(edit.kept) :]
    pruned = int(remove.sum())
    counts = dataclasses.replace(edit.counts, pruned=pruned, splats=len(rows) - pruned)
    return Edit(
        edit.kept[stay[: len(edit.kept)]],
        edit.sources[stay_new],
        {name: values[stay_new] for name, values in edit.overrides.items()},
        counts,
        uses_statistics=edit.uses_statistics,
        notices=edit.notices + notices,
    )


def _most_opaque_stay(
    opacities: Float[Tensor, "n"], remove: Bool[Tensor, "n"], fewest: int
) -> tuple[Bool[Tensor, "n"], tuple[str, ...]]:
    """A prune mask that leaves `fewest` splats, and a notice of it.

    Those that no rule removes come first, then the most opaque.
    """
    left = len(remove) - int(remove.sum())
    worth = opacities + 2.0 * ~remove
    spared = torch.sort(worth, descending=True, stable=True).indices[:fewest]
    remove = torch.ones_like(remove)
    remove[spared] = False
    return remove, (
        f"Pruning would have left {left} of {len(remove)} splats; the {fewest} most opaque were "
        "kept. Lower the prune opacity, raise the prune size, or check that the photos and the "
        "sparse points belong together.",
    )
