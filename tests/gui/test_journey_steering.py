"""The main job in the real window with the real engine: watch, turn, steer, step, pause, save."""

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt

from app.panels.metrics_history import MarkKind
from cuda_rasterizer import Rendering
from engine.messages import OpacitiesReset, Saved, SettingApplied, State
from engine.run.checkpoint import load_checkpoint
from engine.training.optimizer import Optimizer
from engine.training.trainer import Trainer
from tests.gui.journey import Journey, steps_told

pytestmark = pytest.mark.gl


@pytest.fixture
def room(journey: Journey) -> Journey:
    """The window with the real engine."""
    return journey


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of two pictures of equal size, 1 when they show the same."""
    return float(np.corrcoef(one.reshape(-1), other.reshape(-1))[0, 1])


def test_the_demo_opens_and_live_frames_arrive(room: Journey) -> None:
    room.open()
    room.bare()
    first = room.shown_exactly()
    assert first.std() > 20  # a blank or even picture has none; the photos have about 60
    frame = room.view.frame
    assert frame is not None
    step = frame.step

    def newer() -> bool:
        assert room.view.frame is not None
        return room.view.frame.step > step

    room.until(newer, "a frame of a later step without any doing of the user")
    assert (room.shown_exactly() != first).any()
    assert steps_told(room) == list(range(1, room.step + 1))


def test_a_drag_turns_the_camera_and_the_picture_follows(room: Journey) -> None:
    room.open()
    room.bare()
    room.frame_of_newest_view()
    before, camera = room.shown_exactly(), room.view.wanted_camera()
    room.drag()
    room.window.settings_panel.list.search.setFocus()
    room.until(lambda: room.view.view is not None and not room.view.view.moving, "rest")
    room.frame_of_newest_view()
    after, frame, view = room.shown_exactly(), room.view.frame, room.view.view
    assert camera is not None
    assert frame is not None
    assert view is not None
    np.testing.assert_array_equal(frame.camera.world_to_camera, view.camera.world_to_camera)
    turned = view.camera.world_to_camera[:3, :3] @ camera.world_to_camera[:3, :3].T
    angle = np.degrees(np.arccos((np.trace(turned) - 1) / 2))
    assert angle > 10  # 90 px of about 450 turn by 36 degrees
    assert likeness(after, before) < 0.9  # of the same view a few steps later it is above 0.99


def test_a_rate_typed_in_the_panel_reaches_the_optimiser_at_the_acknowledged_step(
    room: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: dict[int, float] = {}
    optimize, step_of = Trainer._optimize, Optimizer.step
    steps: list[int] = []

    def noted_step(self: Trainer, step: int, rendering: Rendering) -> None:
        steps.append(step)
        optimize(self, step, rendering)

    def noted_rates(
        self: Optimizer, parameters: object, rates: dict[str, float], *others: object
    ) -> None:
        used[steps[-1]] = rates["opacity_logits"]
        step_of(self, parameters, rates, *others)  # type: ignore[arg-type]

    room.open(start=False)  # the last test's run has ended, whose steps are not meant
    monkeypatch.setattr(Trainer, "_optimize", noted_step)
    monkeypatch.setattr(Optimizer, "step", noted_rates)
    room.click(room.window.toolbar.buttons["start_pause"])
    room.train_on()
    applied = room.answer(lambda: room.set_value("opacity_lr", "3e-4"), SettingApplied)
    assert (applied.name, applied.old, applied.new) == ("opacity_lr", 0.025, 3e-4)
    room.train_on()
    room.pause()
    assert {used[step] for step in used if step <= applied.step} == {0.025}
    assert {used[step] for step in used if step > applied.step} == {3e-4}
    assert max(used) > applied.step
    entry = room.journal("SetSetting")[-1]
    assert (entry["step"], entry["name"], entry["new"]) == (applied.step, "opacity_lr", 3e-4)
    badge = room.window.settings_panel.row("opacity_lr").badge_text
    assert f"{applied.step:,}" in badge


def test_ctrl_z_sets_the_value_back_as_a_new_journalled_change(room: Journey) -> None:
    room.open()
    changed = room.answer(lambda: room.set_value("scale_lr", "1e-3"), SettingApplied)
    room.train_on()

    def undo() -> None:
        room.press(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)

    undone = room.answer(undo, SettingApplied)
    assert (undone.name, undone.old, undone.new) == ("scale_lr", 1e-3, 5e-3)
    assert undone.step > changed.step
    room.pause()
    entries = room.journal("SetSetting")
    assert [entry["new"] for entry in entries] == [1e-3, 5e-3]
    assert entries[0]["gesture"] != entries[1]["gesture"]
    assert room.window.settings_panel.settings()["scale_lr"] == 5e-3


def test_reset_opacity_does_what_it_says(room: Journey) -> None:
    room.open()
    room.bare()
    room.pause()
    room.frame_of_newest_view()
    bright = room.shown_exactly().mean()
    save = room.window.toolbar.buttons["save"]
    before = room.answer(lambda: room.click(save), Saved)
    assert opacities(before).max() > 0.05
    buttons = room.window.action_panel.buttons
    button = next(b for b in buttons.values() if b.accessibleName() == "Reset opacity now")
    reset = room.answer(lambda: room.click(button), OpacitiesReset)
    assert (reset.step, reset.value, reset.by_hand) == (before.step, 0.01, True)
    after = room.answer(lambda: room.click(save), Saved)
    assert after.step == before.step
    assert opacities(after).max() <= 0.01 + 1e-6  # a rounding of the logit in float32
    moments = load_checkpoint(after.path).tensors
    names = [name for name in moments if "opacity" in name and "exp_avg" in name]
    assert len(names) == 2
    assert all(not moments[name].any() for name in names)
    assert room.journal("ResetOpacity")[-1]["step"] == reset.step
    marks = [m for m in room.window.metrics_panel.history.marks if m.kind is MarkKind.RESET]
    assert [mark.step for mark in marks] == [reset.step]
    room.until(lambda: room.seen().mean() < 0.6 * bright, "a darker picture")


def opacities(saved: Saved) -> torch.Tensor:
    """Every opacity in a checkpoint."""
    tensors = load_checkpoint(saved.path).tensors
    name = next(name for name in tensors if name.endswith("opacity_logits"))
    return torch.sigmoid(tensors[name])


def test_pause_holds_the_step_while_orbiting_still_renders(room: Journey) -> None:
    room.open()
    room.bare()
    step = room.pause()
    room.frame_of_newest_view()
    picture = room.shown_exactly()
    for _ in range(3):
        shown = room.view.frame
        room.drag((60, 0))
        room.window.settings_panel.list.search.setFocus()
        room.until(lambda s=shown: room.view.frame is not s, "a new frame")  # type: ignore[misc]
    room.until(lambda: room.view.view is not None and not room.view.view.moving, "rest")
    room.frame_of_newest_view()
    assert likeness(room.shown_exactly(), picture) < 0.9
    assert room.view.frame is not None
    assert room.view.frame.step == step
    assert room.step == step
    assert room.state is State.PAUSED
    assert len(room.run.metrics_path.read_text().splitlines()) == step


def test_step_adds_exactly_one(room: Journey) -> None:
    room.open()
    step = room.pause()
    for done in (1, 2, 3):
        room.click(room.window.toolbar.buttons["step"])
        room.until(lambda d=done: room.step == step + d, "one step more")  # type: ignore[misc]
        room.reach(State.PAUSED)
    room.frame_of_newest_view()
    assert room.step == step + 3
    assert steps_told(room) == list(range(1, step + 4))
