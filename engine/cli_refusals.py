"""What a command is refused for before torch is imported, which takes seconds.

Whatever the arguments, the presets and the disk tell without it. What reads scenes and writes runs
looks again, for both may change meanwhile.
"""

import argparse
import contextlib

from engine.cli_flags import given_changes, given_values, user_path
from engine.errors import SettingError
from engine.resolution import require_sensible_width
from engine.resume_rules import require_same_origin
from engine.run.run_folder import RunFolder, require_usable
from engine.scene_names import require_existing, scene_path
from engine.settings import Settings


def refuse_early(arguments: argparse.Namespace) -> None:
    """Raise the EngineError that the command would end with; SettingError for bad arguments."""
    require_sensible_width(Settings().updated(given_values(arguments)))
    if arguments.word == "train":
        _refuse_training(arguments)
    reports_all = arguments.word == "check" and arguments.json  # a missing scene is a finding there
    if getattr(arguments, "scene", None) is not None and not reports_all:
        with contextlib.suppress(OSError):  # whoever reads it says what is wrong with it
            require_existing(user_path(str(scene_path(arguments.scene))).absolute())


def _refuse_training(arguments: argparse.Namespace) -> None:
    changes = given_changes(arguments)
    if arguments.resume:
        require_same_origin(RunFolder(arguments.output).read_facts()[0], changes)
        return
    if arguments.scene is None:
        raise SettingError("name a scene: a folder, or 'demo' for the built-in one.")
    require_usable(arguments.output)
