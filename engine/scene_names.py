"""The built-in scene by its name, and how a run folder refers to its scene."""

from pathlib import Path

from engine.run.run_folder import RunFolder

DEMO_NAME = "demo"
DEMO_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "demo"


def scene_path(name_or_path: str | Path) -> Path:
    """The path of a scene; `demo` is the built-in one (a folder of that name is `./demo`)."""
    return DEMO_FOLDER if str(name_or_path) == DEMO_NAME else Path(name_or_path)


def scene_reference(path: Path, folder: RunFolder) -> str:
    """What `run.toml` holds: the built-in scene by name, others relative to the run folder."""
    return DEMO_NAME if path.resolve() == DEMO_FOLDER else folder.scene_reference(path)


def referenced_scene(reference: str, folder: RunFolder) -> Path:
    """The path that `scene_reference` was made from."""
    return DEMO_FOLDER if reference == DEMO_NAME else folder.scene_path(reference)
