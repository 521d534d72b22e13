"""What the bar of a run marks, and how the marks are called."""

import pytest
from pytestqt.qtbot import QtBot

from app.progress_strip import SIDE, ProgressStrip, tweak_name_place
from engine.messages import SettingApplied
from engine.settings import Settings
from tests.app.panels.engine_events import history_read, run_started

PER_STEP = 10.0


@pytest.fixture
def strip(qtbot: QtBot) -> ProgressStrip:
    found = ProgressStrip()
    qtbot.addWidget(found)
    settings = Settings().updated({"iterations": 100, "opacity_reset_interval": 0})
    found.resize(round(2 * SIDE + 100 * PER_STEP), 50)
    found.handle(run_started(settings, step=60))
    return found


def words(strip: ProgressStrip, step: int) -> str:
    return strip.words_at(SIDE + step * PER_STEP)


def test_a_loaded_preset_is_one_mark_with_its_name(strip: ProgressStrip) -> None:
    strip.expect_preset("classic", frozenset({"opacity_lr", "scale_lr", "test_every"}))
    strip.handle(SettingApplied(1, 70, "opacity_lr", 0.05, 0.1))
    strip.handle(SettingApplied(1, 70, "test_every", 8, 4, held=True))
    strip.handle(SettingApplied(1, 70, "scale_lr", 0.005, 0.01))
    strip.handle(SettingApplied(1, 80, "scale_lr", 0.01, 0.02))
    assert words(strip, 70) == "preset classic loaded at step 70"
    assert words(strip, 80) == "scale changed at step 80"


def test_a_setting_changed_by_hand_is_not_taken_for_what_a_preset_was_refused(
    strip: ProgressStrip,
) -> None:
    strip.expect_preset("classic", frozenset({"opacity_lr"}))
    strip.handle(SettingApplied(1, 70, "scale_lr", 0.005, 0.01))
    strip.handle(SettingApplied(1, 80, "opacity_lr", 0.05, 0.1))
    assert words(strip, 80) == "opacity changed at step 80"


def test_a_run_that_goes_on_has_the_marks_of_before(strip: ProgressStrip) -> None:
    changed = SettingApplied(1, 40, "opacity_lr", 0.05, 0.1)
    held = SettingApplied(1, 20, "test_every", 8, 4, held=True)
    together = [SettingApplied(1, 45, name, 0.1, 0.2) for name in ("opacity_lr", "scale_lr")]
    strip.handle(history_read(60, held, changed, *together, saved=(50, 60)))
    assert words(strip, 45) == "2 settings changed at step 45"
    assert words(strip, 40) == "opacity changed at step 40"
    assert words(strip, 50) == "checkpoint at step 50"
    assert "at step 20" not in words(strip, 20).splitlines()[0]


def test_the_name_of_the_last_change_covers_no_triangle() -> None:
    assert tweak_name_place([100.0, 120.0], 60.0, 14.0, 300.0) == 128.0
    for tips in ([200.0, 214.0, 250.0], [150.0, 250.0], [176.0, 184.0, 192.0, 250.0], [250.0]):
        left = tweak_name_place(tips, 60.0, 14.0, 300.0)
        assert left is not None
        assert all(tip + 4 < left or left + 60.0 < tip - 4 for tip in tips)  # 4: half a triangle
    crowded = [float(x) for x in range(20, 251, 10)]
    assert tweak_name_place(crowded, 60.0, 14.0, 300.0) is None
