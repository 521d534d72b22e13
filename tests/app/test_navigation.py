"""The keys that fly, where there is something to fly through and where there is not."""

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QApplication

from app.viewport.camera_controls import CameraControls, Viewpoint
from app.viewport.navigation import FLY_KEYS, Navigation
from engine.cameras import Camera


@pytest.fixture
def navigation(qapp: QApplication) -> Navigation:
    source = QObject(qapp)
    return Navigation((source,), source)


def press(navigation: Navigation, kind: QEvent.Type, key: Qt.Key) -> None:
    event = QKeyEvent(kind, key, Qt.KeyboardModifier.NoModifier)
    QGuiApplication.sendEvent(navigation.parent(), event)


@pytest.mark.parametrize("key", FLY_KEYS)
def test_a_key_that_flies_starts_no_clock_without_a_scene(
    navigation: Navigation, key: Qt.Key
) -> None:
    press(navigation, QEvent.Type.KeyPress, key)
    assert not navigation._fly_timer.isActive()


def test_with_a_scene_a_key_flies_until_the_scene_goes(navigation: Navigation) -> None:
    pose = np.eye(4)
    home = Viewpoint(pose, np.zeros(3), Camera(pose, 300.0, 300.0, 160.0, 120.0, 320, 240))
    navigation.controls = CameraControls(home, np.array([0.0, -1.0, 0.0]), 4.0)
    press(navigation, QEvent.Type.KeyPress, Qt.Key.Key_W)
    assert navigation._fly_timer.isActive()
    navigation.let_go()
    navigation.controls = None
    assert not navigation._fly_timer.isActive()
