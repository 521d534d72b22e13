"""Run by `display_probe` in a process of its own: tells, on standard output, what the display can.

With colours as arguments it then shows a small sign that the program is starting, until standard
input ends: this process has a window long before the parent has imported torch.
"""

import json
import os
import sys
import threading

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QGuiApplication,
    QOffscreenSurface,
    QOpenGLContext,
    QPainter,
    QPaintEvent,
    QRasterWindow,
)

GL_RENDERER = 0x1F01
SIZE = QSize(320, 96)


def what_is_there(application: QGuiApplication) -> dict[str, str | None]:
    """The platform, and what draws OpenGL on it; None where no context can be had."""
    found: dict[str, str | None] = {"platform": application.platformName(), "renderer": None}
    context, surface = QOpenGLContext(), QOffscreenSurface()
    surface.create()
    if context.create() and context.makeCurrent(surface):
        found["renderer"] = context.functions().glGetString(GL_RENDERER)
        context.doneCurrent()
    return found


class Sign(QRasterWindow):
    """The program's name in the middle of the screen."""

    def __init__(self, ground: str, text: str, muted: str) -> None:
        super().__init__()
        self._ground, self._text, self._muted = QColor(ground), QColor(text), QColor(muted)
        self.setTitle("Splatscope is starting")
        self.setFlags(
            Qt.WindowType.SplashScreen
            | Qt.WindowType.FramelessWindowHint
            | Qt.WindowType.WindowDoesNotAcceptFocus
        )
        place = QRect(QPoint(), SIZE)
        place.moveCenter(self.screen().availableGeometry().center())
        self.setGeometry(place)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the two lines."""
        painter = QPainter(self)
        area = QRectF(0, 0, self.width(), self.height())
        painter.fillRect(area, self._ground)
        painter.setPen(self._muted)
        painter.drawRect(area.adjusted(0, 0, -1, -1))
        upper, lower = QRectF(area), QRectF(area)
        upper.setBottom(area.center().y() + 2)
        lower.setTop(area.center().y() + 8)
        large = QFont(QGuiApplication.font())
        large.setPointSizeF(large.pointSizeF() * 1.6)
        large.setWeight(QFont.Weight.DemiBold)
        middle = Qt.AlignmentFlag.AlignHCenter
        painter.setFont(large)
        painter.setPen(self._text)
        painter.drawText(upper, middle | Qt.AlignmentFlag.AlignBottom, "Splatscope")
        painter.setFont(QGuiApplication.font())
        painter.setPen(self._muted)
        painter.drawText(lower, middle | Qt.AlignmentFlag.AlignTop, "starting …")
        painter.end()


def main(colors: list[str]) -> None:
    """Tell, and stay while there are colours to show and somebody waits."""
    application = QGuiApplication(["splatscope"])
    os.write(1, json.dumps(what_is_there(application)).encode())
    os.close(1)  # whoever reads need not wait for the end of this process
    if not colors:
        return
    sign = Sign(*colors)
    sign.show()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        os._exit(0)  # a quit from another thread can be lost; there is nothing to put in order

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    application.exec()


if __name__ == "__main__":
    main(sys.argv[1:])
