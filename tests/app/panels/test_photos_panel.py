import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.palette import DARK
from app.panels.photo_list_model import Order, Role
from app.panels.photos_panel import PhotosPanel
from app.panels.thumbnail_loader import WAITING_LIMIT, ThumbnailLoader
from engine.dataset.scene import Finding
from engine.errors import SceneError
from engine.messages import Evaluated, PhotoScore, State
from tests.app.panels.engine_events import photo, run_started, scene_opened
from tests.child_process import BUSY_SECONDS
from tests.settling import LIMIT_MS, settle, show

Read = Callable[[Path, int, bool], np.ndarray]
MANY = 3_000


class Reader:
    """Stands for the decoder; remembers what was asked for, and can be held up."""

    def __init__(self) -> None:
        self.read_names: list[str] = []
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.gate.set()
        self.threads: set[str] = set()

    def __call__(self, path: Path, size: int, rotate_by_exif: bool) -> np.ndarray:
        self.begun.set()
        self.gate.wait(BUSY_SECONDS)
        self.threads.add(threading.current_thread().name)
        self.read_names.append(path.name)
        if "broken" in path.name:
            raise SceneError(f"{path.name} cannot be decoded; export it again.", path=path)
        return np.full((30, 40, 3), 200, dtype=np.uint8)


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def panel(qtbot: QtBot, reader: Reader) -> PhotosPanel:
    panel = PhotosPanel(read_thumbnail=reader)
    qtbot.addWidget(panel, before_close_func=lambda p: p.loader.cancel())
    panel.resize(240, 600)
    show(qtbot, panel)
    return panel


def names(panel: PhotosPanel) -> list[str]:
    return [panel.shown.index(row, 0).data() for row in range(panel.shown.rowCount())]


def test_all_photos_are_listed_by_name_with_what_they_are_for(panel: PhotosPanel) -> None:
    panel.handle(scene_opened([photo("a.jpg", held_out=True), photo("b.jpg")]))
    assert names(panel) == ["a.jpg", "b.jpg"]
    assert panel.shown.index(0, 0).data(int(Role.HELD_OUT)) is True
    assert "held out" in panel.shown.index(0, 0).data(int(Qt.ItemDataRole.ToolTipRole))


def test_thumbnails_are_read_beside_the_window_and_only_for_rows_in_sight(
    panel: PhotosPanel, reader: Reader, qtbot: QtBot
) -> None:
    panel.handle(scene_opened([photo(f"{number:05d}.jpg") for number in range(MANY)]))
    qtbot.waitUntil(
        lambda: panel.model.index(0).data(int(Role.THUMBNAIL)) is not None, timeout=LIMIT_MS
    )
    assert panel.loader.wait(BUSY_SECONDS)
    assert reader.threads == {"thumbnails"}
    assert len(reader.read_names) < 40  # a panel 600 px high shows about ten rows


def test_the_next_of_3000_photos_comes_at_once(panel: PhotosPanel, qtbot: QtBot) -> None:
    panel.handle(scene_opened([photo(f"{number:05d}.jpg") for number in range(MANY)]))
    chosen: list[int] = []
    panel.photo_chosen.connect(chosen.append)
    slowest = 0.0
    for _ in range(20):
        begin = time.thread_time()
        panel.choose_next()
        slowest = max(slowest, time.thread_time() - begin)
    assert chosen == list(range(20))
    assert slowest < 1.0  # of the processor's time; the bar is 0.1 s on an idle machine
    panel.show_chosen(0)
    panel.choose_previous()
    assert chosen[-1] == MANY - 1


def test_the_worst_photos_come_first_when_asked_for(panel: PhotosPanel) -> None:
    photos = [photo("a"), photo("b", held_out=True), photo("c", held_out=True)]
    photos.append(photo("d", held_out=True))
    panel.handle(scene_opened(photos))
    scores = (PhotoScore("b", 27.9, 0.9), PhotoScore("c", 22.1, 0.8))
    panel.handle(Evaluated(1, 100, 25.0, 0.85, scores))
    assert names(panel) == ["a", "b", "c", "d"]
    panel.set_order(Order.WORST)
    assert names(panel) == ["c", "b", "d", "a"]
    panel.handle(Evaluated(1, 200, 25.0, 0.85, (PhotoScore("b", 20, 0.9), scores[1])))
    assert names(panel) == ["b", "c", "d", "a"]
    panel.handle(run_started())
    assert names(panel) == ["b", "c", "d", "a"]
    assert panel.model.index(1).data(int(Role.PSNR)) is None


def test_a_photo_well_below_the_mean_is_marked(panel: PhotosPanel) -> None:
    photos = [photo(name, held_out=True) for name in "abc"]
    panel.handle(scene_opened(photos))
    scores = tuple(PhotoScore(*pair, 0.9) for pair in (("a", 22.1), ("b", 27.9), ("c", 28.0)))
    panel.handle(Evaluated(1, 100, 26.0, 0.9, scores))
    assert [panel.model.index(row).data(int(Role.IS_BAD)) for row in range(3)] == [
        True,
        False,
        False,
    ]


