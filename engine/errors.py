"""The errors that a user of the engine can meet.

Every message names the thing, what was found, what was expected and what to do. The path or the
value in question also travels as an attribute, so that a window can offer a remedy for it.
"""

from pathlib import Path


class EngineError(Exception):
    """Something the user can act on; its text is shown as it stands."""

    def __init__(self, message: str, *, path: Path | None = None, value: object = None) -> None:
        super().__init__(message)
        self.path = path
        self.value = value


class SettingError(EngineError):
    """A setting has an unknown name, a wrong type or a value outside its range."""


class SceneError(EngineError):
    """A scene cannot be opened: a file is missing, damaged or contradicts another."""


class LoadingCancelled(EngineError):
    """The user cancelled the loading of a scene."""


class RunFolderError(EngineError):
    """A run folder cannot be made, read or continued."""


class CheckpointError(EngineError):
    """A checkpoint is damaged, incomplete or from another version."""


class ExportError(EngineError):
    """A splat file, picture or folder could not be written or read."""


class TrainingError(EngineError):
    """Training cannot go on: a value is not finite, all splats are gone, memory has run out."""


class BackendError(EngineError):
    """The rasteriser backend that was asked for cannot be had."""
