"""What each action of the table does: commands for the engine, or something in the window."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QInputDialog

from app.dialogs.files import SPLAT_FILTER, ask_folder, ask_new_file
from engine.messages import (
    CancelLoading,
    Command,
    ContinueFor,
    Export,
    OpenScene,
    Pause,
    Restart,
    RunUntil,
    Save,
    Start,
    State,
    StepN,
    Stop,
)

if TYPE_CHECKING:
    from app.main_window import MainWindow

DEMO = Path(__file__).resolve().parent.parent / "resources" / "demo"
PLAIN: dict[str, type[Command]] = {
    "stop": Stop,
    "step": StepN,
    "save": Save,
    "restart": Restart,
    "cancel_loading": CancelLoading,
}


class WindowCommands(QObject):
    """Carries out actions for its window."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self._window = window
        self.opening = ""  # the name of the scene being loaded
        self.start_when_open = True

    def carry_out(self, key: str) -> None:
        """Do what the action `key` says."""
        if key in PLAIN:
            self._post(PLAIN[key]())
        else:
            method = getattr(self, f"_do_{key}")
            method()

    def open_scene(self, path: Path) -> None:
        """Open a scene with the settings of the panel."""
        self.opening = path.name
        settings = self._window.settings_panel.settings()
        self._post(OpenScene(path, settings, start=self.start_when_open))

    def continue_for(self, count: int) -> None:
        """Train on for `count` steps."""
        self._post(ContinueFor(count))

    def remember_scene(self, path: Path) -> None:
        """Put the scene first in the list of recent ones."""

    def show_log(self) -> None:
        """Bring the log into view."""
        self._window.actions_table["log"].setChecked(True)

    def _post(self, command: Command) -> None:
        self._window.session.post(command)

    # --- the run ---

    def _do_open(self) -> None:
        path = ask_folder(self._window, "Open a scene", Path.home())
        if path is not None:
            self.open_scene(path)

    def _do_demo(self) -> None:
        self.open_scene(DEMO)

    def _do_start_pause(self) -> None:
        self._post(Pause() if self._window.session.state is State.TRAINING else Start())

    def _do_run_until(self) -> None:
        dialog = QInputDialog(self._window)
        dialog.setInputMode(QInputDialog.InputMode.IntInput)
        dialog.setIntRange(1, 1_000_000)
        step = self._window.session.step
        dialog.setIntValue((step // 100 + 1) * 100)
        dialog.setWindowTitle("Run until")
        dialog.setLabelText(f"Train until this step, then pause (now at {step:,}):")
        dialog.intValueSelected.connect(self._run_until)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _run_until(self, step: int) -> None:
        self._post(RunUntil(step))

    def _do_export(self) -> None:
        folder = self._window.run_folder or Path.home()
        suggestion = folder / "exports" / f"step-{self._window.session.step:06d}.ply"
        path = ask_new_file(self._window, "Export splats", suggestion, SPLAT_FILTER)
        if path is not None:
            self._post(Export(path))

    def _do_continue(self) -> None:
        self.continue_for(self._window.finished_strip.count_box.value())

    # --- the view ---

    def _do_screenshot(self) -> None:
        picture = self._window.viewport.picture()
        if picture is None:
            self._window.status.show_notice("There is no picture yet to save.")
            return
        path = self._picture_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        if picture.save(str(path)):
            size = f"{picture.width()} x {picture.height()}"
            self._window.status.show_notice(f"Saved {path.name} ({size}) in {path.parent}")
        else:
            self._window.status.show_notice(f"{path} could not be written; is the disk full?")

    def _picture_path(self) -> Path:
        """A new file in the run's views, or among the user's pictures."""
        name = f"step-{self._window.session.step:06d}-{datetime.now():%Y%m%d-%H%M%S-%f}.png"
        if self._window.run_folder is not None:
            return self._window.run_folder / "views" / name
        pictures = QStandardPaths.StandardLocation.PicturesLocation
        return Path(QStandardPaths.writableLocation(pictures)) / f"splatscope-{name}"

    def _do_copy(self) -> None:
        picture = self._window.viewport.picture()
        if picture is None:
            self._window.status.show_notice("There is no picture yet to copy.")
            return
        QGuiApplication.clipboard().setImage(picture)
        size = f"{picture.width()} x {picture.height()}"
        self._window.status.show_notice(f"Copied the picture ({size})")

    def _do_home(self) -> None:
        self._window.viewport.go_home()

    def _do_previous_photo(self) -> None:
        self._window.viewport.step_photo(-1)

    def _do_next_photo(self) -> None:
        self._window.viewport.step_photo(1)

    def _do_cameras(self) -> None:
        shown = self._window.actions_table["cameras"].isChecked()
        self._window.viewport.set_cameras_shown(shown)

    def _do_pivot(self) -> None:
        self._window.viewport.set_pivot_shown(self._window.actions_table["pivot"].isChecked())

    # --- settings and window ---

    def _do_undo(self) -> None:
        self._window.settings_panel.undo()

    def _do_redo(self) -> None:
        self._window.settings_panel.redo()

    def _do_find(self) -> None:
        self._window.settings_panel.focus_search()

    def _do_theme(self) -> None:
        self._window.theme.toggle()

    def _do_keys(self) -> None:
        self._window.key_sheet.show()
        self._window.key_sheet.raise_()
        self._window.key_sheet.activateWindow()

    def _do_log(self) -> None:
        pass

    def _do_quit(self) -> None:
        self._window.close()
