"""The screen the window tests stand on does what real screens do."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


def test_windows_minimise_and_get_the_focus(qtbot: QtBot) -> None:
    assert QGuiApplication.platformName() == "xcb"
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(300, 200)
    window.show()
    qtbot.waitUntil(window.isActiveWindow, timeout=LIMIT_MS)
    window.showMinimized()
    qtbot.waitUntil(lambda: not window.windowHandle().isExposed(), timeout=LIMIT_MS)
    assert window.windowState() & Qt.WindowState.WindowMinimized
