"""The window closes in order: it saves, waits for the engine, and leaves nothing behind."""

import threading
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import Shiboken

from engine.messages import Failed, Saved, Shutdown, State
from tests.gui.scripted_engine import ScriptedEngine, stepped
from tests.gui.window_room import drag, enter, make_room, surface_pixels, tell
from tests.settling import LIMIT_MS

pytestmark = pytest.mark.gl


def test_closing_saves_and_waits_for_the_engine(
    qtbot: QtBot, qapp: QApplication, kind: str
) -> None:
    room = make_room(qtbot, qapp, kind, ScriptedEngine(stops_by_itself=False))
    room.open()
    tell(room, stepped(1, 1, 40))
    room.window.close()
    assert room.engine.commands[-1] == Shutdown(save=True)
    assert room.window.isVisible()
    assert room.window.closing_strip.isVisible()
    assert "Saving step 40" in room.window.closing_strip.label.full_text
    assert room.engine.last_view() is None
    room.window.close()  # once more changes nothing
    assert [type(c) for c in room.engine.commands].count(Shutdown) == 1
    room.engine.stop()
    qtbot.waitUntil(lambda: not room.window.isVisible(), timeout=LIMIT_MS)
    assert room.session.close(LIMIT_MS / 1000)
    room.window.deleteLater()


def test_a_save_that_fails_while_closing_is_told_and_can_be_tried_again(
    qtbot: QtBot,
    qapp: QApplication,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    room = make_room(qtbot, qapp, engine=ScriptedEngine(stops_by_itself=False))
    room.open()
    room.window.commands.close_by_signal()
    enter(room, State.CLOSING)
    capsys.readouterr()
    tell(room, Failed(1, "The disk is full.", "", None, 40))
    assert capsys.readouterr().err == "splatscope: not closed: The disk is full.\n"
    assert "Not saved" in room.window.closing_strip.label.full_text
    assert room.window.closing_strip.leave_button.isVisible()
    room.window.close()
    assert room.engine.commands[-2:] == [Shutdown(save=True)] * 2
    tell(room, Failed(1, "The disk is full.", "", None, 40))
    monkeypatch.setattr("app.window_commands.ask_folder", lambda *_: None)
    room.window.closing_strip.elsewhere_button.click()  # thought better of
    assert len(room.engine.commands) == 3
    monkeypatch.setattr("app.window_commands.ask_folder", lambda *_: tmp_path)
    room.window.closing_strip.elsewhere_button.click()
    assert room.engine.commands[-1] == Shutdown(save=True, elsewhere=tmp_path)
    tell(room, Saved(1, 40, tmp_path / "ring-1" / "checkpoints" / "step-000040.safetensors", 0.1))
    assert str(tmp_path / "ring-1") in room.window.preferences.recent_scenes
    room.engine.stop()
    qtbot.waitUntil(lambda: room.session.has_stopped, timeout=LIMIT_MS)
    assert room.session.close(LIMIT_MS / 1000)
    room.window.deleteLater()


def test_the_view_keeps_its_picture_while_closing(
    qtbot: QtBot, qapp: QApplication, kind: str
) -> None:
    room = make_room(qtbot, qapp, kind, ScriptedEngine(stops_by_itself=False))
    room.open()
    room.window.close()
    enter(room, State.CLOSING)
    tell(room, Failed(1, "The disk is full.", "", None, 40))
    drag(room.view.surface, (60, 60), [(40, 20), (40, 20)])
    room.window.resize(room.window.width() - 60, room.window.height() - 40)
    # a picture card, not a word on black
    qtbot.waitUntil(lambda: surface_pixels(room.view.surface).mean() > 30, timeout=LIMIT_MS)
    assert room.engine.last_view() is None
    room.engine.stop()
    qtbot.waitUntil(lambda: room.session.has_stopped, timeout=LIMIT_MS)
    assert room.session.close(LIMIT_MS / 1000)
    room.window.deleteLater()


def test_closing_without_saving_says_so_to_the_engine(qtbot: QtBot, qapp: QApplication) -> None:
    room = make_room(qtbot, qapp, engine=ScriptedEngine(stops_by_itself=False))
    room.open()
    room.window.close()
    room.window.closing_strip.leave_button.click()
    assert room.engine.commands[-1] == Shutdown(save=False)
    room.engine.stop()
    qtbot.waitUntil(lambda: room.session.has_stopped, timeout=LIMIT_MS)
    assert room.session.close(LIMIT_MS / 1000)
    room.window.deleteLater()


def test_nothing_is_left_after_the_window(qtbot: QtBot, qapp: QApplication, kind: str) -> None:
    threads = set(threading.enumerate())
    windows = set(QApplication.topLevelWidgets())
    room = make_room(qtbot, qapp, kind)
    room.open()
    room.view.set_flipped(True)
    qtbot.waitUntil(lambda: room.view.photos.get(0) is not None, timeout=LIMIT_MS)
    room.close()
    room.window.deleteLater()
    qtbot.waitUntil(lambda: not Shiboken.isValid(room.window), timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: set(threading.enumerate()) <= threads, timeout=LIMIT_MS)
    assert set(QApplication.topLevelWidgets()) <= windows
