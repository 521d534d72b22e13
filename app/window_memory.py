"""What the window takes from the preferences when it opens and gives back when it closes."""

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication

from app.preferences import Rectangle, clamped, save_preferences

if TYPE_CHECKING:
    from PySide6.QtWidgets import QSplitter

    from app.main_window import MainWindow

FIRST_SIZE = (1440, 900)


def restore(window: "MainWindow") -> None:
    """Place and lay out the window as it was; on its first start, in the middle of the screen."""
    preferences = window.preferences
    screens = _screens()
    geometry = preferences.geometry
    if geometry is None and screens:
        x, y, width, height = screens[0]
        own = (min(FIRST_SIZE[0], width), min(FIRST_SIZE[1], height))
        geometry = (x + (width - own[0]) // 2, y + (height - own[1]) // 2, *own)
    if geometry is not None:
        window.setGeometry(*clamped(geometry, screens))
    for name, splitter in _splitters(window).items():
        sizes = preferences.splitters.get(name, [])
        if len(sizes) == splitter.count() and all(size > 0 for size in sizes):
            splitter.setSizes(sizes)
    if preferences.closed_groups is not None:
        window.settings_panel.list.set_closed_groups(preferences.closed_groups)
    window.metrics_panel.set_logarithmic(preferences.logarithmic_loss)


def remember(window: "MainWindow") -> str:
    """Write the preferences; a warning for the log, "" when all is well."""
    preferences = window.preferences
    preferences.maximized = window.isMaximized()
    place = window.normalGeometry()
    preferences.geometry = (place.x(), place.y(), place.width(), place.height())
    preferences.theme = window.theme.colors.name
    preferences.closed_groups = window.settings_panel.list.closed_groups()
    preferences.logarithmic_loss = window.metrics_panel.logarithmic
    for name, splitter in _splitters(window).items():
        if all(splitter.sizes()):
            preferences.splitters[name] = splitter.sizes()
    return save_preferences(preferences)


def _splitters(window: "MainWindow") -> "dict[str, QSplitter]":
    return {"sides": window.sides, "center": window.center, "left": window.left}


def _screens() -> list[Rectangle]:
    areas = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    return [(area.x(), area.y(), area.width(), area.height()) for area in areas]
