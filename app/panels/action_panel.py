"""Things to do to the splats now, each with what it did last."""

import dataclasses
from functools import partial

from PySide6.QtWidgets import QGridLayout, QPushButton, QWidget

from app.elided_label import ElidedLabel
from app.panels.panel import Panel
from app.theme import set_role
from engine.messages import (
    Command,
    CommandRefused,
    DensifyNow,
    Evaluate,
    Evaluated,
    Event,
    HistoryRead,
    OpacitiesReset,
    PruneNow,
    Refined,
    ResetOpacity,
    RunStarted,
    SceneOpened,
    State,
)
from engine.states import LEGAL


@dataclasses.dataclass(frozen=True)
class _Deed:
    """One button: its word, the command it posts, and what that does."""

    word: str
    command: type[Command]
    meaning: str


DEEDS = (
    _Deed(
        "Reset opacity",
        ResetOpacity,
        "Lower every opacity to the value in the settings; the picture darkens and recovers",
    ),
    _Deed(
        "Prune",
        PruneNow,
        "Remove now what the next refine would by the prune settings: faint splats, and huge ones "
        "once the step is past the first opacity reset",
    ),
    _Deed("Densify", DensifyNow, "Clone and split splats by the densify settings"),
    _Deed("Evaluate", Evaluate, "Measure PSNR and SSIM on the held-out photos"),
)


class ActionPanel(Panel):
    """A button a deed, and beside it the last result."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Do now", parent)
        self.buttons: dict[type[Command], QPushButton] = {}
        self.results: dict[type[Command], ElidedLabel] = {}
        self._asked: set[type[Command]] = set()
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for line, deed in enumerate(DEEDS):
            button = QPushButton(deed.word, self)
            button.setToolTip(deed.meaning)
            button.setAccessibleName(f"{deed.word} now")
            button.setAccessibleDescription(deed.meaning)
            button.clicked.connect(partial(self._do, deed.command))
            result = ElidedLabel("", self)
            set_role(result, "muted")
            grid.addWidget(button, line, 0)
            grid.addWidget(result, line, 1)
            self.buttons[deed.command] = button
            self.results[deed.command] = result
        self.body.addLayout(grid)
        self.set_state(State.EMPTY)

    def set_state(self, state: State) -> None:
        """Enable what is legal in `state`."""
        super().set_state(state)
        if state is State.EMPTY:
            self._clear()
        for command, button in self.buttons.items():
            button.setEnabled(state in LEGAL[command])

    def handle(self, event: Event) -> None:
        """Tell what was done, by the schedule or by hand."""
        match event:
            case SceneOpened() | RunStarted():
                self._clear()
            case HistoryRead(last_evaluation=(psnr, step)):
                self._tell(Evaluate, f"{psnr:.2f} dB", suffix=f" at step {step:,}")
            case OpacitiesReset():
                self._tell(ResetOpacity, f"to {event.value:g}", suffix=f" at step {event.step:,}")
            case Refined():
                self._tell_refine(event)
            case Evaluated():
                count = len(event.photos)
                plural = "" if count == 1 else "s"
                self._tell(
                    Evaluate,
                    f"{event.psnr:.2f} dB",
                    f"Mean over {count} held-out photo{plural}: PSNR {event.psnr:.2f} dB, "
                    f"SSIM {event.ssim:.4f} at step {event.step:,}",
                    suffix=f" at step {event.step:,}",
                )
            case CommandRefused() if type(event.command) in self.results:
                self._tell(type(event.command), event.reason, event.reason, "bad")

    def _clear(self) -> None:
        self._asked.clear()
        for command in self.results:
            self._tell(command, "")

    def _do(self, command: type[Command], _checked: bool = False) -> None:
        self._asked.add(command)
        self._tell(command, "waiting…")
        self.posted.emit(command())

    def _tell_refine(self, event: Refined) -> None:
        step = f" at step {event.step:,}"
        grown = event.cloned + event.split
        details = (
            f"{event.cloned:,} cloned, {event.split:,} split, {event.pruned:,} pruned{step}; "
            f"{event.splats:,} splats"
        )
        if not event.by_hand or PruneNow in self._asked or event.pruned:
            self._tell(PruneNow, f"{event.pruned:,} removed", details, suffix=step)
        if not event.by_hand or DensifyNow in self._asked or grown:
            self._tell(DensifyNow, f"{grown:,} added", details, suffix=step)
        if event.by_hand:
            self._asked -= {PruneNow, DensifyNow}

    def _tell(
        self,
        command: type[Command],
        text: str,
        tooltip: str = "",
        role: str = "muted",
        suffix: str = "",
    ) -> None:
        """Write `text` beside a button, with `suffix` where there is room for both."""
        result = self.results[command]
        result.set_full_text(text + suffix, text)
        result.setToolTip(tooltip or text + suffix)
        set_role(result, role)
