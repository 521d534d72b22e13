"""Rows above the view that say what waits for the user: loading, finished, restart, closing."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.actions import Actions
from app.elided_label import ElidedLabel
from app.split_row import SplitRow
from app.theme import set_role
from app.wording import counted
from engine.messages import LoadingProgressed, Restart, SettingApplied
from engine.settings import setting_info

LABEL_PX = 220  # the text keeps so much beside the controls; in a narrower strip it stands above


class Strip(QWidget):
    """A card: a text, and controls at its right, or below it where there is little room."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_role(self, "card")
        self.setAccessibleName(name)
        self.label = ElidedLabel(parent=self, mode=Qt.TextElideMode.ElideMiddle)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row = SplitRow(self.label, LABEL_PX, self)
        self.row = row.controls
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 5, 8, 5)
        layout.addWidget(row)
        self.hide()

    def say(self, text: str) -> None:
        """Show the text, elided in the middle where it is too long."""
        self.label.setToolTip(text)
        self.label.set_full_text(text)

    def button_for(self, action: QAction, text: str = "") -> QPushButton:
        """A button that does what the action does, while the action may be used."""
        button = QPushButton(text or action.text(), self)
        button.setToolTip(action.toolTip())
        button.setAccessibleName(text or action.text())
        button.clicked.connect(action.trigger)
        self.row.addWidget(button)
        return button


class LoadingStrip(Strip):
    """Which file is being read, how far, and a way out."""

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__("Loading", parent)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setFixedWidth(160)
        self.bar.setAccessibleName("Loading progress")
        self.row.addWidget(self.bar)
        self.cancel_button = self.button_for(actions["cancel_loading"])
        self.start("")

    def start(self, what: str) -> None:
        """A loading has begun."""
        self.say(f"Opening {what} …" if what else "Opening …")
        self.bar.setRange(0, 0)

    def show_progress(self, event: LoadingProgressed) -> None:
        """How far the loading is."""
        count = f"  ·  {event.done:,} of {event.total:,}" if event.total > 1 else ""
        self.say(f"{event.stage}  ·  {event.file}{count}" if event.file else event.stage + count)
        self.bar.setRange(0, max(0, event.total))
        self.bar.setValue(event.done)


MOST_STEPS = int(setting_info("iterations").maximum or 0)


class FinishedStrip(Strip):
    """What can be done with a finished run."""

    continued = Signal(int)

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__("Run finished", parent)
        self.count_box = QSpinBox(self)
        self.count_box.setRange(1, MOST_STEPS)
        self.count_box.setGroupSeparatorShown(True)
        self.count_box.setAccessibleName("Steps to continue for")
        self.count_box.setToolTip("How many more steps to train")
        self.count_box.setFixedWidth(80)
        self.count_box.lineEdit().returnPressed.connect(self._continue)
        self.continue_button = QPushButton("Continue for", self)
        self.continue_button.setToolTip("Raise the number of iterations and train on")
        self.continue_button.clicked.connect(self._continue)
        self.row.addWidget(self.continue_button)
        self.row.addWidget(self.count_box)
        self.row.addWidget(QLabel("more steps", self))
        self.button_for(actions["export"])
        self.button_for(actions["restart"])

    def show_end(self, step: int, iterations: int) -> None:
        """The run has ended at `step`; one that was stopped early is offered its own end."""
        self.say(f"Finished at step {step:,}, all saved")
        left = iterations - step
        self.count_box.setMaximum(max(1, MOST_STEPS - step))
        self.count_box.setValue(left if left > 0 else max(100, step // 500 * 100))

    def _continue(self) -> None:
        self.continued.emit(self.count_box.value())


class RestartStrip(Strip):
    """Changes that wait for a new run."""

    posted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Changes that need a restart", parent)
        self._held: set[str] = set()
        self.restart_button = QPushButton("Restart", self)
        self.restart_button.setToolTip("Begin a new run with the changes; this run is kept")
        self.restart_button.clicked.connect(self._restart)
        self.row.addWidget(self.restart_button)

    def clear(self) -> None:
        """A new run has taken the changes."""
        self._held.clear()
        self.hide()

    def take(self, event: SettingApplied) -> None:
        """A setting's change is held, or a held one was taken back."""
        if event.held:
            self._held.add(event.name)
        else:
            self._held.discard(event.name)
        changes = counted(len(self._held), "change")
        self.restart_button.setText(f"Restart with {changes}")
        self.restart_button.setAccessibleName(f"Restart with {changes}")
        names = ", ".join(setting_info(name).label for name in sorted(self._held))
        self.say(f"Held until a restart: {names} (this run is kept)")
        self.setVisible(bool(self._held))

    def _restart(self) -> None:
        self.posted.emit(Restart())


class ClosingStrip(Strip):
    """What the window waits for before it goes."""

    given_up = Signal()
    elsewhere_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Closing", parent)
        self.elsewhere_button = QPushButton("Save elsewhere …", self)
        self.elsewhere_button.setToolTip("Choose a folder, such as on another disk, for the run")
        self.elsewhere_button.clicked.connect(self.elsewhere_wanted)
        self.elsewhere_button.hide()
        self.row.addWidget(self.elsewhere_button)
        self.leave_button = QPushButton("Close unsaved", self)
        self.leave_button.setToolTip("Close now; what was trained since the last save is lost")
        self.leave_button.clicked.connect(self.given_up)
        self.row.addWidget(self.leave_button)

    def say_not_saved(self) -> None:
        """The run's own folder does not take it: another one may."""
        self.say("Not saved: mend the error, close again")
        self.elsewhere_button.show()
