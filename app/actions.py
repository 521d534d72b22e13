"""Every action of the window, declared once.

Toolbar, menus, shortcuts, tooltips, the key sheet and the table of which action can be used in
which state all come from `ACTIONS`.
"""

import dataclasses

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.palette import Palette
from app.theme import drawn_icon
from engine import messages as m
from engine.messages import State
from engine.states import LEGAL

ALWAYS = frozenset(State) - {State.CLOSING}
WITH_SCENE = LEGAL[m.Save] | {State.LOADING}
# a finished run goes on by Continue, for as many steps as the banner says
NOT_FINISHED = frozenset(State) - {State.FINISHED}
MAIN_WORDS = {
    State.TRAINING: "Pause",
    State.PAUSED: "Resume",
    State.FAILED: "Resume",
    State.FINISHED: "Continue",
}


@dataclasses.dataclass(frozen=True)
class ActionInfo:
    """One action. `shortcut` works everywhere, `view_key` only while the view has the focus."""

    key: str
    text: str
    tooltip: str
    states: frozenset[State] = ALWAYS
    shortcut: str = ""
    view_key: str = ""
    icon: str = ""
    group: str = "Run"
    checkable: bool = False


ACTIONS = (
    ActionInfo("open", "Open", "Open a folder of posed photos", ALWAYS, "Ctrl+O", "", "open"),
    ActionInfo("demo", "Open demo", "Open the small scene that comes with the program"),
    ActionInfo(
        "start_pause",
        "Start",
        "Train or pause; a finished run goes on",
        LEGAL[m.Start] | LEGAL[m.Pause],
        "Ctrl+Return",
        "Space",
        "start",
    ),
    ActionInfo(
        "stop",
        "Stop",
        "End the run here; checkpoint and splats are saved",
        LEGAL[m.Stop] - {State.READY},
        "Ctrl+Shift+Return",
        "",
        "stop",
    ),
    ActionInfo(
        "step",
        "Step",
        "Do one training step, then pause",
        LEGAL[m.StepN] & NOT_FINISHED,
        "Ctrl+.",
        ".",
        "step",
    ),
    ActionInfo(
        "run_until",
        "Run until…",
        "Train until a step of your choice, then pause",
        LEGAL[m.RunUntil] & NOT_FINISHED,
        "Ctrl+U",
        "",
        "until",
    ),
    ActionInfo(
        "save",
        "Save",
        "Write an exact checkpoint into the run folder",
        LEGAL[m.Save],
        "Ctrl+S",
        "",
        "save",
    ),
    ActionInfo(
        "export",
        "Export…",
        "Write the splats to a .ply file",
        LEGAL[m.Export],
        "Ctrl+E",
        "",
        "export",
    ),
    ActionInfo(
        "restart",
        "Restart",
        "Begin a new run of this scene with the same settings; this run is kept",
        LEGAL[m.Restart] - {State.READY},
    ),
    ActionInfo("cancel_loading", "Cancel", "Give up loading", LEGAL[m.CancelLoading]),
    ActionInfo(
        "screenshot",
        "Screenshot",
        "Save the picture of the view to a file",
        WITH_SCENE,
        "Ctrl+P",
        "",
        "camera",
        "View",
    ),
    ActionInfo(
        "copy",
        "Copy picture",
        "Copy the picture of the view to the clipboard",
        WITH_SCENE,
        "Ctrl+Shift+C",
        "",
        "copy",
        "View",
    ),
    ActionInfo("home", "First view", "Back to the first view", WITH_SCENE, "", "H", "", "View"),
    ActionInfo(
        "previous_photo",
        "Previous photo",
        "Look through the previous photo's camera",
        WITH_SCENE,
        view_key="[",
        group="View",
    ),
    ActionInfo(
        "next_photo",
        "Next photo",
        "Look through the next photo's camera",
        WITH_SCENE,
        view_key="]",
        group="View",
    ),
    ActionInfo(
        "cameras",
        "Show cameras",
        "Draw the photos' cameras in the view",
        view_key="C",
        group="View",
        checkable=True,
    ),
    ActionInfo(
        "labels",
        "Show labels",
        "Write step, size and PSNR over the view",
        view_key="L",
        group="View",
        checkable=True,
    ),
    ActionInfo(
        "pivot",
        "Show pivot",
        "Mark the pivot while the view moves",
        view_key="V",
        group="View",
        checkable=True,
    ),
    ActionInfo(
        "undo", "Undo", "Set the last changed setting back", ALWAYS, "Ctrl+Z", "", "", "Settings"
    ),
    ActionInfo("redo", "Redo", "Change it again", ALWAYS, "Ctrl+Shift+Z", "", "", "Settings"),
    ActionInfo(
        "find", "Find a setting", "Search the settings", ALWAYS, "Ctrl+F", "", "", "Settings"
    ),
    ActionInfo("theme", "Theme", "Light or dark", ALWAYS, "Ctrl+T", "", "theme", "Window"),
    ActionInfo(
        "log",
        "Log",
        "Show the log; copy diagnostics",
        ALWAYS,
        "Ctrl+L",
        "",
        "log",
        "Window",
        checkable=True,
    ),
    ActionInfo("keys", "Keys", "Show all keys", ALWAYS, "F1", "?", "keys", "Window"),
    ActionInfo("quit", "Quit", "Save and close", frozenset(State), "Ctrl+Q", "", "", "Window"),
)

