"""Which file holds a model, and whether it can. Without torch, for what is refused at once."""

from pathlib import Path

from engine.errors import ExportError, RunFolderError
from engine.run.run_folder import RunFolder

_EXPECTED = "expected a run folder, a checkpoint or a splat file (.ply)."
_SUFFIXES = (".ply", ".safetensors")


def model_file(path: Path) -> Path:
    """The last checkpoint of a run folder, or the checkpoint or splat file that `path` is.

    Raises RunFolderError or ExportError where there is none; what is in the file is not looked at.
    """
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise ExportError(message, path=path) from error
    if not exists:
        raise ExportError(f"There is no {path}; {_EXPECTED}", path=path)
    if not is_folder:
        return path
    folder = RunFolder(path)
    if path.suffix in _SUFFIXES and not folder.facts_path.exists():
        raise RunFolderError(
            f"{path} is a folder, not a file, and no run folder either: it has no run.toml; "
            f"{_EXPECTED}",
            path=path,
        )
    folder.read_facts()
    last = folder.last_checkpoint()
    if last is None:
        raise RunFolderError(
            f"The run {path} has no checkpoint. Train it further with --resume, or give one of "
            "its splat files.",
            path=path,
        )
    return last


def require_splats(path: Path, names: set[str]) -> None:
    """ExportError unless a PLY file with these properties of a vertex holds splats."""
    needed = {"x", "y", "z", "opacity"}
    needed |= {f"scale_{i}" for i in range(3)} | {f"rot_{i}" for i in range(4)}
    missing = sorted(needed - names)
    if not missing:
        return
    if "packed_position" in names:
        raise ExportError(
            f"{path} is a compressed splat file (it has packed positions), which is not read here; "
            "expected a plain 3DGS splat file. Export it uncompressed, or convert it.",
            path=path,
        )
    if {"x", "y", "z"} <= names and not names & {"opacity", "scale_0", "rot_0"}:
        raise ExportError(
            f"{path} is a point cloud, not splats: it has no opacity, scale or rotation. Use it as "
            "the sparse points of a scene, or give a file that a splat trainer exported.",
            path=path,
        )
    raise ExportError(
        f"{path} lacks the properties {', '.join(missing)}; expected the properties of a 3DGS "
        "splat file.",
        path=path,
        value=missing,
    )
