"""What a command is refused for before torch is imported, which takes seconds.

Whatever the arguments, the presets and the disk tell without it. What reads scenes and writes runs
looks again, for both may change meanwhile.
"""

import argparse
import contextlib
from pathlib import Path

from engine.cli_flags import given_changes, given_values, user_path
from engine.dataset.loading import Loading
from engine.errors import ExportError, LoadingCancelled, SettingError
from engine.export.model_file import model_file, require_splats
from engine.resolution import require_sensible_width
from engine.resume_rules import require_same_origin
from engine.run.run_folder import RunFolder, probe_folder, require_usable
from engine.scene_names import referenced_scene, require_existing, scene_path
from engine.settings import Settings


def refuse_early(arguments: argparse.Namespace) -> None:
    """Raise the EngineError that the command would end with; SettingError for bad arguments."""
    require_sensible_width(Settings().updated(given_values(arguments)))
    if arguments.word == "train":
        _refuse_training(arguments)
    reports_all = arguments.word == "check" and arguments.json  # a missing scene is a finding there
    if getattr(arguments, "scene", None) is not None and not reports_all:
        refuse_scene(user_path(str(scene_path(arguments.scene))).absolute())
    if arguments.word in ("eval", "render"):
        _refuse_model(arguments.model)
    if arguments.word == "render":
        _refuse_output(arguments.output)


def refuse_scene(path: Path) -> None:
    """SceneError when nothing there can be read as a scene."""
    with contextlib.suppress(OSError):  # whoever reads it says what is wrong with it
        require_existing(path)
        from engine.dataset.layout import find_layout  # brings numpy, half a second

        with contextlib.suppress(LoadingCancelled):  # where reading begins: that is for later
            find_layout(path, Loading(cancelled=lambda: True))


def _refuse_model(path: Path) -> None:
    """EngineError when there is no model, or a splat file is of another kind."""
    from engine.ply import read_ply_header  # brings numpy

    file = model_file(path)
    if file.suffix != ".safetensors":
        vertex = read_ply_header(file).element("vertex")
        require_splats(file, set(vertex.property_names if vertex is not None else ()))


def _refuse_training(arguments: argparse.Namespace) -> None:
    changes = given_changes(arguments)
    if arguments.resume:
        folder = RunFolder(arguments.output)
        settings, facts = folder.read_facts()
        require_same_origin(settings, changes)
        if arguments.scene is None:
            refuse_scene(referenced_scene(facts.scene, folder))
        return
    if arguments.scene is None:
        raise SettingError("name a scene: a folder, or 'demo' for the built-in one.")
    require_usable(arguments.output)


def _refuse_output(output: Path) -> None:
    """ExportError when no picture can be written there; asked before anything takes time."""
    try:
        if output.is_file():
            message = f"{output} is a file; expected a folder for the pictures. Choose another."
            raise ExportError(message, path=output)
        probe_folder(output)
    except OSError as error:
        raise ExportError(
            f"The folder {output} cannot be made or written: {error.strerror or error}. Choose "
            "another folder for the pictures.",
            path=output,
        ) from error
