"""The line at the bottom: what the engine does, how fast, and where the run is kept."""

import time
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from app.elided_label import ElidedLabel, LabelPlace
from app.pace import Pace
from app.theme import set_role
from app.time_left import TimeLeft
from app.wording import counted, duration, memory, share
from engine.messages import (
    DeviceChanged,
    Event,
    Refined,
    RunStarted,
    Saved,
    SceneOpened,
    SettingApplied,
    State,
    Stepped,
)
from engine.settings import Settings
from engine.training.schedule import halvings

REFRESH_MS = 500
NOTICE_S, LETTERS_A_SECOND = 8.0, 12.0  # at least; and how fast one reads beside other things
GAP = 16  # px between the parts
FACT_GAP = "   ·   "
LEAST_NOTICE_PX = 120
STATE_NAMES = {
    State.EMPTY: "No scene",
    State.LOADING: "Loading",
    State.READY: "Ready",
    State.TRAINING: "Training",
    State.PAUSED: "Paused",
    State.FINISHED: "Finished",
    State.FAILED: "Stopped by an error",
    State.CLOSING: "Closing",
}


class StatusBar(QWidget):
    """Takes events; repaints at most twice a second."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Status")
        self.state = State.EMPTY
        self._stepped: Stepped | None = None
        self._time_left = TimeLeft()
        self._splats = 0
        self._cap_reached = False
        self._device = ""
        self._settings = Settings()
        self._step = 0
        self._folder: Path | None = None
        self._saved_at: tuple[int, float] | None = None
        self._viewport_reason = ""
        self.facts = ElidedLabel()
        self.facts.setTextFormat(Qt.TextFormat.PlainText)
        self.notice = QLabel(self)
        self.notice.setTextFormat(Qt.TextFormat.PlainText)
        self.notice.setAccessibleName("Notice")
        self.notice.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        set_role(self.facts, "muted")
        set_role(self.notice, "")
        self.saved = QLabel(self)
        set_role(self.saved, "muted")
        self.folder_button = QPushButton(self)
        self.folder_button.setAccessibleName("Open the run folder")
        self.folder_button.clicked.connect(self._open_folder)
        self.folder_button.hide()
        set_role(self.folder_button, "link")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 8, 2)
        row.setSpacing(GAP)
        row.addWidget(LabelPlace(self.facts, self), 1)
        row.addWidget(self.notice)
        row.addWidget(self.saved)
        row.addWidget(self.folder_button)
        self.setFixedHeight(26)
        self._pace = Pace(REFRESH_MS, self)
        self._pace.due.connect(self.refresh)
        self._notice_timer = QTimer(self)
        self._notice_timer.setSingleShot(True)
        self._notice_timer.timeout.connect(self._clear_notice)
        self._minute_timer = QTimer(self)
        self._minute_timer.setInterval(10_000)
        self._minute_timer.timeout.connect(self.refresh)
        self._minute_timer.start()
        self.refresh()

    def handle(self, event: Event) -> None:
        """Remember what an event tells; shown at the next refresh."""
        if isinstance(event, Stepped):
            self._stepped = event
            self._time_left.add(event, self._settings)
            if len(event.steps):
                self._step, self._splats = int(event.steps[-1]), int(event.splats[-1])
        elif isinstance(event, Refined):
            self._splats = event.splats
        elif isinstance(event, SceneOpened):
            self._forget_run()
        elif isinstance(event, RunStarted):
            self._device, self._settings = event.device, event.settings
            self._time_left = TimeLeft()
            self._step, self._splats, self._saved_at = event.step, event.splats, None
            self._show_folder(event.folder)
        elif isinstance(event, DeviceChanged):
            self._device = event.device
        elif isinstance(event, SettingApplied) and not event.held:
            self._settings = self._settings.changed(event.name, event.new)
        elif isinstance(event, Saved):
            self._saved_at = (event.step, time.monotonic())
        else:
            return
        self._pace.ask()

    def set_state(self, state: State) -> None:
        """Show the state at once."""
        self.state = state
        if state is State.EMPTY:
            self._forget_run()
        self.refresh()
        self._fit_notice()

    def _forget_run(self) -> None:
        self._stepped, self._splats, self._saved_at, self._step = None, 0, None, 0
        self._time_left = TimeLeft()
        self._show_folder(None)

    def set_viewport_reason(self, reason: str) -> None:
        """How the view is drawn and why, for the tooltip."""
        self._viewport_reason = reason
        self.refresh()

    def set_cap_reached(self, reached: bool) -> None:
        """Whether the splat cap has stopped the growth; shown at the next refresh."""
        self._cap_reached = reached

    def show_notice(self, text: str) -> None:
        """A quiet word that goes away by itself, once there was time to read it."""
        self.notice.setToolTip(text)
        self._fit_notice()
        seconds = max(NOTICE_S, len(text) / LETTERS_A_SECOND)
        self._notice_timer.start(int(seconds * 1000))

    def _fit_notice(self) -> None:
        """As much of the notice as leaves room for what the engine does and at which step."""
        metrics, text = self.notice.fontMetrics(), self.notice.toolTip()
        beside = [part for part in (self.saved, self.folder_button) if not part.isHidden()]
        taken = sum(part.sizeHint().width() + GAP for part in beside) + 2 * GAP
        kept = metrics.horizontalAdvance(FACT_GAP.join(self._first_facts()) + FACT_GAP + "…")
        room = max(LEAST_NOTICE_PX, min(self.width() * 3 // 5, self.width() - taken - kept - GAP))
        self.notice.setText(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room))

    def eta_seconds(self) -> float:
        """Seconds to the last iteration; NaN when not known."""
        return self._time_left.seconds(self._step, self._settings)

    def refresh(self) -> None:
        """Write the line anew."""
        facts = self._facts()
        self.facts.set_full_text(FACT_GAP.join(facts))
        self.facts.setToolTip("\n".join([*facts, self._viewport_reason]).strip())
        if self._saved_at is not None:
            step, when = self._saved_at
            ago = time.monotonic() - when
            past = "just now" if ago < 5 else f"{duration(ago)} ago"
            self.saved.setText(f"saved {past}")
            self.saved.setToolTip(f"The last checkpoint is of step {step:,}")
        else:
            self.saved.setText("")

    def _first_facts(self) -> list[str]:
        return [STATE_NAMES[self.state], *([f"step {self._step:,}"] if self._step else [])]

    def _facts(self) -> list[str]:
        facts = self._first_facts()
        stepped = self._stepped
        if self.state is State.TRAINING and stepped is not None:
            facts.append(f"{stepped.steps_per_second:.1f} steps/s")
            rough = "about " if halvings(self._step + 1, self._settings) else ""
            facts.append(f"ETA {rough}{duration(self.eta_seconds())}")
        if self._splats:
            cap = ", cap reached" if self._cap_reached else ""
            facts.append(counted(self._splats, "splat") + cap)
        if stepped is not None:
            facts.append(memory(stepped.memory_bytes))
        if stepped is not None and stepped.gpu is not None:
            gpu = stepped.gpu
            used = f"{memory(gpu.used_bytes)} of {memory(gpu.total_bytes)}"
            facts.append(f"GPU {used}, {share(gpu.utilisation)} busy")
        if self._device and self.state is not State.EMPTY:
            facts.append(self._device)
        if stepped is not None:
            facts.append(f"preview {share(stepped.preview_share)} of time")
            if len(stepped.seconds):
                facts.append(f"trained for {duration(float(stepped.seconds[-1]))}")
        return facts

    def _show_folder(self, folder: Path | None) -> None:
        self._folder = folder
        self.folder_button.setVisible(folder is not None)
        if folder is not None:
            self._fit_folder(folder)
            self.folder_button.setToolTip(f"Open the run folder {folder}")

    def _fit_folder(self, folder: Path) -> None:
        metrics, room = self.folder_button.fontMetrics(), min(220, self.width() // 4)
        short = "/".join(folder.parts[-2:])
        self.folder_button.setText(metrics.elidedText(short, Qt.TextElideMode.ElideMiddle, room))

    def _open_folder(self) -> None:
        if self._folder is not None:
            place = self._folder.resolve()
            if QDesktopServices.openUrl(QUrl.fromLocalFile(str(place))):
                self.show_notice(f"Opening {place} …")
            else:
                QGuiApplication.clipboard().setText(str(place))
                self.show_notice("No file manager answered; the folder's path is copied")

    def _clear_notice(self) -> None:
        self.notice.clear()
        self.notice.setToolTip("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out the quieter facts where there is little room."""
        super().resizeEvent(event)
        self.saved.setVisible(self.width() > 900)
        if self._folder is not None:
            self._fit_folder(self._folder)
        self._fit_notice()
