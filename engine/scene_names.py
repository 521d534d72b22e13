"""Scenes by name: the built-in one, one that is missing, and how a run folder names its own."""

import difflib
from pathlib import Path

from engine.errors import SceneError
from engine.run.run_folder import RunFolder

EXPECTED_SCENE = (
    "expected a COLMAP model (a folder sparse/0 with cameras, images and points3D as .bin or .txt) "
    "or transforms.json (nerfstudio, instant-ngp), or transforms_train.json (Blender)"
)
DEMO_NAME = "demo"
DEMO_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "demo"


def scene_path(name_or_path: str | Path) -> Path:
    """The path of a scene; `demo` is the built-in one (a folder of that name is `./demo`)."""
    return DEMO_FOLDER if str(name_or_path) == DEMO_NAME else Path(name_or_path)


def require_existing(path: Path) -> None:
    """SceneError when nothing lies there; OSError when that cannot be found out."""
    if not path.exists():
        is_near = difflib.get_close_matches(path.name.lower(), (DEMO_NAME,))
        hint = f" Did you mean {DEMO_NAME}, the built-in scene?" if is_near else ""
        raise SceneError(f"{path} does not exist; {EXPECTED_SCENE}.{hint}", path=path)


def scene_reference(path: Path, folder: RunFolder) -> str:
    """What `run.toml` holds: the built-in scene by name, others relative to the run folder."""
    return DEMO_NAME if path.resolve() == DEMO_FOLDER else folder.scene_reference(path)


def referenced_scene(reference: str, folder: RunFolder) -> Path:
    """The path that `scene_reference` was made from."""
    return DEMO_FOLDER if reference == DEMO_NAME else folder.scene_path(reference)
