"""The photos of the scene: look for one, see which are badly reproduced, go to its camera."""

from functools import partial

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QActionGroup, QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QMenu, QToolButton, QWidget

from app.palette import Palette
from app.panels.panel import Panel
from app.panels.photo_delegate import PhotoDelegate
from app.panels.photo_list_model import Order, PhotoListModel, PhotoOrder, Role
from app.panels.thumbnail_loader import ReadThumbnail, ThumbnailLoader
from app.theme import set_role
from engine.dataset.findings import skipped_files
from engine.dataset.images import load_thumbnail
from engine.dataset.scene import Finding
from engine.messages import Evaluated, Event, RunStarted, SceneOpened, State

WITHOUT_POSE = "photo_without_pose"
NAMES_IN_TOOLTIP = 20


class PhotosPanel(Panel):
    """A list of all posed photos; choosing one emits its place in the scene."""

    photo_chosen = Signal(int)

    def __init__(
        self, parent: QWidget | None = None, read_thumbnail: ReadThumbnail = load_thumbnail
    ) -> None:
        super().__init__("Photos", parent)
        self.loader = ThumbnailLoader(read_thumbnail, self)
        self.model = PhotoListModel(self.loader, self)
        self.shown = PhotoOrder(self.model, self)
        self._delegate = PhotoDelegate(self)
        self._quiet = False
        self._last = -1  # the photo chosen last, from which the next one is counted
        self._chosen_by_press = False  # the press of the click to come has emitted already
        self._build()

    # --- events ---------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Follow the scene and its evaluations."""
        match event:
            case SceneOpened():
                self._show_scene(event)
            case RunStarted():
                self.model.set_scores({})
            case Evaluated():
                self.model.set_scores({score.name: score.psnr for score in event.photos})

    def set_state(self, state: State) -> None:
        """Forget the photos where no scene is; decode no more while closing."""
        super().set_state(state)
        if state in (State.EMPTY, State.LOADING):
            self.model.set_photos(())
            self.footer.setText("")
            self._show_emptiness()
        elif state is State.CLOSING:
            self.loader.cancel()

    def set_colors(self, colors: Palette) -> None:
        """Repaint in the colours of a theme."""
        super().set_colors(colors)
        self._delegate.colors = colors
        self.list.viewport().update()

    def set_order(self, order: Order, _checked: bool = False) -> None:
        """Sort the list another way."""
        self.shown.set_order(order)
        self.order_button.setText(f"{order.value.removesuffix(' first')} ▾")
        self.order_button.setAccessibleName(f"Order of the photos: {order.value}")
        self.list.scrollToTop()

    # --- choosing -------------------------------------------------------------------------------

    def choose_next(self) -> None:
        """Go to the next photo in the order shown; from the last to the first."""
        self._choose_by(1)

    def choose_previous(self) -> None:
        """Go to the previous photo in the order shown; from the first to the last."""
        self._choose_by(-1)

    def show_chosen(self, index: int) -> None:
        """Mark the photo at `index` of the scene as chosen elsewhere, -1: none; emits nothing."""
        self._quiet = True
        self._last = index if index >= 0 else self._last
        place = self.shown.mapFromSource(self.model.index(index))
        if place.isValid():
            self.list.setCurrentIndex(place)
        else:
            self.list.selectionModel().clear()
        self._quiet = False

    def _choose_by(self, offset: int) -> None:
        count = self.shown.rowCount()
        if not count:
            return
        last = self.shown.mapFromSource(self.model.index(self._last))
        row = last.row() + offset if last.isValid() else min(offset, 0)
        self.list.setCurrentIndex(self.shown.index(row % count, 0))

    def _take_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if not self._quiet and current.isValid():
            self._chosen_by_press = bool(QGuiApplication.mouseButtons())
            self._last = int(current.data(int(Role.INDEX)))
            self.photo_chosen.emit(self._last)

    def _take_click(self, place: QModelIndex | QPersistentModelIndex) -> None:
        # A click on the photo already chosen brings its camera back after the view has turned.
        if not self._chosen_by_press:
            self.photo_chosen.emit(int(place.data(int(Role.INDEX))))
        self._chosen_by_press = False

    # --- showing --------------------------------------------------------------------------------

    def _show_scene(self, event: SceneOpened) -> None:
        self._last = -1
        self.model.set_photos(event.photos)
        self.filter.clear()
        held_out = sum(photo.held_out for photo in event.photos)
        self._write_footer(len(event.photos) - held_out, held_out, event.findings)
        self._show_emptiness()

    def _write_footer(self, train: int, held_out: int, findings: tuple[Finding, ...]) -> None:
        without = {finding.file for finding in findings if finding.code == WITHOUT_POSE}
        files = {"without pose": without, "left out": skipped_files(findings) - without}
        left_out, tooltip = [], []
        for words, names in files.items():
            if names:
                left_out.append(f"{len(names):,} {words}")
                listed = sorted(names)[:NAMES_IN_TOOLTIP]
                rest = len(names) - len(listed)
                more = f" and {rest} more" if rest else ""
                tooltip.append(f"{words}: {', '.join(listed)}{more}")
        used = f"{train:,} train  ·  {held_out:,} held out"
        self.footer.setText("\n".join([used, "  ·  ".join(left_out)]).strip())
        self.footer.setToolTip("\n".join(tooltip))

    def _show_emptiness(self) -> None:
        photos, shown = self.model.rowCount(), self.shown.rowCount()
        self.nothing.setVisible(shown == 0)
        self.list.setVisible(shown > 0)
        closed = "The scene is being read …" if self.state is State.LOADING else "No scene is open."
        self.nothing.setText(
            f"No photo's name has “{self.filter.text()}” in it." if photos else closed
        )
        self.filter.setEnabled(photos > 0)
        self.order_button.setEnabled(photos > 0)

    def _filter(self, text: str) -> None:
        self.shown.setFilterFixedString(text)
        self._show_emptiness()

    # --- building -------------------------------------------------------------------------------

    def _build(self) -> None:
        self.order_button = QToolButton(self)
        self.order_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.order_button.setToolTip("The order of the photos")
        set_role(self.order_button, "quiet")
        menu = QMenu(self)
        group = QActionGroup(menu)
        for order in Order:
            action = menu.addAction(order.value.capitalize())
            action.setCheckable(True)
            action.setChecked(order is Order.NAME)
            group.addAction(action)
            action.triggered.connect(partial(self.set_order, order))
        self.order_button.setMenu(menu)
        self.header.addWidget(self.order_button)
        self.filter = QLineEdit(self)
        self.filter.setPlaceholderText("Filter by name")
        self.filter.setAccessibleName("Filter photos by name")
        self.filter.setToolTip("Show only photos with this in their name")
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._filter)
        self.body.addWidget(self.filter)
        self.body.addWidget(self._build_list(), 1)
        self.nothing = QLabel(self)
        self.nothing.setWordWrap(True)
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        set_role(self.nothing, "muted")
        self.body.addWidget(self.nothing, 1)
        self.footer = QLabel(self)
        self.footer.setWordWrap(True)
        set_role(self.footer, "muted")
        self.body.addWidget(self.footer)
        self.set_order(Order.NAME)
        self._show_emptiness()

    def _build_list(self) -> QListView:
        self.list = QListView(self)
        self.list.setModel(self.shown)
        self.list.setItemDelegate(self._delegate)
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName("Photos of the scene")
        self.list.selectionModel().currentChanged.connect(self._take_current)
        self.list.clicked.connect(self._take_click)
        return self.list
