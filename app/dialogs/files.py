"""Asking for files to read and write, through the desktop's own dialogs."""

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

PRESET_FILTER = "Presets (*.toml)"
SPLAT_FILTER = "Splats (*.ply)"
SCENE_FILTER = "Scene descriptions (*.json *.bin *.txt);;All files (*)"


def ask_existing_file(parent: QWidget, title: str, folder: Path, kinds: str) -> Path | None:
    """A file that exists; None when the user thinks better of it."""
    name, _kind = QFileDialog.getOpenFileName(parent, title, str(folder), kinds)
    return Path(name) if name else None


def ask_new_file(parent: QWidget, title: str, suggestion: Path, kinds: str) -> Path | None:
    """A file to write, with the suggestion's suffix unless another is typed; None for no."""
    name, _kind = QFileDialog.getSaveFileName(parent, title, str(suggestion), kinds)
    if not name:
        return None
    path = Path(name)
    return path if path.suffix else path.with_suffix(suggestion.suffix)


def ask_folder(parent: QWidget, title: str, folder: Path) -> Path | None:
    """A folder; None when the user thinks better of it."""
    name = QFileDialog.getExistingDirectory(parent, title, str(folder))
    return Path(name) if name else None
