"""Whether the results of a run fit on the disk: said before the first step, not after the last."""

import shutil
from pathlib import Path

from engine.errors import RunFolderError
from engine.export.splat_files import BYTES_A_SPLAT
from engine.training.schedule import is_multiple
from engine.training.trainer import Trainer
from engine.wording import counted, memory


def require_room(folder: Path, trainer: Trainer) -> None:
    """RunFolderError when not even one checkpoint and splat file of the model fit."""
    free = free_bytes(folder)
    needed = _checkpoint_bytes(trainer) + BYTES_A_SPLAT * len(trainer.model)
    if free is not None and free < needed:
        raise RunFolderError(
            f"The disk of {folder} has {memory(free)} free; a checkpoint and the splat file of "
            f"{counted(len(trainer.model), 'splat')} take {memory(needed)}. Free some space or "
            "choose another folder.",
            path=folder,
            value=free,
        )


def room_warning(folder: Path, trainer: Trainer) -> str | None:
    """A sentence when the results may not fit once the splats have grown to the cap."""
    settings, count = trainer.settings, len(trainer.model)
    last = settings.run.iterations
    densify = settings.densify
    grows = max(trainer.step, densify.densify_start) < min(last, densify.densify_stop)
    most = max(count, densify.max_splats) if grows else count
    every = settings.run.checkpoint_interval
    saves = 1 + sum(is_multiple(step, every) for step in range(trainer.step + 1, last))
    one = _checkpoint_bytes(trainer) / count * most
    needed = saves * one + BYTES_A_SPLAT * most
    free = free_bytes(folder)
    if free is None or free >= needed:
        return None
    return (
        f"The disk of {folder} has {memory(free)} free. {counted(saves, 'checkpoint')} and the "
        f"splat file of {counted(most, 'splat')} would take {memory(needed)}: free some space, "
        "lower the splat cap, or save less often."
    )


def free_bytes(folder: Path) -> int | None:
    """What may still be written there, as far as the system tells; the folder need not exist."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    usage = shutil.disk_usage(existing)
    return usage.free if usage.total > 0 else None


def _checkpoint_bytes(trainer: Trainer) -> int:
    tensors, _ = trainer.export_state(copy=False)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
