"""Opening, comparing, finishing, failing and leaving, in the real window with the real engine."""

import gc
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QAccessible, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QWidget

from app.dialogs.open_dialog import OpenDialog
from app.dialogs.steps_dialog import StepsDialog
from cuda_rasterizer import Rendering
from engine.dataset.images import load_photo
from engine.dataset.photo_store import PhotoStore
from engine.export.splat_files import read_splats
from engine.messages import Exported, Failed, Finished, RunStarted, Saved, SceneOpened, State
from engine.open_run import OpenRun
from engine.run.checkpoint import load_checkpoint
from engine.scene_names import DEMO_FOLDER
from engine.training.trainer import Trainer
from tests.engine.driving import write_tiny_scene
from tests.gui.journey import LIMIT_S, Journey, focus_window
from tests.gui.window_room import input_window
from tests.settling import settle

pytestmark = pytest.mark.gl


@pytest.fixture
def room(journey: Journey) -> Journey:
    """The window with the real engine."""
    return journey


@pytest.fixture
def tiny_scene(tmp_path: Path) -> Path:
    """8 photos of 32x24 pixels; a step takes about 2 ms."""
    return write_tiny_scene(tmp_path / "tiny")


def dialog_of(room: Journey, kind: type[QDialog]) -> QDialog:
    """The dialog of a kind that is open, once it has the keyboard."""
    found: list[QDialog] = []

    def there() -> bool:
        found[:] = [d for d in room.window.findChildren(kind) if d.isActiveWindow()]
        return bool(found)

    room.until(there, f"a {kind.__name__}")
    return found[0]