def test_the_filter_narrows_the_list_and_says_when_nothing_is_left(panel: PhotosPanel) -> None:
    panel.handle(scene_opened([photo("left/DSC_1.jpg"), photo("right/DSC_2.jpg")]))
    panel.filter.setText("RIGHT")
    assert names(panel) == ["right/DSC_2.jpg"]
    chosen: list[int] = []
    panel.photo_chosen.connect(chosen.append)
    panel.choose_next()
    assert chosen == [1]  # its place in the scene, not in the list
    panel.filter.setText("zebra")
    assert panel.nothing.isVisible()
    assert "zebra" in panel.nothing.text()


def test_a_click_goes_to_a_photo_once_and_a_second_click_goes_there_again(
    panel: PhotosPanel, qtbot: QtBot
) -> None:
    panel.handle(scene_opened([photo("a"), photo("b")]))
    chosen: list[int] = []
    panel.photo_chosen.connect(chosen.append)
    area = panel.list.visualRect(panel.shown.index(1, 0))
    for _ in range(2):
        QTest.mouseClick(panel.list.viewport(), Qt.MouseButton.LeftButton, pos=area.center())
    assert chosen in ([1, 1], [1, 1, 1])  # the test's press knows no global button state
    QTest.keyClick(panel.list, Qt.Key.Key_Up)
    assert chosen[-1] == 0


def test_a_photo_chosen_elsewhere_is_marked_without_echo(panel: PhotosPanel) -> None:
    panel.handle(scene_opened([photo("a"), photo("b")]))
    chosen: list[int] = []
    panel.photo_chosen.connect(chosen.append)
    panel.show_chosen(1)
    assert chosen == []
    assert panel.list.currentIndex().row() == 1


def test_the_footer_counts_what_is_used_and_what_is_not(panel: PhotosPanel) -> None:
    findings = [
        Finding("photo_without_pose", "warning", name, f"{name} has no pose")
        for name in ("x.jpg", "y.jpg")
    ]
    findings.append(Finding("photo_unreadable", "error", "z.jpg", "z.jpg is damaged"))
    findings.append(Finding("photos_undistorted", "ok", "a", "undistorted"))
    photos = [photo("a", held_out=True), photo("b"), photo("c")]
    panel.handle(scene_opened(photos, findings))
    lines = panel.footer.text().splitlines()
    assert lines == ["2 train  ·  1 held out", "2 without pose  ·  1 left out"]
    width = 248 - 26  # the panel at first, less its margins
    metrics = panel.footer.fontMetrics()
    assert all(metrics.horizontalAdvance(line) <= width for line in lines)
    assert "x.jpg, y.jpg" in panel.footer.toolTip()


def test_the_next_photo_is_the_next_in_the_order_shown_also_after_the_view_has_turned(
    panel: PhotosPanel,
) -> None:
    panel.handle(scene_opened([photo(name, held_out=name in "bcd") for name in "abcd"]))
    scores = tuple(PhotoScore(*pair, 0.9) for pair in (("b", 27.9), ("c", 22.1), ("d", 25.0)))
    panel.handle(Evaluated(1, 100, 25.0, 0.85, scores))
    panel.set_order(Order.WORST)
    assert names(panel) == ["c", "d", "b", "a"]
    chosen: list[int] = []
    panel.photo_chosen.connect(chosen.append)
    panel.show_chosen(2)
    panel.choose_next()
    panel.show_chosen(-1)  # the view was turned by hand
    panel.choose_next()
    panel.choose_previous()
    assert chosen == [3, 1, 3]


def test_a_photo_that_cannot_be_decoded_is_told_and_not_tried_again(
    panel: PhotosPanel, reader: Reader, qtbot: QtBot
) -> None:
    panel.handle(scene_opened([photo("broken.jpg")]))
    tooltip = int(Qt.ItemDataRole.ToolTipRole)
    qtbot.waitUntil(
        lambda: "cannot be decoded" in panel.model.index(0).data(tooltip), timeout=LIMIT_MS
    )
    panel.list.viewport().repaint()
    assert panel.loader.wait(BUSY_SECONDS)
    assert reader.read_names == ["broken.jpg"]


