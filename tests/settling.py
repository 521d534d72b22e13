"""Waiting for widgets to come to rest.

One turn of the event loop promises little: layouts ask for further layouts, and on a real screen
the window manager answers a new size when it finds the time.
"""

from collections.abc import Callable

from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

LIMIT_MS = 40_000  # for what takes milliseconds; only a broken program waits so long


def settle() -> None:
    """Let layouts and what they ask for come to an end."""
    for _ in range(3):  # a strip goes, the view grows, the view asks anew
        QApplication.sendPostedEvents()
        QApplication.processEvents()


def show(qtbot: QtBot, window: QWidget) -> None:
    """Show a window and wait until it is on the screen, laid out."""
    with qtbot.waitExposed(window, timeout=LIMIT_MS):
        window.show()
    settle()


def wait_for_layout(qtbot: QtBot, claim: Callable[[], None]) -> None:
    """Wait until a claim about places and sizes, made by assertions, holds."""
    settle()  # what stood there before must not pass for the answer
    qtbot.waitUntil(claim, timeout=LIMIT_MS)
