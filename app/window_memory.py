"""What the window takes from the preferences when it opens and gives back when it closes."""

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication

from app.preferences import (
    Rectangle,
    cascaded,
    clamped,
    load_preferences,
    save_preferences,
    take_recent,
)

if TYPE_CHECKING:
    from app.main_window import MainWindow

FIRST_SIZE = (1440, 900)


def restore(window: "MainWindow", number: int) -> None:
    """Place and lay out the window as it was; on its first start, in the middle of the screen.

    `number` counts the windows of the program that are open already: they stay in sight.
    """
    preferences = window.preferences
    screens = _screens()
    geometry = preferences.geometry
    if geometry is None and screens:
        x, y, width, height = screens[0]
        own = (min(FIRST_SIZE[0], width), min(FIRST_SIZE[1], height))
        geometry = (x + (width - own[0]) // 2, y + (height - own[1]) // 2, *own)
    if geometry is not None:
        place = cascaded(clamped(geometry, screens), number, screens)
        window.setGeometry(*place)
        window.passing_place = place if number else None
    for name, division in window.divisions.items():
        division.want(preferences.splitters.get(name, []))
    if preferences.closed_groups is not None:
        window.settings_panel.list.set_closed_groups(preferences.closed_groups)
    window.metrics_panel.set_logarithmic(preferences.logarithmic_loss)


def remember(window: "MainWindow") -> str:
    """Write the preferences; a warning for the log, "" when all is well."""
    preferences = window.preferences
    preferences.maximized = window.isMaximized()
    place = window.normalGeometry()
    geometry = (place.x(), place.y(), place.width(), place.height())
    if geometry != window.passing_place:
        preferences.geometry = geometry
    preferences.theme = window.theme.colors.name
    preferences.closed_groups = window.settings_panel.list.closed_groups()
    preferences.logarithmic_loss = window.metrics_panel.logarithmic
    preferences.splitters = {name: part.wanted for name, part in window.divisions.items()}
    take_recent(preferences, load_preferences()[0])  # other windows' scenes are among them
    return save_preferences(preferences)


def _screens() -> list[Rectangle]:
    areas = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    return [(area.x(), area.y(), area.width(), area.height()) for area in areas]
