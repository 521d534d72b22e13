"""The row at the top: scene on the left, the run in the middle, the window on the right."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QToolButton, QWidget

from app.actions import Actions
from app.palette import DARK, Palette
from app.theme import drawn_icon, set_role
from engine.messages import State

RUN_KEYS = ("open", "start_pause", "stop", "step", "run_until", "save", "export")
WINDOW_KEYS = ("screenshot", "theme", "keys")
VIEW_KEYS = (
    "home",
    "previous_photo",
    "next_photo",
    "",
    "cameras",
    "pivot",
    "labels",
    "",
    "copy",
    "log",
)
COMPACT_BELOW = 1120  # px of the window; below, the buttons show icons only
# what goes into the menu at the right, one after the other, where the buttons have no room
GIVES_WAY = ("keys", "theme", "screenshot", "run_until", "export", "save", "step")
MARGIN_PX, SPACING_PX = 10, 6
LEAST_SCENE_PX = 80  # of the scene's name; less tells nothing


class Toolbar(QWidget):
    """Buttons of the action table."""

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Toolbar")
        self._actions = actions
        self._colors = DARK
        self._training = False
        self._scene_text = ""
        self._in_menu: list[str] = []
        self.name_label = QLabel("Splatscope", self)
        set_role(self.name_label, "strong")
        self.scene_label = QLabel(self)
        self.scene_label.setTextFormat(Qt.TextFormat.PlainText)
        self.scene_label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        set_role(self.scene_label, "muted")
        left = QWidget(self)
        left_row = QHBoxLayout(left)
        left_row.setContentsMargins(0, 0, 0, 0)
        left_row.setSpacing(10)
        left_row.addWidget(self.name_label)
        left_row.addWidget(self.scene_label, 1)
        self.buttons = {key: self._button(actions[key]) for key in (*RUN_KEYS, *WINDOW_KEYS)}
        self.view_button = self._menu_button("View ▾", "View")
        self.view_button.setToolTip("Where the view stands and what is drawn over it")
        for key in VIEW_KEYS:
            if key:
                self.view_button.menu().addAction(actions[key])
            else:
                self.view_button.menu().addSeparator()
        self.more_button = self._menu_button("⋯", "More")
        self.more_button.setToolTip("What has no room in the toolbar")
        set_role(self.buttons["start_pause"], "primary")
        right = QWidget(self)
        right_row = QHBoxLayout(right)
        right_row.setContentsMargins(0, 0, 0, 0)
        right_row.setSpacing(SPACING_PX)
        right_row.addStretch(1)
        right_row.addWidget(self.view_button)
        row = QHBoxLayout(self)
        row.setContentsMargins(MARGIN_PX, 8, MARGIN_PX, 6)
        row.setSpacing(SPACING_PX)
        row.addWidget(left, 1)
        for key in RUN_KEYS:
            row.addWidget(self.buttons[key])
        row.addWidget(right, 1)
        for key in WINDOW_KEYS:
            right_row.addWidget(self.buttons[key])
        right_row.addWidget(self.more_button)

    def set_scene(self, text: str) -> None:
        """What is open, such as `banana · 16 photos`."""
        self._scene_text = text
        self._elide()

    def set_state(self, state: State) -> None:
        """Let the main button say what it does."""
        self._training = state is State.TRAINING
        self._draw_main_icon()
        self.buttons["start_pause"].setAccessibleName(self._actions["start_pause"].text())
        self._make_room()

    def set_colors(self, colors: Palette) -> None:
        """Draw the main button's icon in the colour of its text."""
        self._colors = colors
        self._draw_main_icon()

    def _draw_main_icon(self) -> None:
        name = "pause" if self._training else "start"
        self._actions["start_pause"].setIcon(
            drawn_icon(name, self._colors.on_primary, self._colors.disabled)
        )

    def _button(self, action: QAction) -> QToolButton:
        button = QToolButton(self)
        button.setDefaultAction(action)
        button.setIconSize(QSize(16, 16))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setAccessibleName(action.text())
        return button

    def _menu_button(self, text: str, name: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setAccessibleName(name)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setMenu(QMenu(button))
        return button

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Icons alone where texts have no room, and a menu for what still has none."""
        super().resizeEvent(event)
        text_only = Qt.ToolButtonStyle.ToolButtonTextOnly
        icon_only = Qt.ToolButtonStyle.ToolButtonIconOnly
        beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        compact = self.width() < COMPACT_BELOW
        for key, button in self.buttons.items():
            style = text_only
            if compact or key in ("theme", "keys"):
                style = icon_only
            if key == "start_pause":
                style = beside
            button.setToolButtonStyle(style)
        self._make_room()
        self._elide()

    def _make_room(self) -> None:
        """Drop the name, then move buttons into the menu, until the rest fits."""
        hidden: list[str] = []
        waiting = list(GIVES_WAY)
        room = self.width() - 2 * MARGIN_PX
        name_shown = self._needed(hidden) + self.name_label.sizeHint().width() + 20 <= room
        while self._needed(hidden) > room and waiting:
            hidden.append(waiting.pop(0))
        self.name_label.setVisible(name_shown)
        for key, button in self.buttons.items():
            button.setVisible(key not in hidden)
        self.more_button.setVisible(bool(hidden))
        if hidden != self._in_menu:
            self._in_menu = hidden
            menu = self.more_button.menu()
            menu.clear()
            menu.addActions([self._actions[key] for key in self.buttons if key in hidden])

    def _needed(self, hidden: list[str]) -> int:
        """How wide the buttons are when those `hidden` are in the menu."""
        shown = [button for key, button in self.buttons.items() if key not in hidden]
        shown += [self.view_button] + ([self.more_button] if hidden else [])
        return sum(button.sizeHint().width() + SPACING_PX for button in shown) + SPACING_PX

    def _elide(self) -> None:
        width = self.scene_label.width()
        metrics = self.scene_label.fontMetrics()
        text = metrics.elidedText(self._scene_text, Qt.TextElideMode.ElideMiddle, width)
        text = text if width >= LEAST_SCENE_PX else ""
        self.scene_label.setText(text)
        self.scene_label.setToolTip(self._scene_text)