def test_an_error_in_a_step_shows_its_card_and_the_run_can_be_saved(
    room: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimize = Trainer._optimize

    def broken(self: Trainer, step: int, rendering: Rendering) -> None:
        if step == 12:
            raise ZeroDivisionError("the plug was pulled")
        optimize(self, step, rendering)

    monkeypatch.setattr(Trainer, "_optimize", broken)
    room.open()
    room.reach(State.FAILED)
    cards = room.window.error_cards.cards
    room.until(lambda: bool(cards) and cards[0].isVisible(), "the card")
    assert "ZeroDivisionError: the plug was pulled" in cards[0].message_label.text()
    assert "Traceback" in cards[0].report()
    assert room.all(Failed)[-1].step == room.step == 11
    saved = room.answer(lambda: room.click(room.window.toolbar.buttons["save"]), Saved)
    assert saved.step == load_checkpoint(saved.path).fact("step") == 11
    monkeypatch.undo()
    room.click(cards[0].dismiss_button)
    room.until(lambda: not room.window.error_cards.isVisible(), "the card gone")
    room.click(room.window.toolbar.buttons["start_pause"])
    room.reach(State.TRAINING)
    room.train_on()


def test_a_click_on_cancel_ends_the_loading(
    room: Journey, tiny_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_all, reached, clicked = PhotoStore.load_all, threading.Event(), threading.Event()
    late: list[int] = []  # photos decoded after the click

    def slow(self: PhotoStore, progress: object, cancelled: object) -> object:
        def told(stage: str, file: str, done: int, total: int) -> None:
            progress(stage, file, done, total)  # type: ignore[operator]
            reached.set()
            clicked.wait(LIMIT_S)
            late.append(done)
            time.sleep(0.1)  # a photo of 50 megapixels takes as long

        return load_all(self, told, cancelled)  # type: ignore[arg-type]

    monkeypatch.setattr(PhotoStore, "load_all", slow)
    room.window.commands.open_scene(DEMO_FOLDER)
    room.until(reached.is_set, "the decoding of photos")
    strip = room.window.loading_strip
    room.until(lambda: strip.isVisible() and ".jpg" in strip.label.full_text, "a file's name")
    room.click(strip.cancel_button)
    clicked.set()
    room.reach(State.EMPTY)
    assert len(late) < 40  # of 56; one where nothing else goes on
    assert room.window.empty_page.isVisible()
    assert not strip.isVisible()
    monkeypatch.undo()
    room.open(tiny_scene)


def test_a_second_scene_replaces_the_first_which_dies(
    room: Journey, tiny_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    born: list[tuple[str, weakref.ref[object]]] = []
    for kind in (Trainer, PhotoStore, OpenRun):
        real = kind.__init__

        def noted(self: object, *args: object, real: object = real, **kwargs: object) -> None:
            born.append((type(self).__name__, weakref.ref(self)))
            real(self, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(kind, "__init__", noted)
    room.open()
    first = list(born)
    born.append(("frame", weakref.ref(room.view.frame)))  # type: ignore[arg-type]
    born.append(("points", weakref.ref(room.all(SceneOpened)[-1].points)))
    first = list(born)
    assert [name for name, _ in first] == ["PhotoStore", "Trainer", "OpenRun", "frame", "points"]
    room.open(tiny_scene)
    assert "tiny" in room.window.windowTitle()
    assert room.window.photos_panel.model.rowCount() == 8
    room.train_on(50)

    def dead() -> bool:
        gc.collect()
        return all(ref() is None for _, ref in first)

    room.until(dead, "the end of the first scene's objects")
    assert all(ref() is not None for _, ref in born[len(first) :])


def test_holding_f_shows_the_photo_in_place_of_the_render(room: Journey) -> None:
    room.open()
    room.bare()
    panel = room.window.photos_panel
    row = panel.shown.index(5, 0)
    panel.list.scrollTo(row)
    viewport = panel.list.viewport()
    room.click(viewport, panel.list.visualRect(row).center())
    room.until(lambda: room.view.photo == 5, "the sixth photo chosen")
    room.pause()
    room.frame_of_newest_view()
    render = room.shown_exactly()
    summary = room.all(SceneOpened)[-1].photos[5]
    assert summary.source is not None
    photo = load_photo(summary.source).rgb.astype(float)
    room.view.take_focus()
    room.until(lambda: room.view._focused, "the focus in the view")
    window, _ = input_window(room.view.surface)
    QTest.keyPress(window, Qt.Key.Key_F)

    def photo_shown() -> bool:
        return photo_error(room.seen(), photo) < 4.0  # 2 are left between two ways to scale up

    room.until(photo_shown, "the photo in its place")
    seen = room.seen()
    assert photo_error(render, photo) > 12
    for axis, by in ((0, 1), (0, -1), (1, 1), (1, -1)):  # one pixel of the photo aside
        assert photo_error(seen, np.roll(photo, by, axis)) > 1.5 * photo_error(seen, photo)
    QTest.keyRelease(window, Qt.Key.Key_F)
    room.window.settings_panel.list.search.setFocus()
    room.until(lambda: bool((room.seen() == render).all()), "the render again")


def photo_error(seen: np.ndarray, photo: np.ndarray) -> float:
    """Mean difference in levels between the middle of the view and a photo laid where it belongs.

    Between the photo's pixels values are interpolated linearly.
    """
    height, width = seen.shape[:2]
    rows, columns = photo.shape[:2]
    scale = min(width / columns, height / rows)
    x = (np.arange(width // 4, width * 3 // 4) + 0.5 - width / 2) / scale + columns / 2 - 0.5
    y = (np.arange(height // 4, height * 3 // 4) + 0.5 - height / 2) / scale + rows / 2 - 0.5
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    across, down = (x - left)[:, None], (y - top)[:, None, None]
    lines = photo[:, left] * (1 - across) + photo[:, left + 1] * across
    wanted = lines[top] * (1 - down) + lines[top + 1] * down
    middle = seen[height // 4 : height * 3 // 4, width // 4 : width * 3 // 4]
    return float(np.abs(middle - wanted).mean())


def test_run_until_pauses_there_and_a_finished_run_goes_on(room: Journey, tiny_scene: Path) -> None:
    room.open(tiny_scene)
    room.pause()
    target = room.step + 37
    room.click(room.window.toolbar.buttons["run_until"])
    dialog_of(room, StepsDialog)
    room.press(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    room.type_text(f"{target}")
    room.press(Qt.Key.Key_Return)
    room.until(lambda: room.step == target and room.state is State.PAUSED, "the pause there")
    last = target + 20
    room.set_value("iterations", f"{last}")
    finished = room.answer(lambda: room.click(room.window.toolbar.buttons["start_pause"]), Finished)
    assert finished.step == last
    assert finished.checkpoint.is_file()
    assert len(read_splats(finished.export).splats) > 0
    room.reach(State.FINISHED)
    strip = room.window.finished_strip
    room.until(strip.isVisible, "the strip of a finished run")
    strip.count_box.setFocus()
    strip.count_box.selectAll()
    room.type_text("23")
    again = room.answer(lambda: room.click(strip.continue_button), Finished)
    assert again.step == last + 23
    assert room.step == last + 23
    room.reach(State.FINISHED)


def test_a_folder_dropped_on_the_window_is_opened(room: Journey, tiny_scene: Path) -> None:
    run = room.session.run_id
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tiny_scene))])
    how = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton)
    none = Qt.KeyboardModifier.NoModifier
    entering = QDragEnterEvent(QPoint(300, 300), *how, none)
    QApplication.sendEvent(room.window, entering)
    assert entering.isAccepted()
    room.events.clear()
    QApplication.sendEvent(room.window, QDropEvent(QPointF(300, 300), *how, none))
    room.until(lambda: bool(room.all(RunStarted)), "the run of the dropped scene")
    assert room.session.run_id == run + 1
    assert room.all(SceneOpened)[-1].path == tiny_scene
    room.reach(State.TRAINING)


def test_a_path_typed_in_the_open_dialog_is_opened(room: Journey, tiny_scene: Path) -> None:
    room.click(room.window.toolbar.buttons["open"])
    dialog = dialog_of(room, OpenDialog)
    assert isinstance(dialog, OpenDialog)
    room.click(dialog.field)
    room.press(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    room.type_text(str(tiny_scene / "nowhere"))
    assert not dialog.open_button.isEnabled()
    for _ in "/nowhere":
        room.press(Qt.Key.Key_Backspace)
    room.click(dialog.start_box)
    wanted = dialog.start_box.isChecked()
    room.events.clear()
    room.press(Qt.Key.Key_Return)
    room.until(lambda: bool(room.all(RunStarted)), "the run of the scene")
    assert room.all(SceneOpened)[-1].path == tiny_scene
    room.reach(State.TRAINING if wanted else State.READY)


def test_an_export_can_be_read_again(room: Journey, tiny_scene: Path, tmp_path: Path) -> None:
    room.open(tiny_scene)
    room.pause()
    path = tmp_path / "splats.ply"
    answer = QTimer(room.window)
    answer.setInterval(20)

    def type_name() -> None:
        dialog = QApplication.activeModalWidget()
        if isinstance(dialog, QFileDialog) and dialog.isActiveWindow():
            answer.stop()
            assert isinstance(QApplication.focusWidget(), QLineEdit)
            room.press(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
            room.type_text(str(path))
            QTest.keyClick(focus_window(), Qt.Key.Key_Return)

    answer.timeout.connect(type_name)
    answer.start()
    button = room.window.toolbar.buttons["export"]
    exported = room.answer(lambda: room.click(button), Exported)
    answer.deleteLater()
    assert exported.path == path
    saved = room.answer(lambda: room.click(room.window.toolbar.buttons["save"]), Saved)
    tensors = load_checkpoint(saved.path).tensors
    means = next(tensor for name, tensor in tensors.items() if name.endswith("means"))
    splats = read_splats(path).splats
    assert len(splats) == exported.splats == len(means)
    spread = splats.means.detach() - splats.means.detach().mean(0)
    # files hold the scene's own coordinates, the engine's are centred: the same but for a shift
    torch.testing.assert_close(spread, means - means.mean(0), atol=1e-5, rtol=0)


def test_tab_reaches_every_control_and_each_has_a_name(room: Journey) -> None:
    room.open()
    room.pause()
    room.window.settings_panel.list.set_closed_groups([])
    settle()
    controls = [widget for widget in room.window.findChildren(QWidget) if takes_tab(widget)]
    assert len(controls) > 60  # a row of the settings alone has two
    unnamed = [w for w in controls if not name_of(w)]
    assert not unnamed, [(type(w).__name__, w.objectName()) for w in unnamed]
    room.window.toolbar.buttons["open"].setFocus()
    reached: list[QWidget] = []
    for _ in range(3 * len(controls)):
        widget = QApplication.focusWidget()
        if widget is None or widget in reached:
            break
        reached.append(widget)
        room.press(Qt.Key.Key_Tab)
    missing = [(type(w).__name__, name_of(w)) for w in controls if w not in reached]
    assert not missing, f"Tab does not reach {missing} after {len(reached)} places"


def takes_tab(widget: QWidget) -> bool:
    """Whether a widget in sight wants to be reached by Tab."""
    policy = widget.focusPolicy()
    return (
        widget.isVisible()
        and widget.isEnabled()
        and not widget.isWindow()
        and widget.focusProxy() is None
        and bool(policy.value & Qt.FocusPolicy.TabFocus.value)
    )


def name_of(widget: QWidget) -> str:
    """What a screen reader calls a widget."""
    interface = QAccessible.queryAccessibleInterface(widget)
    return "" if interface is None else interface.text(QAccessible.Text.Name)
