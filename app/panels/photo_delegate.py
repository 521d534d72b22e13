"""How one photo of the list is painted: thumbnail, name, what it is for, and how good it is."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPainterPath, QPalette, QPen, QPixmap
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.palette import DARK, Palette
from app.panels.photo_list_model import Role

THUMBNAIL = QSize(66, 44)
GAP = 8
LOWEST_DB, HIGHEST_DB = 10.0, 40.0  # the ends of the bar


class PhotoDelegate(QStyledItemDelegate):
    """Paints rows of a `PhotoListModel`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.colors: Palette = DARK

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """Two lines and a bar, at least as high as the thumbnail."""
        lines = option.fontMetrics.height() * 2 + 8
        return QSize(120, max(THUMBNAIL.height(), lines) + GAP)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        """Paint one row."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = option.rect.adjusted(2, 2, -2, -2)
        self._paint_ground(painter, option, area)
        width = min(THUMBNAIL.width(), area.width() * 3 // 10)  # leave a narrow list its names
        picture = QRect(area.left() + 2, 0, width, THUMBNAIL.height())
        picture.moveTop(area.center().y() - picture.height() // 2 + 1)
        self._paint_picture(painter, picture, index.data(int(Role.THUMBNAIL)))
        text = QRect(area)
        text.setLeft(picture.right() + 1 + GAP)
        text.setRight(area.right() - 4)
        text.setTop(picture.top())
        text.setBottom(picture.bottom())
        self._paint_text(painter, option, text, index)
        painter.restore()

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem, area: QRect) -> None:
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
        if selected or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            color = self.colors.accent_soft if selected else self.colors.card
            painter.setBrush(QColor(color))
            painter.drawRoundedRect(area, 4, 4)
        if focused:
            painter.setPen(QPen(QColor(self.colors.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)

    def _paint_picture(self, painter: QPainter, place: QRect, picture: QPixmap | None) -> None:
        if picture is None or picture.isNull():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.colors.grid))
            painter.drawRoundedRect(place, 3, 3)
            return
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        scale = max(place.width() / picture.width(), place.height() / picture.height())
        width, height = place.width() / scale, place.height() / scale
        part = QRectF((picture.width() - width) / 2, (picture.height() - height) / 2, width, height)
        rounded = QPainterPath()
        rounded.addRoundedRect(QRectF(place), 3, 3)
        painter.save()
        painter.setClipPath(rounded)
        painter.drawPixmap(QRectF(place), picture, part)
        painter.restore()

    def _paint_text(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        area: QRect,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        name = option.fontMetrics.elidedText(
            str(index.data()), Qt.TextElideMode.ElideLeft, area.width()
        )
        painter.setFont(option.font)
        painter.setPen(option.palette.color(QPalette.ColorRole.Text))
        painter.drawText(area, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, name)
        score = index.data(int(Role.PSNR))
        held_out = bool(index.data(int(Role.HELD_OUT)))
        bad = bool(index.data(int(Role.IS_BAD)))
        small = QFont(option.font)
        small.setPointSizeF(max(option.font.pointSizeF() - 1, 6))
        painter.setFont(small)
        color = self.colors.bad if bad else self.colors.muted
        painter.setPen(QColor(color))
        use = "held out" if held_out else "train"
        line = QRect(area)
        line.setTop(area.top() + option.fontMetrics.height() + 1)
        words = use if score is None else f"{score:.1f} dB  ·  {use}"
        words = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, words)
        if score is not None:
            self._paint_bar(painter, area, float(score), bad)

    def _paint_bar(self, painter: QPainter, area: QRect, score: float, bad: bool) -> None:
        share = min(max((score - LOWEST_DB) / (HIGHEST_DB - LOWEST_DB), 0.0), 1.0)
        bar = QRectF(area.left(), area.bottom() - 2, area.width(), 3)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.colors.grid))
        painter.drawRoundedRect(bar, 1.5, 1.5)
        bar.setWidth(bar.width() * share)
        painter.setBrush(QColor(self.colors.bad if bad else self.colors.accent))
        painter.drawRoundedRect(bar, 1.5, 1.5)
