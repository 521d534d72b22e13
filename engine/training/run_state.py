"""The whole state of a run as named tensors and plain values, for exact checkpoints.

Names are part of the checkpoint format and do not change:

tensors: `model.NAME` · `adam.NAME.exp_avg` · `adam.NAME.exp_avg_sq` (NAME: a parameter of
`gaussians.SHAPES`) · `statistics.gradient_sum` · `statistics.visits` · `random.PURPOSE`
(`random_streams.PURPOSES`, uint8) · `photo_order` (int64, indices still to be drawn, last first)

header: `step` · `seconds` · `extent` · `sh_reached` · `pending_reset` · `strategy` ·
`silent_steps` · `adam_steps` {NAME: n} · `unseen` {photo: n} · `training_photos` [names] ·
`training_indices` [of those in the scene, as `photo_order` has them] · `settings` {name: value}
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from engine.dataset.scene import Scene
from engine.errors import CheckpointError
from engine.settings import all_settings
from engine.training.gaussians import SHAPES
from engine.training.optimizer import Moments

if TYPE_CHECKING:
    from engine.training.trainer import Trainer

Entry = TypeVar("Entry")


@dataclasses.dataclass(frozen=True)
class StepStart:
    """What a run is at the beginning of a step.

    Holds the very tensors and copies none: only the optimiser, which comes last, writes in place,
    and not even that does after a step that the `StepGuard` stopped.
    """

    step: int
    seconds: float
    parameters: Mapping[str, Tensor]
    moments: Mapping[str, Moments]
    random: Mapping[str, Tensor]
    remaining: tuple[int, ...]
    statistics: Mapping[str, Tensor]
    sh_reached: int
    pending_reset: float | None
    silent_steps: int
    unseen: Mapping[str, int]

    @classmethod
    def of(cls, trainer: "Trainer") -> "StepStart":
        """Remember it."""
        return cls(
            step=trainer.step,
            seconds=trainer.seconds,
            parameters=dict(trainer.model.items()),
            moments=trainer.optimizer.remembered(),
            random=trainer.streams.export_state(),
            remaining=trainer.order.remaining,
            statistics=trainer.strategy.export_state(),
            sh_reached=trainer.sh_reached,
            pending_reset=trainer.pending_reset,
            silent_steps=trainer.watchdog.silent_steps,
            unseen=dict(trainer.unseen),
        )

    def with_step_before_read(self, trainer: "Trainer") -> "StepStart":
        """The same, knowing how the step before it ended, which was read only meanwhile."""
        return dataclasses.replace(
            self,
            moments=trainer.optimizer.remembered(),
            silent_steps=trainer.watchdog.silent_steps,
            unseen=dict(trainer.unseen),
        )

    def put_back(self, trainer: "Trainer") -> None:
        """Make the trainer what it was at the beginning of the step."""
        trainer.step = self.step
        trainer.seconds = self.seconds
        trainer.model.replace(self.parameters)
        trainer.optimizer.replace(dict(self.moments))
        trainer.streams.load_state(self.random)
        trainer.order.remaining = self.remaining
        trainer.strategy.load_state(self.statistics)
        trainer.sh_reached = self.sh_reached
        trainer.pending_reset = self.pending_reset
        trainer.watchdog.silent_steps = self.silent_steps
        trainer.unseen = dict(self.unseen)


def export_state(trainer: "Trainer", *, copy: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header; without `copy` the large tensors share memory with the run."""
    tensors = {f"model.{name}": tensor.detach() for name, tensor in trainer.model.items()}
    for name, group in trainer.optimizer.groups.items():
        tensors[f"adam.{name}.exp_avg"] = group.exp_avg
        tensors[f"adam.{name}.exp_avg_sq"] = group.exp_avg_sq
    for name, tensor in trainer.strategy.export_state().items():
        tensors[f"statistics.{name}"] = tensor
    for purpose, tensor in trainer.streams.export_state().items():
        tensors[f"random.{purpose}"] = tensor
    tensors["photo_order"] = torch.tensor(trainer.order.remaining, dtype=torch.int64)
    if copy:
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    return tensors, {
        "step": trainer.step,
        "seconds": trainer.seconds,
        "extent": trainer.extent,
        "sh_reached": trainer.sh_reached,
        "pending_reset": trainer.pending_reset,
        "strategy": trainer.strategy.name,
        "silent_steps": trainer.watchdog.silent_steps,
        "adam_steps": {name: group.steps for name, group in trainer.optimizer.groups.items()},
        "unseen": dict(trainer.unseen),
        "training_photos": [photo.name for photo in trainer.scene.training],
        "training_indices": _training_indices(trainer.scene),
        "settings": {info.name: trainer.settings[info.name] for info in all_settings()},
    }


def model_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The splats' parameters among the tensors of a checkpoint, copied."""
    return {name: _entry(tensors, f"model.{name}").clone() for name in SHAPES}


