"""What each action of the table does: commands for the engine, or something in the window."""

import contextlib
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths
from PySide6.QtGui import QGuiApplication

from app.dialogs.files import SPLAT_FILTER, ask_folder, ask_new_file
from app.dialogs.open_dialog import OpenDialog
from app.dialogs.steps_dialog import run_until_dialog
from app.preferences import keep_scene
from app.start_pause import StartPause
from engine.messages import (
    CancelLoading,
    Command,
    ContinueFor,
    Export,
    OpenScene,
    Restart,
    ResumeRun,
    RunUntil,
    Save,
    State,
    StepN,
    Stop,
)
from engine.presets import CLASSIC, load_preset
from engine.run.run_folder import RunFolder
from engine.scene_names import DEMO_FOLDER, DEMO_NAME, scene_path
from engine.setting_info import Value
from engine.usual_preset import PresetChoice

if TYPE_CHECKING:
    from app.main_window import MainWindow

DEMO_PRESET = PresetChoice(DEMO_NAME, "The built-in scene has a preset of its own.")
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
        self.start_pause = StartPause()
        self.start_when_open = True
        self._is_terminal_waiting = False  # to be told how closing ends
        self.preset_follows_scene = True  # false when a preset was named by the user
        self.usual_preset = PresetChoice(CLASSIC, "")  # of scenes that bring none of their own
        self.resume_changes: dict[str, Value] = {}  # given for the first run that is opened

    def carry_out(self, key: str) -> None:
        """Do what the action `key` says."""
        if key in PLAIN:
            self._post(PLAIN[key]())
        else:
            method = getattr(self, f"_do_{key}")
            method()

    def open_named(self, name: str) -> None:
        """Open what was named on the command line: a path, or `demo`."""
        self.open_scene(scene_path(name))

    def open_scene(self, path: Path) -> None:
        """Open a scene with the settings of the panel, or go on with the run of a run folder."""
        self.opening = path.name
        changes, self.resume_changes = tuple(self.resume_changes.items()), {}
        if RunFolder(path).facts_path.is_file():
            self._post(ResumeRun(path, changes, start=self.start_when_open))
        else:
            if self.preset_follows_scene:
                self._suit_preset(path)
            panel = self._window.settings_panel
            self._post(OpenScene(path, panel.settings(), start=self.start_when_open))
            if panel.preset_reason:
                self._window.status.show_notice(f"{panel.preset_reason} ({panel.summary})")

    def _suit_preset(self, path: Path) -> None:
        """Give the demo its own preset and other scenes the usual one; what was changed stays."""
        panel, usual = self._window.settings_panel, self.usual_preset
        wanted = DEMO_PRESET if path.resolve() == DEMO_FOLDER else usual
        if panel.untouched_preset in {DEMO_NAME, usual.name} - {wanted.name}:
            preset = load_preset(wanted.name)
            panel.set_start_values(preset, wanted.name, preset, wanted.reason)

    def continue_for(self, count: int) -> None:
        """Train on for `count` steps."""
        self._post(ContinueFor(count))

    def remember_scene(self, path: Path) -> None:
        """Put the scene first in the list of recent ones."""
        keep_scene(self._window.preferences, path.resolve())
        self._window.preferences.remember_folder("open", path.resolve().parent)
        self.show_recent()

    def show_recent(self) -> None:
        """Offer the recent scenes on the empty page."""
        recent = [Path(name) for name in self._window.preferences.recent_scenes]
        self._window.empty_page.set_recent(recent)

    def show_log(self) -> None:
        """Bring the log into view."""
        self._window.actions_table["log"].setChecked(True)
        self._do_log()

    def _post(self, command: Command) -> None:
        self._window.session.post(command)

    def close_by_signal(self) -> None:
        """Close the window and tell the terminal that asked for it what happens now."""
        window = self._window
        is_run = window.run_folder is not None and window.session.state is not State.LOADING
        words = f"saving and closing; the run is in {window.run_folder}" if is_run else "closing"
        self._is_terminal_waiting = True
        self._tell_terminal(f"{words}.")
        window.close()

    def tell_not_closed(self, reason: str) -> None:
        """Tell the terminal, if it asked, that the window stays open."""
        if self._is_terminal_waiting:
            self._is_terminal_waiting = False
            self._tell_terminal(f"not closed: {reason}")

    def ask_other_folder(self) -> Path | None:
        """Where else to save the run; None when the user thinks better of it."""
        start = self._window.preferences.folder("save")
        folder = ask_folder(self._window, "Save the run in a folder of", start)
        if folder is not None:
            self._window.preferences.remember_folder("save", folder)
        return folder

    def _tell_terminal(self, words: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone
            sys.stderr.write(f"splatscope: {words}\n")
            sys.stderr.flush()

    # --- the run ---

    def _do_open(self) -> None:
        preferences = self._window.preferences
        recent = [Path(name) for name in preferences.recent_scenes]
        dialog = OpenDialog(recent, preferences.folder("open"), self.start_when_open, self._window)
        dialog.chosen.connect(self._open_chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _open_chosen(self, path: Path, start: bool) -> None:
        self.start_when_open = start
        self.open_scene(path)

    def _do_demo(self) -> None:
        self.open_scene(scene_path(DEMO_NAME))

    def _do_start_pause(self) -> None:
        state = self._window.session.state
        if state is State.FINISHED:
            self.continue_for(self._window.finished_strip.count_box.value())
        else:
            self._post(self.start_pause.next(state))

    def _do_run_until(self) -> None:
        iterations = int(self._window.settings_panel.settings()["iterations"])
        dialog = run_until_dialog(self._window.session.step, iterations, self._window)
        dialog.chosen.connect(self._run_until)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _run_until(self, step: int) -> None:
        self._post(RunUntil(step))

    def _do_export(self) -> None:
        name = f"step-{self._window.session.step:06d}.ply"
        folder = self._window.run_folder
        suggestion = Path.home() / name if folder is None else folder / "exports" / name
        path = ask_new_file(self._window, "Export splats", suggestion, SPLAT_FILTER)
        if path is not None:
            self._post(Export(path))

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
        self._window.photos_panel.choose_previous()

    def _do_next_photo(self) -> None:
        self._window.photos_panel.choose_next()

    def _do_cameras(self) -> None:
        shown = self._window.actions_table["cameras"].isChecked()
        self._window.viewport.set_cameras_shown(shown)

    def _do_pivot(self) -> None:
        self._window.viewport.set_pivot_shown(self._window.actions_table["pivot"].isChecked())

    def _do_labels(self) -> None:
        self._window.viewport.set_labels_shown(self._window.actions_table["labels"].isChecked())

    # --- settings and window ---

    def _do_undo(self) -> None:
        self._window.settings_panel.undo()

    def _do_redo(self) -> None:
        self._window.settings_panel.redo()

    def _do_find(self) -> None:
        self._window.settings_panel.list.focus_search()

    def _do_theme(self) -> None:
        self._window.theme.toggle()

    def _do_keys(self) -> None:
        self._window.key_sheet.appear()

    def _do_log(self) -> None:
        shown = self._window.actions_table["log"].isChecked()
        window = self._window
        window.bottom.setCurrentWidget(window.log_panel if shown else window.metrics_panel)

    def _do_quit(self) -> None:
        self._window.close()
