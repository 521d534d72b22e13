"""The photos of a scene as a list model with lazy thumbnails, and the order they are shown in."""

import enum
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QImage, QPixmap

from app.panels.thumbnail_loader import ThumbnailLoader
from engine.messages import PhotoSummary

Index = QModelIndex | QPersistentModelIndex
KEPT_THUMBNAILS = 500  # 40 MB at most
WORST_MARGIN_DB = 1.5  # so far below the mean a held-out photo is worth a look


class Role(enum.IntEnum):
    """What can be asked of a photo's row."""

    INDEX = Qt.ItemDataRole.UserRole + 1  # int, the photo's place in the scene
    HELD_OUT = Qt.ItemDataRole.UserRole + 2  # bool
    PSNR = Qt.ItemDataRole.UserRole + 3  # float or None
    IS_BAD = Qt.ItemDataRole.UserRole + 4  # bool, well below the mean
    THUMBNAIL = Qt.ItemDataRole.UserRole + 5  # QPixmap or None; asking has it loaded


class Order(enum.Enum):
    """The order of the list."""

    NAME = "by name"
    WORST = "worst first"


class PhotoListModel(QAbstractListModel):
    """One row a photo, in the order of the scene."""

    def __init__(self, loader: ThumbnailLoader, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._photos: tuple[PhotoSummary, ...] = ()
        self._rows_by_name: dict[str, int] = {}
        self._scores: dict[int, float] = {}
        self._mean = 0.0
        self._thumbnails: OrderedDict[int, QPixmap] = OrderedDict()
        self._failures: dict[int, str] = {}
        self._loader = loader
        loader.loaded.connect(self._take_thumbnail)
        loader.failed.connect(self._take_failure)

    def set_photos(self, photos: Sequence[PhotoSummary]) -> None:
        """Another scene."""
        self._loader.cancel()
        self.beginResetModel()
        self._photos = tuple(photos)
        self._rows_by_name = {photo.name: row for row, photo in enumerate(self._photos)}
        self._scores.clear()
        self._thumbnails.clear()
        self._failures.clear()
        self.endResetModel()

    def set_scores(self, psnr: Mapping[str, float]) -> None:
        """The PSNR of held-out photos by name; {} for another run."""
        rows = {
            self._rows_by_name[name]: value
            for name, value in psnr.items()
            if name in self._rows_by_name
        }
        self._scores = rows
        self._mean = sum(rows.values()) / len(rows) if rows else 0.0
        if self._photos:
            roles = [int(Role.PSNR), int(Role.IS_BAD), int(Qt.ItemDataRole.ToolTipRole)]
            self.dataChanged.emit(self.index(0), self.index(len(self._photos) - 1), roles)

    def badness(self, row: int) -> tuple[int, float]:
        """A key that sorts the worst measured first, then held-out photos, then the others."""
        score = self._scores.get(row)
        if score is not None:
            return 0, score
        return (1 if self._photos[row].held_out else 2), 0.0

    def photo(self, row: int) -> PhotoSummary:
        """The photo of a row."""
        return self._photos[row]

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        """The number of photos."""
        return 0 if parent.isValid() else len(self._photos)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What a view or the delegate asks about a row."""
        row = index.row()
        if not 0 <= row < len(self._photos):
            return None
        photo = self._photos[row]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return photo.name
            case Qt.ItemDataRole.ToolTipRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._description(row, photo)
            case Role.INDEX:
                return row
            case Role.HELD_OUT:
                return photo.held_out
            case Role.PSNR:
                return self._scores.get(row)
            case Role.IS_BAD:
                score = self._scores.get(row)
                return score is not None and score < self._mean - WORST_MARGIN_DB
            case Role.THUMBNAIL:
                return self._thumbnail(row, photo)
        return None

    def _description(self, row: int, photo: PhotoSummary) -> str:
        size = f"{photo.camera.width} x {photo.camera.height}"
        use = "held out: measured, never trained on" if photo.held_out else "trained on"
        lines = [photo.name, f"{size}, {use}"]
        if row in self._scores:
            lines.append(f"PSNR {self._scores[row]:.2f} dB at the last evaluation")
        if row in self._failures:
            lines.append(self._failures[row])
        return "\n".join(lines)

    def _thumbnail(self, row: int, photo: PhotoSummary) -> QPixmap | None:
        if row in self._thumbnails:
            self._thumbnails.move_to_end(row)
            return self._thumbnails[row]
        if row not in self._failures:
            turned = photo.source is not None and photo.source.rotate_by_exif
            self._loader.request(row, photo.path, turned)
        return None

    def _take_thumbnail(self, row: int, image: QImage) -> None:
        self._thumbnails[row] = QPixmap.fromImage(image)
        while len(self._thumbnails) > KEPT_THUMBNAILS:
            self._thumbnails.popitem(last=False)
        self.dataChanged.emit(self.index(row), self.index(row), [int(Role.THUMBNAIL)])

    def _take_failure(self, row: int, reason: str) -> None:
        self._failures[row] = reason
        self.dataChanged.emit(self.index(row), self.index(row), [int(Role.THUMBNAIL)])


class PhotoOrder(QSortFilterProxyModel):
    """Filters by name and sorts by name or by how badly a photo is reproduced."""

    def __init__(self, photos: PhotoListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._photos = photos
        self.setSourceModel(photos)
        self.order = Order.NAME
        self.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.setSortRole(int(Role.PSNR))
        self.sort(0)

    def set_order(self, order: Order) -> None:
        """Sort another way."""
        if order is not self.order:
            self.order = order
            self.invalidate()

    def lessThan(self, left: Index, right: Index) -> bool:
        """Whether a photo comes before another: the worst measured first, or by place."""
        left_row, right_row = left.row(), right.row()
        if self.order is Order.NAME:
            return left_row < right_row
        left_key, right_key = self._photos.badness(left_row), self._photos.badness(right_row)
        return (left_key, left_row) < (right_key, right_row)