def load_state(
    trainer: "Trainer", tensors: Mapping[str, Tensor], header: Mapping[str, Any]
) -> None:
    """Make a fresh trainer, built on the checkpoint's model, go on where the state was taken.

    Raises CheckpointError when something is missing, damaged or belongs to another scene.
    """
    try:
        _load(trainer, tensors, header)
    except (TypeError, ValueError, AttributeError) as error:  # of a header with other types in it
        raise CheckpointError(
            f"The header of the checkpoint is damaged: {error}. Use an earlier checkpoint of the "
            "run."
        ) from error


def _load(trainer: "Trainer", tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    names = [photo.name for photo in trainer.scene.training]
    saved = list(_entry(header, "training_photos"))
    if names != saved:
        raise CheckpointError(
            f"The checkpoint was trained on {len(saved)} photos, and this scene has "
            f"{len(names)} or others of them; resume with the scene, resolution and hold-out of "
            f"the run. First difference: {_first_difference(saved, names)}."
        )
    steps = _entry(header, "adam_steps")
    count = len(trainer.model)
    trainer.optimizer.replace(
        {
            name: Moments(
                _rows(tensors, f"adam.{name}.exp_avg", (count, *shape), trainer.device),
                _rows(tensors, f"adam.{name}.exp_avg_sq", (count, *shape), trainer.device),
                int(_entry(steps, name)),
            )
            for name, shape in SHAPES.items()
        }
    )
    trainer.strategy.load_state(
        {
            name: _rows(tensors, f"statistics.{name}", (count,), trainer.device)
            for name in trainer.strategy.export_state()
        }
    )
    _load_random(trainer, tensors)
    trainer.order.remaining = _photo_order(trainer.scene, tensors, header)
    trainer.step = int(_entry(header, "step"))
    trainer.seconds = float(_entry(header, "seconds"))
    trainer.extent = float(_entry(header, "extent"))
    trainer.sh_reached = int(_entry(header, "sh_reached"))
    reset = header.get("pending_reset")  # the first checkpoints have none: theirs was done at once
    trainer.pending_reset = None if reset is None else float(reset)
    trainer.watchdog.silent_steps = int(_entry(header, "silent_steps"))
    trainer.unseen = {name: int(times) for name, times in _entry(header, "unseen").items()}


def _load_random(trainer: "Trainer", tensors: Mapping[str, Tensor]) -> None:
    states = {
        purpose: _entry(tensors, f"random.{purpose}").cpu() for purpose in trainer.streams.purposes
    }
    try:
        trainer.streams.load_state(states)
    except RuntimeError as error:  # torch's word for bytes that are no state
        raise CheckpointError(
            f"The random numbers of the checkpoint are damaged ({error}); use an earlier "
            "checkpoint of the run."
        ) from error


def _training_indices(scene: Scene) -> list[int]:
    return [index for index, photo in enumerate(scene.photos) if not photo.held_out]


def _photo_order(
    scene: Scene, tensors: Mapping[str, Tensor], header: Mapping[str, Any]
) -> tuple[int, ...]:
    """The photos still to be drawn; held-out photos that came or went have moved their indices."""
    now = _training_indices(scene)
    before = header.get("training_indices", now)  # the first checkpoints have none
    moved = dict(zip(before, now, strict=True))
    saved = _entry(tensors, "photo_order").tolist()
    unknown = [index for index in saved if index not in moved]
    if unknown:
        raise CheckpointError(
            f"The tensor photo_order of the checkpoint names photo {unknown[0]}, which is none to "
            "train on. Use an earlier checkpoint of the run, or put back the held-out photos that "
            "are gone.",
            value=unknown[0],
        )
    return tuple(moved[index] for index in saved)


def settings_values(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of all settings in the header of a checkpoint, by name."""
    values: Mapping[str, Any] = _entry(header, "settings")
    return values


def _entry(entries: Mapping[str, Entry], name: str) -> Entry:
    """A tensor of the checkpoint or an entry of its header, by name."""
    if name not in entries:
        raise CheckpointError(
            f"The checkpoint lacks {name}; it is incomplete or from another version. Use an "
            "earlier checkpoint of the run.",
            value=name,
        )
    return entries[name]


def _rows(
    tensors: Mapping[str, Tensor], name: str, shape: tuple[int, ...], device: torch.device
) -> Tensor:
    tensor = _entry(tensors, name)
    if tuple(tensor.shape) != shape:
        raise CheckpointError(
            f"The tensor {name} of the checkpoint has the shape {tuple(tensor.shape)}; "
            f"expected {shape}, one row a splat. The file is damaged; use an earlier one.",
            value=name,
        )
    return tensor.to(device, copy=True)


def _first_difference(saved: list[str], found: list[str]) -> str:
    for before, now in zip(saved, found, strict=False):
        if before != now:
            return f"{before} in the run, {now} in the scene"
    longer = saved if len(saved) > len(found) else found
    return f"{longer[min(len(saved), len(found))]} is only in one of them"
