"""The window: it lays the parts out and connects them, and knows nothing else.

Events of the session go to every part, commands of every part go to the session. What an action
does is in `window_commands`; what is shown where and when, is here.
"""

from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QWidget,
)

from app import window_memory
from app.actions import Actions
from app.diagnostics import Diagnostics, Problem
from app.division import Division
from app.empty_page import EmptyPage
from app.error_card import ErrorCards
from app.key_sheet import KeySheet
from app.loading_page import LoadingPage
from app.palette import Palette
from app.panels.action_panel import ActionPanel
from app.panels.findings_panel import FindingsPanel
from app.panels.log_panel import LogPanel
from app.panels.metrics_panel import MetricsPanel
from app.panels.panel import Panel
from app.panels.photos_panel import PhotosPanel
from app.panels.settings_panel import SettingsPanel
from app.preferences import Preferences, Rectangle
from app.progress_strip import ProgressStrip
from app.status_bar import StatusBar
from app.strips import ClosingStrip, FinishedStrip, LoadingStrip, RestartStrip
from app.theme import Theme
from app.toolbar import Toolbar
from app.training_session import TrainingSession
from app.viewport.viewport import Viewport
from app.window_commands import WindowCommands
from app.window_layout import fit, lay_out
from app.wording import counted
from engine.messages import (
    CommandRefused,
    Evaluated,
    Event,
    Exported,
    Failed,
    Finished,
    HistoryRead,
    LoadingProgressed,
    Noticed,
    OpenScene,
    Pause,
    Refined,
    Restart,
    ResumeRun,
    RunStarted,
    Saved,
    SceneOpened,
    SettingApplied,
    Shutdown,
    Start,
    State,
    Stop,
    Warned,
)
from engine.run.run_folder import RunFolder
from engine.settings import Settings
from engine.training.evaluation import evaluation_background

LEAVE_ANYWAY_MS = 3_000  # after "close without saving", for an engine that gives no answer
# refusals that only say that what was asked for is so already
ALREADY_SO = {Start: State.TRAINING, Pause: State.PAUSED, Stop: State.FINISHED}

# what a user waits for: a line that goes after some seconds would leave an idle window
OPENING = (OpenScene, ResumeRun, Restart)