# what no action stands for, by where it works
MOUSE_AND_KEYS = {
    "In the view": (
        (("Left drag",), "Orbit about the pivot"),
        (("Middle drag", "Shift+Left drag"), "Pan"),
        (("Wheel", "Right drag"), "Zoom"),
        (("Double-click",), "Make the point under the mouse the pivot"),
        (("W A S D", "Q E"), "Fly; with Shift faster"),
        (("F held",), "Show the photo in place of the render"),
    ),
    "In the plots": (
        (("Wheel", "+", "-"), "Zoom about the step pointed at"),
        (("Drag",), "Move along the steps"),
        (("Double-click", "0"), "Show all steps"),
        (("←", "→"), "Read the values of other steps"),
        (("Esc",), "Read no more values"),
    ),
}

SYNONYMS = {"LEFT": "[", "RIGHT": "]"}
KEY_NAMES = {"LEFT": "←", "RIGHT": "→"}


class Actions(QObject):
    """The QActions of the table; `triggered` tells which one was used."""

    triggered = Signal(str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._actions: dict[str, QAction] = {}
        for info in ACTIONS:
            action = QAction(info.text, window)
            action.setObjectName(info.key)
            action.setIconText(info.text)  # Qt would leave the dots out
            action.setToolTip(_tooltip(info))
            action.setCheckable(info.checkable)
            if info.shortcut:
                action.setShortcut(QKeySequence(info.shortcut))
            action.triggered.connect(self._tell)
            window.addAction(action)
            self._actions[info.key] = action

    def __getitem__(self, key: str) -> QAction:
        return self._actions[key]

    def set_state(self, state: State) -> None:
        """Enable what can be used in `state`."""
        for info in ACTIONS:
            self._actions[info.key].setEnabled(state in info.states)
        text = MAIN_WORDS.get(state, "Start")
        self._actions["start_pause"].setText(text)
        self._actions["start_pause"].setIconText(text)

    def set_colors(self, colors: Palette) -> None:
        """Draw the icons anew."""
        for info in ACTIONS:
            if info.icon:
                icon = drawn_icon(info.icon, colors.text, colors.disabled)
                self._actions[info.key].setIcon(icon)

    def press_view_key(self, name: str) -> None:
        """A single key in the view; those of no action do nothing."""
        wanted = SYNONYMS.get(name.upper(), name).upper()
        for info in ACTIONS:
            if info.view_key and info.view_key.upper() == wanted:
                self._actions[info.key].trigger()

    def _tell(self) -> None:
        sender = self.sender()
        if sender is not None:
            self.triggered.emit(sender.objectName())


def key_names(info: ActionInfo) -> list[str]:
    """The keys of an action as a user reads them, the one that works everywhere first."""
    names = [QKeySequence(info.shortcut).toString(QKeySequence.SequenceFormat.NativeText)]
    names.append(info.view_key)
    names += [KEY_NAMES[key] for key, meant in SYNONYMS.items() if meant == info.view_key]
    return [_readable(name) for name in names if name]


def _readable(name: str) -> str:
    """A full stop at the end of a word is not seen as a key."""
    return name.removesuffix(".") + "Period" if name.endswith(".") else name


def _tooltip(info: ActionInfo) -> str:
    names = key_names(info)
    if not names:
        return info.tooltip
    keys = " or ".join(names) + (" in the view" if info.view_key else "")
    return f"{info.tooltip} ({keys})"
