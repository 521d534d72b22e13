"""The menu under the settings panel's summary: built-in presets, files, back to the preset."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from app.dialogs.files import PRESET_FILTER, ask_existing_file, ask_new_file
from engine.errors import SettingError
from engine.presets import load_preset, preset_description, preset_names, save_preset
from engine.settings import Settings


class PresetMenu(QMenu):
    """Loads and saves presets; what to do with a loaded one is the panel's business."""

    chosen = Signal(str, object)  # name, Settings
    saved = Signal(object)  # Path
    failed = Signal(str)  # a sentence for the user
    reset_asked = Signal()

    def __init__(self, current: Callable[[], Settings], parent: QWidget) -> None:
        super().__init__(parent)
        self._current = current
        self.folder = Path.home()
        self.setToolTipsVisible(True)
        self.preset_actions: dict[str, QAction] = {}
        for name in preset_names():
            action = self.addAction(f"Load “{name}”")
            action.setCheckable(True)
            action.setToolTip(preset_description(name))
            action.triggered.connect(partial(self._load, name))
            self.preset_actions[name] = action
        self.addSeparator()
        self.load_action = self.addAction("Load preset file…")
        self.load_action.triggered.connect(self._load_file)
        self.save_action = self.addAction("Save as preset…")
        self.save_action.triggered.connect(self._save_file)
        self.addSeparator()
        self.reset_action = self.addAction("Undo all changes to the preset")
        self.reset_action.triggered.connect(self.reset_asked)

    def tick(self, preset: str) -> None:
        """Mark the preset that the values are those of, or are measured against."""
        for name, action in self.preset_actions.items():
            action.setChecked(name == preset)

    def load(self, name_or_path: str | Path) -> None:
        """Load a built-in preset by name, or a file."""
        try:
            settings = load_preset(name_or_path)
        except SettingError as error:
            self.failed.emit(str(error))
            return
        self.chosen.emit(Path(name_or_path).stem, settings)

    def save(self, path: Path) -> None:
        """Write the differences from the defaults to `path`."""
        try:
            save_preset(path, self._current())
        except SettingError as error:
            self.failed.emit(str(error))
            return
        self.saved.emit(path)

    def _load(self, name: str, _checked: bool = False) -> None:
        self.load(name)

    def _load_file(self) -> None:
        path = ask_existing_file(self, "Load preset", self.folder, PRESET_FILTER)
        if path is not None:
            self.folder = path.parent
            self.load(path)

    def _save_file(self) -> None:
        suggestion = self.folder / "my-preset.toml"
        path = ask_new_file(self, "Save preset", suggestion, PRESET_FILTER)
        if path is not None:
            self.folder = path.parent
            self.save(path)