class MainWindow(QMainWindow):
    """One scene, one run, one view."""

    closed = Signal()  # the engine has stopped and the window is gone

    stack: QStackedWidget  # nothing, loading, or the view
    bottom: QStackedWidget  # plots or log
    left: QSplitter
    center: QSplitter
    divisions: dict[str, Division]  # by the names in the preferences

    def __init__(
        self,
        session: TrainingSession,
        theme: Theme,
        viewport: Viewport,
        preferences: Preferences,
        diagnostics: Diagnostics | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Splatscope")
        self.setAcceptDrops(True)
        self.session, self.theme, self.viewport = session, theme, viewport
        self.preferences = preferences
        self.scene: SceneOpened | None = None
        self.run_folder: Path | None = None
        self.passing_place: Rectangle | None = None  # beside another window; not remembered
        self._in_force = Settings()  # of the run
        self._closing = False
        self.actions_table = Actions(self)
        self.toolbar = Toolbar(self.actions_table, self)
        self.empty_page = EmptyPage(self.actions_table, self)
        self.loading_page = LoadingPage(self.actions_table, self)
        self.error_cards = ErrorCards(self)
        self.loading_strip = LoadingStrip(self.actions_table, self)
        self.finished_strip = FinishedStrip(self.actions_table, self)
        self.restart_strip = RestartStrip(self)
        self.closing_strip = ClosingStrip(self)
        self.progress_strip = ProgressStrip(self)
        self.status = StatusBar(self)
        self.settings_panel = SettingsPanel(self)
        self.photos_panel = PhotosPanel(self)
        self.findings_panel = FindingsPanel(self)
        self.action_panel = ActionPanel(self)
        self.metrics_panel = MetricsPanel(self)
        self.log_panel = LogPanel(diagnostics.log_path.parent if diagnostics else None, self)
        self.panels: tuple[Panel, ...] = (
            self.settings_panel,
            self.photos_panel,
            self.findings_panel,
            self.action_panel,
            self.metrics_panel,
            self.log_panel,
        )
        self.key_sheet = KeySheet(self)
        self.commands = WindowCommands(self)
        lay_out(self)
        self._connect(diagnostics)
        self.set_colors(theme.colors)
        self._set_state(session.state)
        for key in ("cameras", "pivot", "labels"):
            self.actions_table[key].setChecked(True)

    def appear(self, number: int = 0) -> None:
        """Show the window where and as it was last time, beside `number` others of the program."""
        window_memory.restore(self, number)
        self.commands.show_recent()
        self.log_panel.attach()
        if self.preferences.maximized:
            self.showMaximized()
        else:
            self.show()

    def _connect(self, diagnostics: Diagnostics | None) -> None:
        session, viewport = self.session, self.viewport
        session.event_arrived.connect(self._take_event)
        session.state_changed.connect(self._set_state)
        session.frame_arrived.connect(viewport.show_frame)
        session.stopped.connect(self._engine_stopped)
        viewport.view_requested.connect(session.request_view)
        viewport.worked.connect(session.count_window_work)
        viewport.noticed.connect(self.status.show_notice)
        viewport.dropped.connect(self.commands.open_named)
        viewport.key_pressed.connect(self.actions_table.press_view_key)
        self.theme.changed.connect(self.set_colors)
        for panel in self.panels:
            panel.posted.connect(session.post)
        self.photos_panel.photo_chosen.connect(viewport.go_to_photo)
        self.photos_panel.list.clicked.connect(viewport.take_focus)  # for F, H, [ and ]
        viewport.photo_changed.connect(self.photos_panel.show_chosen)
        self.settings_panel.preset_loaded.connect(self.progress_strip.expect_preset)
        self.settings_panel.undo_changed.connect(self._set_undo)
        self.restart_strip.posted.connect(session.post)
        self.finished_strip.continued.connect(self.commands.continue_for)
        self.closing_strip.given_up.connect(self._leave_without_saving)
        self.closing_strip.elsewhere_wanted.connect(self._save_elsewhere)
        self.empty_page.scene_chosen.connect(self.commands.open_scene)
        self.error_cards.log_wanted.connect(self.commands.show_log)
        self.actions_table.triggered.connect(self.commands.carry_out)
        if diagnostics is not None:
            diagnostics.problem_met.connect(self.error_cards.show_problem)

    # --- what arrives ---

    def _take_event(self, event: Event) -> None:
        for panel in self.panels:
            panel.handle(event)
        self.status.handle(event)
        self.progress_strip.handle(event)
        self.commands.start_pause.handle(event)
        self._follow_splat_cap(event)
        self._show_event(event)

    def _follow_splat_cap(self, event: Event) -> None:
        """Say whether the cap held the last refine back; another cap is news for the next one."""
        match event:
            case RunStarted() | SettingApplied(name="max_splats"):
                is_reached = False
            case Refined():
                is_reached = event.refused > 0
            case _:
                return
        self.status.set_cap_reached(is_reached)
        self.settings_panel.set_cap_reached(is_reached)

    def _show_event(self, event: Event) -> None:
        """What an event changes in the window itself."""
        if isinstance(event, SceneOpened):
            self._show_scene(event)
        elif isinstance(event, LoadingProgressed):
            self.loading_page.show_progress(event)
            self.loading_strip.show_progress(event)
        elif isinstance(event, RunStarted):
            self.run_folder = event.folder
            self.restart_strip.clear()
            self._set_up_view(event.settings)
        elif isinstance(event, SettingApplied):
            self.restart_strip.take(event)
            if not event.held:
                self._set_up_view(self._in_force.changed(event.name, event.new))
        elif isinstance(event, Evaluated):
            self.viewport.set_held_out_psnr(event.psnr, event.step)
        elif isinstance(event, HistoryRead) and event.last_evaluation:
            self.viewport.set_held_out_psnr(*event.last_evaluation)
        elif isinstance(event, Failed):
            problem = Problem(event.message, event.details, event.path, is_of_scene=True)
            self.error_cards.show_problem(problem)
            if self.session.state is State.CLOSING:
                self._closing = False  # so that closing once more tries once more
                self.closing_strip.say_not_saved()
                self.commands.tell_not_closed(event.message)
        elif isinstance(event, Finished):
            iterations = int(self.settings_panel.settings()["iterations"])
            self.finished_strip.show_end(event.step, iterations)
        else:
            self._tell(event)

    def _set_up_view(self, in_force: Settings) -> None:
        """Let the view follow the settings of the run."""
        self._in_force = in_force
        self.viewport.set_preview(str(in_force["preview"]))
        self.viewport.set_background(evaluation_background(in_force))

    def _tell(self, event: Event) -> None:
        """A quiet line for what needs no more than that."""
        if isinstance(event, CommandRefused) and isinstance(event.command, OPENING):
            self.error_cards.show_problem(Problem(event.reason, path=event.path, is_of_scene=True))
        elif isinstance(event, CommandRefused):
            if ALREADY_SO.get(type(event.command)) is not self.session.state:
                self.status.show_notice(event.reason)
        elif isinstance(event, Warned):
            self.error_cards.show_problem(Problem(event.message, is_of_scene=True, is_warning=True))
        elif isinstance(event, Noticed):
            self.status.show_notice(event.message)
        elif isinstance(event, Saved):
            self._show_saved(event, RunFolder(event.path.parent.parent))
        elif isinstance(event, Exported):
            self.error_cards.forget(lambda problem: problem.path == event.path)
            splats = counted(event.splats, "splat")
            self.status.show_notice(f"Wrote {splats} to {event.path.name}")

    def _show_saved(self, event: Saved, folder: RunFolder) -> None:
        """What could not be saved is now; a run saved elsewhere is found among the recent ones."""

        def is_over(problem: Problem) -> bool:
            written = problem.is_about(folder.checkpoints, folder.facts_path)
            return problem.is_of_scene and (written or problem.path == folder.path)

        self.error_cards.forget(is_over)
        self.status.show_notice(f"Saved the checkpoint of step {event.step:,}")
        if self.run_folder not in (None, folder.path):
            self.run_folder = folder.path
            self.commands.remember_scene(folder.path)

    def _show_scene(self, scene: SceneOpened) -> None:
        self.scene = scene
        self.viewport.set_scene(scene)
        self.stack.setCurrentWidget(self.viewport)
        self.loading_strip.setVisible(self.session.state is State.LOADING)
        self.toolbar.set_scene(f"{scene.name}  ·  {counted(len(scene.photos), 'photo')}")
        self.setWindowTitle(f"{scene.name} - Splatscope")
        self.commands.remember_scene(scene.path)
        if not _is_typing():
            self.viewport.take_focus()  # so that the keys of the view work at once

    def _set_state(self, state: State) -> None:
        self.actions_table.set_state(state)
        self.toolbar.set_state(state)
        self.status.set_state(state)
        for panel in self.panels:
            panel.set_state(state)
        self.loading_strip.hide()  # shown over the view, when the scene is known
        self.finished_strip.setVisible(state is State.FINISHED)
        if state is State.LOADING:
            self._show_loading()
        elif state is State.EMPTY:
            self._show_nothing()

    def _show_loading(self) -> None:
        if not _is_typing():
            self.setFocus()  # hidden, the view would hand the keyboard to some field
        self.error_cards.forget(lambda problem: problem.is_of_scene)
        self.loading_page.start(self.commands.opening)
        self.stack.setCurrentWidget(self.loading_page)
        self.toolbar.set_scene("")

    def _show_nothing(self) -> None:
        self.scene, self.run_folder = None, None
        self.viewport.set_scene(None)
        self.stack.setCurrentWidget(self.empty_page)
        self.toolbar.set_scene("")
        self.setWindowTitle("Splatscope")
        self.restart_strip.clear()

    def set_colors(self, colors: Palette) -> None:
        """Another theme: repaint what the style sheet does not reach."""
        self.actions_table.set_colors(colors)
        self.toolbar.set_colors(colors)
        self.viewport.set_colors(colors)
        self.progress_strip.set_colors(colors)
        for panel in self.panels:
            panel.set_colors(colors)

    def _set_undo(self, can_undo: bool, can_redo: bool) -> None:
        self.actions_table["undo"].setEnabled(can_undo)
        self.actions_table["redo"].setEnabled(can_redo)

    # --- closing ---

    def closeEvent(self, event: QCloseEvent) -> None:
        """Set the event aside until the engine has saved and stopped."""
        if self._closing is False:
            self._closing = True
            step = self.session.step
            self.closing_strip.say(f"Saving step {step:,} …" if step else "Closing …")
            self.closing_strip.show()
            self.session.post(Shutdown(save=True))
            self.viewport.hold()
        if self.session.has_stopped:
            window_memory.remember(self)
            self.log_panel.detach()
            event.accept()
            self.closed.emit()
        else:
            event.ignore()

    def _engine_stopped(self) -> None:
        self._closing = True
        self.viewport.close_view()
        self.close()

    def _save_elsewhere(self) -> None:
        folder = self.commands.ask_other_folder()
        if folder is not None:
            self._closing = True
            self.closing_strip.say(f"Saving in {folder} …")
            self.session.post(Shutdown(save=True, elsewhere=folder))

    def _leave_without_saving(self) -> None:
        self.closing_strip.say("Closing …")
        self.session.post(Shutdown(save=False))
        QTimer.singleShot(LEAVE_ANYWAY_MS, self.session.give_up)

    # --- Qt ---

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the best of the room."""
        super().resizeEvent(event)
        fit(self)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Welcome folders and files."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped."""
        for url in event.mimeData().urls():
            if url.isLocalFile():
                event.acceptProposedAction()
                self.commands.open_scene(Path(url.toLocalFile()))
                return


def _is_typing() -> bool:
    return isinstance(QApplication.focusWidget(), QLineEdit | QPlainTextEdit)
