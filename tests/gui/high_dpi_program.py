"""Run by `test_viewport_high_dpi` once for each scale factor: prints what it saw as JSON.

A process of its own, because Qt takes its scale factor once, at the start.
"""

import json
import sys

import numpy as np
from PySide6.QtCore import QEvent, QEventLoop, QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.gui.window_room import (
    Room,
    input_window,
    make_room,
    screen_pixels,
    widget_place,
)
from tests.settling import LIMIT_MS, settle


class Waiting:
    """The one thing of qtbot that a room needs."""

    def waitUntil(self, condition: object, timeout: int) -> None:
        loop, timer, limit = QEventLoop(), QTimer(), QTimer()
        timer.timeout.connect(lambda: loop.quit() if condition() else None)  # type: ignore[operator]
        limit.setSingleShot(True)
        limit.timeout.connect(lambda: loop.exit(1))
        timer.start(10)
        limit.start(timeout)
        if loop.exec():
            raise SystemExit(f"waited in vain for {condition}")


def exact_share(room: Room) -> float:
    """The share of the view's pixels that the screen shows exactly.

    A native child window lies on the device pixel that Qt rounds its place to, which may be the
    one beside the view's own; so the neighbours are tried too.
    """
    frame = room.view.frame
    assert frame is not None
    pixels = frame.pixels[..., :3]
    height, width = pixels.shape[:2]
    if room.view.surface.pixel_size() != (width, height):
        return 0.0
    screen = screen_pixels()
    left, top = widget_place(room.view.surface.widget)
    best = 0.0
    for x in (left, left - 1, left + 1):
        for y in (top, top - 1, top + 1):
            seen = screen[max(y, 0) : y + height, max(x, 0) : x + width]
            if seen.shape == pixels.shape:
                best = max(best, float((seen == pixels).all(axis=2).mean()))
    return best


def corner_errors(room: Room) -> list[float]:
    """How far, in device pixels, the picked points lie from clicks near the four corners."""
    view = room.view
    ratio = view.surface.widget.devicePixelRatioF()
    window, origin = input_window(view.surface)
    size = view.surface.widget.size()
    errors = []
    places: list[QPoint] = []
    view.navigation.picked.connect(lambda place: places.append(place))
    for x in (3, size.width() - 4):
        for y in (3, size.height() - 4):
            QTest.mouseDClick(window, Qt.MouseButton.LeftButton, pos=origin + QPoint(x, y))
            got = places[-1]
            errors.append(float(np.hypot(got.x() - x, got.y() - y)) * ratio)
    return errors


def look(application: QApplication, kind: str) -> dict[str, object]:
    """Open a window with one kind of view, resize it, click into its corners."""
    room = make_room(Waiting(), application, kind, size=(701, 463))  # type: ignore[arg-type]
    for change in ("cameras", "pivot", "labels"):
        getattr(room.view, f"set_{change}_shown")(False)
    room.window.setFocus()
    room.open()
    found = []
    for width, height in ((701, 463), (717, 471)):
        room.window.resize(width, height)
        settle()
        room.qtbot.waitUntil(lambda: exact_share(room) > 0.98, timeout=LIMIT_MS)
        widget = room.view.surface.widget
        frame = room.view.frame
        assert frame is not None
        found.append(
            {
                "logical": [widget.width(), widget.height()],
                "frame": [frame.pixels.shape[1], frame.pixels.shape[0]],
                "exact": exact_share(room),
            }
        )
    ratio = room.view.surface.widget.devicePixelRatioF()
    corners = corner_errors(room)
    room.close()
    room.window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return {"ratio": ratio, "views": found, "corners": corners}


def main() -> None:
    """Look at both kinds."""
    application = QApplication(["high-dpi"])
    seen = {kind: look(application, kind) for kind in ("painted", "gl")}
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
