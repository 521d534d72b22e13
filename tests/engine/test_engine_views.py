"""Pictures and mailboxes: what a window gets from a running engine."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from engine import messages as m
from engine.inbox import Inbox, coalesced
from engine.messages import Stepped
from engine.outbox import Outbox
from tests.engine.driving import ENDLESS, Driver
from tests.journals import read_journal
from tests.promises import quickest


@pytest.fixture
def driver(driver: Driver, scene: Path, tmp_path: Path) -> Driver:
    """An endless run, paused after three steps."""
    driver.open_paused(scene, tmp_path / "run", ENDLESS)
    return driver


def test_a_paused_run_draws_each_view_once_at_full_size(driver: Driver) -> None:
    camera = driver.camera().resized(100, 75)
    driver.engine.request_view(m.View(7, camera))
    driver.until(lambda: len(driver.frames) == 1)
    frame = driver.frames[0]
    assert (frame.view_id, frame.step, frame.scale) == (7, 3, 1.0)
    assert frame.pixels.shape == (75, 100, 4)
    assert frame.pixels.dtype == np.uint8
    assert not frame.pixels.flags.writeable
    assert len(np.unique(frame.pixels[..., :3])) > 3  # not blank
    for interval in (10, 20, 30):  # turns of the engine, in each of which it could draw
        driver.ask(m.SetSetting("evaluation_interval", interval), m.SettingApplied)
    assert len(driver.frames) == 1


def test_a_paused_run_sleeps_until_something_comes(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []
    real = Inbox.wait

    def noted(inbox: Inbox, timeout: float | None) -> None:
        waits.append(timeout)
        real(inbox, timeout)

    monkeypatch.setattr(Inbox, "wait", noted)
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.until(lambda: len(driver.frames) == 1)
    driver.until(lambda: len(waits) == 1)
    for count in (2, 3):  # one sleep after each command, and no other in between
        driver.ask(m.SetSetting("evaluation_interval", count), m.SettingApplied)
        driver.until(lambda count=count: len(waits) >= count)
    assert waits == [None, None, None]  # without a limit


def test_a_change_of_the_model_is_shown_while_paused(driver: Driver) -> None:
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.until(lambda: len(driver.frames) == 1)
    driver.ask(m.ResetOpacity(), m.OpacitiesReset)
    driver.until(lambda: len(driver.frames) == 2)
    first, second = driver.frames
    assert not np.array_equal(first.pixels, second.pixels)


def test_a_moving_camera_is_refined_when_it_rests(driver: Driver) -> None:
    camera = driver.camera().resized(400, 300)
    driver.engine.request_view(m.View(1, camera, moving=True))
    driver.until(lambda: len(driver.frames) >= 1)
    assert driver.frames[0].scale < 1.0
    assert driver.frames[0].pixels.shape[1] == round(400 * driver.frames[0].scale)
    driver.until(lambda: driver.frames[-1].scale == 1.0)


def test_live_frames_follow_the_training(driver: Driver) -> None:
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.post(m.Start())
    driver.until(lambda: len({frame.step for frame in driver.frames}) > 3)
    steps = [frame.step for frame in driver.frames]
    assert steps == sorted(steps)


def test_the_background_of_a_view_is_its_own(driver: Driver) -> None:
    camera = driver.camera().moved(np.diag([1.0, 1.0, 1.0, 1.0]) + _far_away())
    driver.engine.request_view(m.View(1, camera, background=(1.0, 0.0, 0.5)))
    driver.until(lambda: len(driver.frames) == 1)
    assert driver.frames[0].pixels[0, 0].tolist() == [255, 0, 128, 255]


def _far_away() -> np.ndarray:
    shift = np.zeros((4, 4))
    shift[2, 3] = -1e4  # everything is behind the camera
    return shift


def test_one_gesture_is_one_entry_with_every_applied_value(driver: Driver, tmp_path: Path) -> None:
    for value in (0.03, 0.04, 0.05):
        driver.ask(m.SetSetting("opacity_lr", value, gesture=5), m.SettingApplied)
    driver.ask(m.SetSetting("scale_lr", 0.01, gesture=6), m.SettingApplied)
    driver.ask(m.Save(), m.Saved)
    entries = read_journal(tmp_path / "run" / "journal.jsonl")
    changes = [entry for entry in entries if entry["what"] == "SetSetting"]
    assert [(entry["name"], entry["old"], entry["new"]) for entry in changes] == [
        ("opacity_lr", 0.025, 0.05),
        ("scale_lr", 0.005, 0.01),
    ]
    assert changes[0]["changes"] == [[3, 0.03], [3, 0.04], [3, 0.05]]


def test_steps_are_published_about_ten_times_a_second(driver: Driver) -> None:
    driver.post(m.Start())
    driver.until(lambda: driver.steps > 10)

    def seconds_of_ten() -> float:
        known, start = len(driver.all(Stepped)), time.monotonic()
        driver.until(lambda: len(driver.all(Stepped)) >= known + 10)
        seconds, count = time.monotonic() - start, len(driver.all(Stepped)) - known
        # at most one every 0.1 s, and one on its way; refines and resets add some of their own
        refined = len(driver.all(m.Refined)) + len(driver.all(m.OpacitiesReset))
        assert count <= 10 * seconds + 1 + refined
        return seconds

    assert quickest(seconds_of_ten, 3.0) < 3.0
    last = driver.all(Stepped)[-1]
    assert last.memory_bytes > 1_000_000
    assert last.steps_per_second > 0
    assert 0.0 <= last.preview_share <= 1.0
    assert not last.loss.flags.writeable


# --- the mailboxes themselves --------------------------------------------------------------------


def stepped(step: int, run_id: int = 1) -> Stepped:
    one = np.array([step])
    value = np.array([0.5])
    return Stepped(
        *(run_id, one, value, value, value, value, value, one),
        position_lr=step / 1000,
        sh_degree=0,
        steps_per_second=1.0,
        preview_share=0.0,
        memory_bytes=1,
    )


def test_pending_metrics_merge_and_lifecycle_events_do_not() -> None:
    outbox = Outbox()
    for step in (1, 2, 3):
        outbox.publish(stepped(step))
    outbox.publish(m.Noticed(1, "a"))
    outbox.publish(m.Noticed(1, "a"))
    outbox.publish(stepped(4))
    outbox.publish(stepped(1, run_id=2))
    events = outbox.take_events()
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["Stepped", "Noticed", "Noticed", "Stepped", "Stepped"]
    first = events[0]
    assert isinstance(first, Stepped)
    assert first.steps.tolist() == [1, 2, 3]
    assert first.position_lr == 0.003
    assert outbox.take_events() == []


def test_one_wake_up_is_pending_at_most() -> None:
    outbox = Outbox()
    woken: list[int] = []
    outbox.set_wake(lambda: woken.append(1))
    for number in range(5):
        outbox.publish(m.Noticed(1, str(number)))
    assert len(woken) == 1
    outbox.take_events()
    outbox.publish(m.Noticed(1, "again"))
    assert len(woken) == 2


def test_a_listener_who_comes_late_is_woken_at_once() -> None:
    outbox = Outbox()
    outbox.publish(m.Noticed(1, "early"))
    woken: list[int] = []
    outbox.set_wake(lambda: woken.append(1))
    assert len(woken) == 1


def test_no_event_is_lost_between_threads() -> None:
    outbox = Outbox()
    count = 2000

    def publish() -> None:
        for number in range(count):
            outbox.publish(m.Noticed(1, str(number)))

    thread = threading.Thread(target=publish)
    thread.start()
    taken: list[m.Event] = []
    while thread.is_alive() or len(taken) < count:
        taken += outbox.take_events()
    thread.join()
    assert [event.message for event in taken if isinstance(event, m.Noticed)] == [
        str(number) for number in range(count)
    ]


def test_only_the_newest_frame_waits() -> None:
    outbox = Outbox()
    frames = [
        m.Frame(1, number, 0, np.zeros((1, 1, 4), np.uint8), _camera(), 1.0) for number in range(3)
    ]
    for frame in frames:
        outbox.put_frame(frame)
    assert outbox.take_frame() is frames[2]
    assert outbox.take_frame() is None


def _camera() -> "m.Camera":
    return m.Camera(np.eye(4), 1.0, 1.0, 0.5, 0.5, 1, 1)


def test_only_the_last_of_unapplied_changes_is_kept() -> None:
    a1, a2, b = (
        m.SetSetting("opacity_lr", 0.1),
        m.SetSetting("opacity_lr", 0.2),
        m.SetSetting("scale_lr", 0.01),
    )
    assert coalesced([a1, b, a2]) == [b, a2]
    assert coalesced([a1, m.ResetOpacity(), a2]) == [a1, m.ResetOpacity(), a2]
    wrong = m.SetSetting("opacity_lr", -3.0)
    assert coalesced([a1, wrong]) == [a1, wrong]


def test_the_inbox_knows_urgent_commands() -> None:
    inbox = Inbox()
    inbox.post(m.Pause())
    assert not inbox.has_urgent()
    inbox.post(m.Stop())
    assert inbox.has_urgent()
    assert inbox.take() == [m.Pause(), m.Stop()]
    assert not inbox.has_urgent()
    assert not inbox.must_abandon_saving()
    inbox.post(m.Shutdown(save=False))
    assert inbox.must_abandon_saving()
