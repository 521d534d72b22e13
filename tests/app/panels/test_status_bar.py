"""What the line at the bottom says of the device."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.status_bar import StatusBar
from engine.gpu_readings import GpuReading
from engine.messages import DeviceChanged, Saved, State
from engine.settings import Settings
from engine.size_advice import size_advice
from tests.app.panels.engine_events import camera, run_started, stepped
from tests.settling import settle, show


@pytest.fixture
def bar(qtbot) -> StatusBar:
    found = StatusBar()
    qtbot.addWidget(found)
    found.handle(run_started())
    found.set_state(State.TRAINING)
    return found


def test_memory_and_load_of_the_gpu_are_shown_where_the_driver_tells_them(bar):
    reading = GpuReading(3_100_000_000, 24_000_000_000, 0.87)
    bar.handle(dataclasses.replace(stepped([3]), gpu=reading))
    bar.refresh()
    assert "GPU 3.1 GB of 24.0 GB, 87% busy" in bar.facts.toolTip()


def test_the_time_left_counts_the_larger_photos_to_come(bar):
    coarse = Settings().updated({"iterations": 1_000, "coarse_halvings": 2, "coarse_steps": 250})
    bar.handle(run_started(coarse))
    bar.handle(stepped([400], speed=10.0))
    # 100 steps at this size, then 500 with twice the edge, which take twice as long
    assert bar.eta_seconds() == pytest.approx((100 + 500 * 2) / 10)
    bar.refresh()
    assert "ETA about 1 min 50 s" in bar.facts.toolTip()
    bar.handle(stepped([500], speed=10.0))
    bar.refresh()
    assert "ETA 1 min 40 s" in bar.facts.toolTip()  # 10 s later, 10 s less


def test_a_folder_that_no_file_manager_opens_is_told_with_its_path(bar, monkeypatch):
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: False)
    bar.folder_button.click()
    assert "No file manager" in bar.notice.toolTip()
    assert QGuiApplication.clipboard().text() == str(Path("/nowhere/run-1"))


def test_where_no_scene_is_open_nothing_is_told_of_the_run_before(bar):
    bar.handle(stepped([3]))
    bar.handle(Saved(1, 3, Path("c.safetensors"), 0.1))
    bar.set_state(State.EMPTY)
    assert bar.facts.full_text == "No scene"
    assert bar.saved.text() == ""
    assert bar.folder_button.isHidden()


def test_the_threads_are_those_in_force(bar):
    bar.handle(DeviceChanged(1, "CPU, 1 thread, AVX2"))
    bar.refresh()
    assert "CPU, 1 thread, AVX2" in bar.facts.full_text


def test_without_readings_nothing_is_said_of_a_gpu(bar):
    bar.handle(stepped([3]))
    bar.refresh()
    assert "GPU" not in bar.facts.toolTip()
    assert "preview" in bar.facts.toolTip()


class Layouts(QObject):
    """Counts how often what it watches is laid out."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


def test_a_new_line_does_not_have_the_window_laid_out(bar, qtbot):
    """It changes four times a second beside a training that needs the processor."""
    window = QWidget()
    qtbot.addWidget(window)
    QVBoxLayout(window).addWidget(bar)
    window.resize(900, 60)
    show(qtbot, window)
    layouts = Layouts()
    window.installEventFilter(layouts)
    bar.installEventFilter(layouts)
    for step in range(3, 9):
        bar.handle(dataclasses.replace(stepped([step]), steps_per_second=10.0 * step))
        bar.refresh()
        settle()
    assert f"{80:.1f} steps/s" in bar.facts.text()
    assert layouts.count == 0
    bar.setParent(None)  # the fixture closes it


def test_of_large_photos_a_narrow_window_shows_what_to_do_and_the_tooltip_all(bar, qtbot):
    lens = camera(1_536, 1_024)
    photos = [SimpleNamespace(camera=lens, held_out=False)]
    advice = size_advice(SimpleNamespace(photos=photos), "cpu")
    bar.resize(1280, 26)
    bar.show_notice(advice)
    assert "are slow without a GPU: set resolution to 768 (the width) and" in bar.notice.text()
    assert bar.notice.toolTip() == advice
    assert bar._notice_timer.interval() > 10_000  # as long as it takes to read
    bar.resize(900, 26)
    bar.show_notice(advice)
    assert "set resolution to 768" in bar.notice.text()
    bar.show_notice("Saved.")
    assert bar._notice_timer.interval() == 8_000


@pytest.mark.parametrize("width", [640, 800, 1280])
@pytest.mark.parametrize("step", [9, 1_234_567])
def test_a_long_notice_leaves_the_state_and_the_step_in_sight(bar, qtbot, width, step):
    bar.resize(1280, 26)
    folder = Path("/home/somebody/runs/a-scene-with-a-long-name-12")
    bar.handle(dataclasses.replace(run_started(), folder=folder))
    bar.handle(Saved(1, 3, Path("c.safetensors"), 0.1))
    bar.handle(stepped([step]))
    bar.refresh()
    show(qtbot, bar)
    notice = "The splat cap is reached: " + "raise it to let the model grow. " * 12
    bar.show_notice(notice)
    bar.resize(width, 26)
    settle()
    assert bar.facts.text().startswith(f"Training   ·   step {step:,}")
    assert bar.facts.width() <= bar.facts.parentWidget().width()
    assert bar.notice.text().startswith("The splat cap is")
    assert bar.notice.text().endswith("…")
    assert bar.notice.toolTip() == notice
    bar.set_state(State.FAILED)
    settle()
    assert bar.facts.text().startswith(f"Stopped by an error   ·   step {step:,}")
    bar.resize(1280, 26)
    settle()
    assert "reached: raise it to let the model grow" in bar.notice.text()
    bar.show_notice("Saved.")
    assert bar.notice.text() == "Saved."