def test_a_photo_that_is_read_and_not_yet_told_of_is_not_read_again(
    reader: Reader, qtbot: QtBot
) -> None:
    loader = ThumbnailLoader(reader)
    loader.request(0, Path("a.jpg"), True)
    assert loader.wait(BUSY_SECONDS)  # read, and this thread has not been told
    loader.request(0, Path("a.jpg"), True)
    with qtbot.waitSignal(loader.loaded, timeout=LIMIT_MS):
        pass
    assert loader.wait(BUSY_SECONDS)
    assert reader.read_names == ["a.jpg"]
    loader.request(0, Path("a.jpg"), True)  # told and lost: it may be wished for again
    with qtbot.waitSignal(loader.loaded, timeout=LIMIT_MS):
        pass
    assert reader.read_names == ["a.jpg"] * 2


def test_another_scene_forgets_the_wishes_of_the_first(
    panel: PhotosPanel, reader: Reader, qtbot: QtBot
) -> None:
    reader.gate.clear()
    panel.handle(scene_opened([photo(f"old-{number}.jpg") for number in range(50)]))
    qtbot.waitUntil(reader.begun.is_set, timeout=LIMIT_MS)
    panel.set_state(State.LOADING)
    assert names(panel) == []
    panel.handle(scene_opened([photo("new.jpg")]))
    settle()
    reader.gate.set()
    qtbot.waitUntil(
        lambda: panel.model.index(0).data(int(Role.THUMBNAIL)) is not None, timeout=LIMIT_MS
    )
    assert panel.loader.wait(BUSY_SECONDS)
    assert len([name for name in reader.read_names if name.startswith("old")]) <= 1


def test_a_photo_at_the_place_of_one_being_read_for_another_scene_is_read_too(
    reader: Reader, qtbot: QtBot
) -> None:
    loader = ThumbnailLoader(reader)
    reader.gate.clear()
    loader.request(0, Path("old.jpg"), False)
    assert reader.begun.wait(BUSY_SECONDS)
    loader.cancel()
    loader.request(0, Path("new.jpg"), False)
    loader.request(0, Path("new.jpg"), False)
    with qtbot.waitSignal(loader.loaded, timeout=LIMIT_MS):
        reader.gate.set()
    assert loader.wait(BUSY_SECONDS)
    assert reader.read_names == ["old.jpg", "new.jpg"]


def test_the_latest_page_is_served_first_from_its_top_and_old_wishes_are_dropped(
    reader: Reader, qtbot: QtBot
) -> None:
    loader = ThumbnailLoader(reader)
    reader.gate.clear()
    loader.request(0, Path("0.jpg"), False)
    assert reader.begun.wait(BUSY_SECONDS)
    for page in (range(1, WAITING_LIMIT + 11), range(500, 505)):
        for index in page:
            loader.request(index, Path(f"{index}.jpg"), False)
        qtbot.wait(20)  # the page is painted; the event loop turns
    reader.gate.set()
    assert loader.wait(BUSY_SECONDS)
    latest = [f"{index}.jpg" for index in range(500, 505)]
    earlier = [f"{index}.jpg" for index in range(16, WAITING_LIMIT + 11)]
    assert reader.read_names == ["0.jpg", *latest, *earlier]


def test_no_thread_is_left_when_the_wishes_are_served(reader: Reader, qtbot: QtBot) -> None:
    others = set(threading.enumerate())  # of tests before
    loader = ThumbnailLoader(reader)
    with qtbot.waitSignal(loader.loaded, timeout=LIMIT_MS) as seen:
        loader.request(4, Path("a.jpg"), False)
    assert seen.args[0] == 4
    assert loader.wait(BUSY_SECONDS)
    assert "thumbnails" not in [thread.name for thread in set(threading.enumerate()) - others]


def test_real_thumbnails_are_read_from_files(tmp_path: Path, qtbot: QtBot) -> None:
    file = tmp_path / "photo.png"
    Image.new("RGB", (400, 300), (255, 0, 0)).save(file)
    loader = ThumbnailLoader()
    with qtbot.waitSignal(loader.loaded, timeout=LIMIT_MS) as seen:
        loader.request(0, file, False)
    picture = seen.args[1]
    assert (picture.width(), picture.height()) == (144, 108)
    assert picture.pixelColor(70, 50).name() == "#ff0000"
    assert loader.wait(BUSY_SECONDS)


def test_held_out_photos_carry_a_bar_in_the_palette_of_the_theme(
    panel: PhotosPanel, qtbot: QtBot
) -> None:
    panel.set_colors(DARK)
    panel.handle(scene_opened([photo("a", held_out=True), photo("b")]))
    panel.handle(Evaluated(1, 100, 25.0, 0.9, (PhotoScore("a", 25.0, 0.9),)))
    picture = panel.list.viewport().grab().toImage()

    def colors(row: int) -> set[str]:
        area = panel.list.visualRect(panel.shown.index(row, 0))
        ratio = picture.devicePixelRatio()
        return {
            picture.pixelColor(round(area.center().x() * ratio), round(y * ratio)).name()
            for y in range(area.top(), area.bottom())
        }

    assert DARK.accent in colors(0)
    assert DARK.accent not in colors(1)
