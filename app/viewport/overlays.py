"""What is painted over the picture, the same in both viewports.

Every mark in the scene (cameras, pivot) is projected with the camera of the picture it lies on,
never with a newer one: a stale picture is never shown under a new overlay.
"""

import dataclasses
from typing import Literal

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from app.palette import DARK, Palette
from engine.cameras import Camera

Tone = Literal["plain", "good", "changed"]

MARGIN = 10.0
PILL_PADDING = 9.0
PILL_HEIGHT = 22.0
FRUSTUM_SIZE = 0.06  # of the extent
LARGEST_FRUSTUM = 0.2  # of the view's longer side; nearer cameras are not drawn
SMOOTH_LINES_UP_TO = 2_000  # lines; more are drawn without antialiasing


@dataclasses.dataclass(frozen=True)
class Pill:
    """A short text on a dark plate."""

    text: str
    tone: Tone = "plain"


def frustum_corners(cameras: list[Camera], size: float) -> np.ndarray:
    """Apex and the four picture corners at depth `size` of each camera, (n, 5, 3), world."""
    corners = np.zeros((len(cameras), 5, 3))
    for i, camera in enumerate(cameras):
        x = np.array([0, camera.width, camera.width, 0], dtype=np.float64)
        y = np.array([0, 0, camera.height, camera.height], dtype=np.float64)
        rays = np.stack(
            [(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones(4)], axis=1
        )
        # short cones, whatever the lens: the picture's longer half spans `size`
        rays *= size / max(1.0, float(np.abs(rays[:, :2]).max()))
        corners[i, 0] = camera.center
        corners[i, 1:] = rays @ camera.camera_to_world[:3, :3].T + camera.center
    return corners


FRUSTUM_EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1))


def frustum_lines(
    corners: np.ndarray, camera: Camera, hidden: int | None = None
) -> list[tuple[float, float, float, float]]:
    """The edges of those frusta that lie wholly in front, as x0, y0, x1, y1 in picture pixels.

    `hidden` is the one through which the view looks.
    """
    if len(corners) == 0:
        return []
    pixels, depths = camera.project(corners.reshape(-1, 3))
    pixels, depths = pixels.reshape(-1, 5, 2), depths.reshape(-1, 5)
    size = float(np.linalg.norm(corners[0, 1] - corners[0, 0]))
    shown = (depths > 0.1 * size).all(axis=1)
    low, high = pixels.min(axis=1), pixels.max(axis=1)
    shown &= (high >= 0).all(axis=1) & (low <= (camera.width, camera.height)).all(axis=1)
    # a large one is where the viewer stands: lines all over the view, telling nothing
    shown &= ((high - low) < LARGEST_FRUSTUM * max(camera.width, camera.height)).all(axis=1)
    if hidden is not None and 0 <= hidden < len(shown):
        shown[hidden] = False
    first, last = np.array(FRUSTUM_EDGES).T
    lines = np.concatenate([pixels[shown][:, first], pixels[shown][:, last]], axis=2)
    return [tuple(line) for line in lines.reshape(-1, 4).tolist()]


@dataclasses.dataclass(frozen=True, eq=False)
class Overlay:
    """All there is to paint; `camera` is that of the picture, in device pixels of the surface."""

    camera: Camera | None = None
    frusta: np.ndarray | None = None  # of the photos, from `frustum_corners`
    hidden_frustum: int | None = None
    pivot: np.ndarray | None = None
    pills: tuple[Pill, ...] = ()
    right_pills: tuple[Pill, ...] = ()
    hint: str = ""
    focused: bool = False
    colors: Palette = DARK
    font: QFont = dataclasses.field(default_factory=QFont)

    def paint(self, painter: QPainter, width: float, height: float, ratio: float) -> None:
        """Paint on a surface of `width` x `height` logical pixels of `ratio` device pixels."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font)
        if self.camera is not None:
            self._paint_marks(painter, ratio)
        right = self._paint_pills(painter, self.pills, MARGIN, width - MARGIN)
        if self.right_pills:
            span = sum(self._pill_width(pill.text) + 6 for pill in self.right_pills) - 6
            if right + span + 2 * MARGIN <= width:
                self._paint_pills(painter, self.right_pills, width - span - MARGIN, width)
        if self.hint and height > 4 * PILL_HEIGHT:
            self._paint_hint(painter, width, height)
        if self.focused:
            painter.setPen(QPen(QColor(self.colors.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(1, 1, width - 2, height - 2))

    def _paint_marks(self, painter: QPainter, ratio: float) -> None:
        assert self.camera is not None
        if self.frusta is not None:
            lines = frustum_lines(self.frusta, self.camera, self.hidden_frustum)
            painter.setRenderHint(
                QPainter.RenderHint.Antialiasing, len(lines) <= SMOOTH_LINES_UP_TO
            )
            drawn = [QLineF(*(value / ratio for value in line)) for line in lines]
            for color, thickness in ((QColor(0, 0, 0, 70), 2.2), (QColor(255, 255, 255, 150), 1)):
                painter.setPen(QPen(color, thickness))
                painter.drawLines(drawn)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.pivot is not None:
            pixel, depth = self.camera.project(self.pivot[None])
            if depth[0] > 0 and np.abs(pixel[0]).max() < 1e6:
                self._paint_pivot(painter, QPointF(*(pixel[0] / ratio)))

    def _paint_pivot(self, painter: QPainter, place: QPointF) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for color, thickness in (
            (QColor(0, 0, 0, 150), 3.0),
            (QColor(self.colors.pill_changed), 1.4),
        ):
            painter.setPen(QPen(color, thickness))
            painter.drawEllipse(place, 6.0, 6.0)
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                painter.drawLine(
                    place + QPointF(dx * 3.0, dy * 3.0), place + QPointF(dx * 10.0, dy * 10.0)
                )

    def _pill_width(self, text: str) -> float:
        return QFontMetricsF(self.font).horizontalAdvance(text) + 2 * PILL_PADDING

    def _paint_pills(
        self, painter: QPainter, pills: tuple[Pill, ...], left: float, limit: float
    ) -> float:
        """Paint those that fit between `left` and `limit`; where the next one would begin."""
        for pill in pills:
            span = self._pill_width(pill.text)
            if left + span > limit:
                break
            self._paint_pill(painter, QRectF(left, MARGIN, span, PILL_HEIGHT), pill)
            left += span + 6
        return left

    def _paint_hint(self, painter: QPainter, width: float, height: float) -> None:
        metrics = QFontMetricsF(self.font)
        room = width - 2 * MARGIN - 2 * PILL_PADDING
        text = metrics.elidedText(self.hint, Qt.TextElideMode.ElideRight, room)
        place = QRectF(MARGIN, height - MARGIN - PILL_HEIGHT, self._pill_width(text), PILL_HEIGHT)
        self._paint_pill(painter, place, Pill(text))

    def _paint_pill(self, painter: QPainter, place: QRectF, pill: Pill) -> None:
        plate = QColor(self.colors.pill)
        plate.setAlpha(225)
        tones = {
            "plain": self.colors.on_pill,
            "good": self.colors.pill_good,
            "changed": self.colors.pill_changed,
        }
        painter.setPen(QPen(QColor(255, 255, 255, 46), 1))  # else lost over a dark picture
        painter.setBrush(plate)
        rim = place.adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(rim, rim.height() / 2, rim.height() / 2)
        painter.setPen(QColor(tones[pill.tone]))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, pill.text)
