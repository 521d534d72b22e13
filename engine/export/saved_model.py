"""A model from disk, whatever it is kept in: a run folder, a checkpoint or a splat file."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import torch

from engine.dataset.scene import SceneFrame
from engine.errors import CheckpointError, ExportError, RunFolderError
from engine.export.splat_files import read_splats
from engine.run.checkpoint import load_checkpoint
from engine.run.run_folder import RunFolder
from engine.settings import Settings
from engine.training.gaussians import Gaussians
from engine.training.run_state import model_tensors


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel:
    """Splats in `frame`, the SH degree to draw them with, and the settings they were made with."""

    splats: Gaussians
    sh_degree: int
    settings: Settings
    frame: SceneFrame
    dropped: int = 0

    def moved_to(self, frame: SceneFrame) -> "SavedModel":
        """The same splats in another frame; untouched, to the bit, when it is the same one."""
        if frame == self.frame:
            return self
        values = {name: tensor.detach() for name, tensor in self.splats.items()}
        means = frame.to_engine(self.frame.to_file(values["means"].double().numpy()))
        values["means"] = torch.from_numpy(means).float()
        values["log_scales"] = values["log_scales"] + math.log(frame.scale / self.frame.scale)
        return dataclasses.replace(self, splats=Gaussians(values), frame=frame)


def load_model(path: Path) -> SavedModel:
    """Read the last checkpoint of a run folder, a checkpoint, or a PLY.

    Raises RunFolderError, CheckpointError or ExportError when it is none of them or damaged.
    """
    if path.is_dir():
        folder = RunFolder(path)
        folder.read_facts()
        last = folder.last_checkpoint()
        if last is None:
            raise RunFolderError(
                f"The run {path} has no checkpoint yet. Let it train on, or give one of its splat "
                "files.",
                path=path,
            )
        return _from_checkpoint(last)
    if not path.exists():
        raise ExportError(
            f"There is no {path}; expected a run folder, a checkpoint or a splat file (.ply).",
            path=path,
        )
    if path.suffix == ".safetensors":
        return _from_checkpoint(path)
    loaded = read_splats(path)
    if len(loaded.splats) == 0:
        raise ExportError(f"{path} holds no splats.", path=path)
    return SavedModel(
        loaded.splats, loaded.sh_degree, Settings(), SceneFrame(), dropped=loaded.dropped
    )


def _from_checkpoint(path: Path) -> SavedModel:
    checkpoint = load_checkpoint(path)
    settings = Settings().updated(checkpoint.fact("settings"))
    reached = min(int(checkpoint.fact("sh_reached")), settings.spherical_harmonics.sh_degree_max)
    try:
        splats = Gaussians(model_tensors(checkpoint.tensors))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}", path=path, value=error.value) from error
    return SavedModel(splats, reached, settings, frame_of(checkpoint.fact("scene_frame")))


def frame_of(fact: dict[str, Any]) -> SceneFrame:
    """The frame as a checkpoint's header holds it."""
    x, y, z = (float(value) for value in fact["offset"])
    return SceneFrame((x, y, z), float(fact["scale"]))
