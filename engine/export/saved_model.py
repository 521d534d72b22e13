"""A model from disk, whatever it is kept in: a run folder, a checkpoint or a splat file."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import torch

from engine.dataset.scene import Scene, SceneFrame
from engine.errors import CheckpointError, ExportError, RunFolderError
from engine.export.model_file import model_file
from engine.export.splat_files import read_splats
from engine.run.checkpoint import load_checkpoint
from engine.run.run_folder import RunFolder
from engine.scene_names import referenced_scene
from engine.settings import Settings
from engine.training.gaussians import Gaussians
from engine.training.run_state import model_tensors


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel:
    """Splats in `frame`, the SH degree to draw them with, and the settings they were made with.

    `photos` are the names of those it was trained on, and `scene` is where they were; both only
    where the file or the run folder around it tells.
    """

    splats: Gaussians
    sh_degree: int
    settings: Settings
    frame: SceneFrame
    dropped: int = 0
    photos: frozenset[str] | None = None
    scene: Path | None = None

    def moved_to(self, frame: SceneFrame) -> "SavedModel":
        """The same splats in another frame; untouched, to the bit, when it is the same one."""
        if frame == self.frame:
            return self
        values = {name: tensor.detach() for name, tensor in self.splats.items()}
        means = frame.to_engine(self.frame.to_file(values["means"].double().numpy()))
        values["means"] = torch.from_numpy(means).float()
        values["log_scales"] = values["log_scales"] + math.log(frame.scale / self.frame.scale)
        return dataclasses.replace(self, splats=Gaussians(values), frame=frame)

    def fits(self, scene: Scene) -> bool:
        """Whether it was trained on this scene, as far as can be known; moved or renamed is fine.

        Cameras at the same places are enough, for the frame comes from them.
        """
        if self.scene is not None and self.scene.resolve() == scene.path.resolve():
            return True
        if self.photos is None:  # a splat file; a scene that is gone has likely moved
            return self.scene is None or not self.scene.exists()
        names = {photo.name for photo in scene.photos}
        return self.frame == scene.frame or self.photos <= names


def load_model(path: Path) -> SavedModel:
    """Read the last checkpoint of a run folder, a checkpoint, or a PLY.

    Raises RunFolderError, CheckpointError or ExportError when it is none of them or damaged.
    """
    path = model_file(path)
    if path.suffix == ".safetensors":
        return _from_checkpoint(path)
    loaded = read_splats(path)
    scene = _scene_of_run(path)
    if len(loaded.splats) == 0 and loaded.dropped:
        raise ExportError(
            f"All {loaded.dropped:,} splats of {path} are broken: values that are not finite, no "
            "rotation, or sizes and places beyond all numbers. Export them once more.",
            path=path,
        )
    if len(loaded.splats) == 0:
        raise ExportError(f"{path} holds no splats.", path=path)
    return SavedModel(
        *(loaded.splats, loaded.sh_degree, Settings(), SceneFrame()),
        dropped=loaded.dropped,
        scene=scene,
    )


def _from_checkpoint(path: Path) -> SavedModel:
    checkpoint = load_checkpoint(path)
    settings = Settings().updated(checkpoint.fact("settings"))
    reached = min(int(checkpoint.fact("sh_reached")), settings.spherical_harmonics.sh_degree_max)
    try:
        splats = Gaussians(model_tensors(checkpoint.tensors))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}", path=path, value=error.value) from error
    return SavedModel(
        *(splats, reached, settings, frame_of(checkpoint.fact("scene_frame"))),
        photos=frozenset(checkpoint.fact("training_photos")),
        scene=_scene_of_run(path),
    )


def _scene_of_run(file: Path) -> Path | None:
    """The scene of the run in whose folder a checkpoint or splat file lies, if it lies in one."""
    folder = RunFolder(file.absolute().parent.parent)
    if not folder.facts_path.is_file():
        return None
    try:
        _, facts = folder.read_facts()
    except RunFolderError:  # the model alone is asked for, and it can be read
        return None
    return referenced_scene(facts.scene, folder)


def frame_of(fact: dict[str, Any]) -> SceneFrame:
    """The frame as a checkpoint's header holds it; CheckpointError when it holds none."""
    try:
        x, y, z = (float(value) for value in fact["offset"])
        return SceneFrame((x, y, z), float(fact["scale"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"The header of the checkpoint is damaged: scene_frame is {fact}; expected an offset "
            "of three numbers and a scale. Use an earlier checkpoint of the run.",
            value=fact,
        ) from error
