"""Where the parts of the window are, and how they share its room."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.division import Division
from app.error_card import MOST_CARDS
from app.panels.settings_panel import SettingsPanel
from app.theme import set_role

if TYPE_CHECKING:
    from app.main_window import MainWindow

SMALLEST = (640, 400)
SIDE_PX = 248  # width of the photos at first
SETTINGS_PX = 336  # and of the settings
NARROWEST_PX = (168, 320, 264)  # photos, view, settings
PHOTOS_FROM_PX = 790  # in a narrower window the photos give their room to the view
PROGRESS_FROM_PX = 480  # in a lower one the progress strip does; the status has the step
WHOLE_CARD_FROM_PX = 720  # in a lower one the newest error has few words
ALL_CARDS_FROM_PX = 800  # and below this it hides the others


def lay_out(window: "MainWindow") -> None:
    """Put the window's parts in their places; makes its stacks and splitters."""
    window.stack = QStackedWidget(window)
    for page in (window.empty_page, window.loading_page, window.viewport):
        window.stack.addWidget(page)
    stage = _column(
        window,
        window.error_cards,
        window.closing_strip,
        window.loading_strip,
        window.finished_strip,
        window.restart_strip,
        window.stack,
        window.progress_strip,
    )
    window.bottom = QStackedWidget(window)
    window.bottom.addWidget(window.metrics_panel)
    window.bottom.addWidget(window.log_panel)
    window.bottom.setMinimumHeight(110)
    right = _column(window, window.settings_panel, window.action_panel)
    down, across = Qt.Orientation.Vertical, Qt.Orientation.Horizontal
    lists = (window.photos_panel, window.findings_panel)
    left = Division(window, down, lists, (3, 1), (600, 200))
    center = Division(window, down, (stage, window.bottom), (3, 2), (600, 300))
    window.left, window.center = left.splitter, center.splitter
    columns = (window.left, window.center, right)
    sides = Division(window, across, columns, (0, 1, 0), (SIDE_PX, 960, SETTINGS_PX))
    window.divisions = {"sides": sides, "center": center, "left": left}
    for part, width in zip(columns, NARROWEST_PX, strict=True):
        part.setMinimumWidth(width)
    body = QWidget(window)
    body_layout = QVBoxLayout(body)
    body_layout.setContentsMargins(10, 0, 10, 0)
    body_layout.addWidget(sides.splitter)
    central = QWidget(window)
    set_role(central, "window")
    outer = QVBoxLayout(central)
    outer.setContentsMargins(0, 0, 0, 0)
    outer.setSpacing(0)
    outer.addWidget(window.toolbar)
    outer.addWidget(body, 1)
    outer.addWidget(window.status)
    window.setCentralWidget(central)
    window.setMinimumSize(*SMALLEST)


def fit(window: "MainWindow") -> None:
    """Leave out what a small window has no room for, and give the rest what is wanted."""
    window.left.setVisible(window.width() >= PHOTOS_FROM_PX)
    window.progress_strip.setVisible(window.height() >= PROGRESS_FROM_PX)
    most = MOST_CARDS if window.height() >= ALL_CARDS_FROM_PX else 1
    window.error_cards.set_room(most, brief=window.height() < WHOLE_CARD_FROM_PX)
    for division in window.divisions.values():
        division.share_out()


def _column(parent: QWidget, *widgets: QWidget) -> QWidget:
    """The widgets one below the other; the stack takes what is left."""
    column = QWidget(parent)
    layout = QVBoxLayout(column)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(8)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, QStackedWidget | SettingsPanel) else 0)
    return column
