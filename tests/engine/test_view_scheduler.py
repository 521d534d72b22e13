"""The two preview budgets, by a clock that the test turns."""

import numpy as np
import pytest

from engine.cameras import Camera
from engine.messages import View
from engine.setting_groups import Preview
from engine.view_scheduler import MOVING_SECONDS, Plan, ViewScheduler

CAMERA = Camera(np.eye(4), 500.0, 500.0, 320.0, 240.0, 640, 480)
LIVE = Preview()


class Clock:
    """Draws for `cost` seconds a full-size picture whenever one is due."""

    def __init__(self, cost: float = 0.04, aftermath: float = 0.0) -> None:
        self.scheduler = ViewScheduler()
        self.aftermath = aftermath
        self.now = 100.0
        self.cost = cost
        self.version = 0
        self.spent = 0.0
        self.drawn: list[Plan] = []

    def turn(
        self, seconds: float, settings: Preview = LIVE, training: bool = True, step: float = 0.005
    ) -> None:
        """Let time pass in phases of `step` seconds, drawing what is due between them."""
        end = self.now + seconds
        while self.now < end:
            plan = self.scheduler.due(self.now, self.version, settings, training=training)
            if plan is None:
                self.now += step
                self.version += training
                continue
            start = self.now
            self.now += self.cost * plan.scale**2
            self.spent += self.now - start
            self.scheduler.drawn(plan, self.version, start, self.now, self.aftermath)
            self.drawn.append(plan)


def test_nothing_is_drawn_that_nobody_asked_for() -> None:
    clock = Clock()
    clock.turn(1.0)
    assert clock.drawn == []


def test_a_resting_camera_gets_two_percent_of_the_time() -> None:
    clock = Clock()
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(40.0)
    assert clock.drawn[0].scale == 1.0
    # one picture costs 0.1 % of the window, so the share may be off by that and the first one
    assert clock.spent / 40.0 == pytest.approx(0.02, abs=0.003)
    assert clock.scheduler.share(clock.now) == pytest.approx(0.02, abs=0.012)


def test_the_share_of_a_resting_camera_pays_for_the_window_too() -> None:
    clock, work = Clock(cost=0.008), 0.004
    clock.scheduler.request(View(1, CAMERA), clock.now)
    while clock.now < 140.0:
        count = len(clock.drawn)
        clock.turn(0.01)
        if len(clock.drawn) > count:
            clock.scheduler.window_worked(work, clock.now)
    spent = clock.spent + work * len(clock.drawn)
    # one picture costs 0.03 % of that time, and phases of 5 ms are 1 % of the time between two
    assert spent / (clock.now - 100.0) == pytest.approx(0.02, abs=0.001)
    assert clock.scheduler.share(clock.now) == pytest.approx(0.02, abs=0.004)


def test_the_share_of_a_resting_camera_pays_for_what_steps_lose_behind_a_picture() -> None:
    clock = Clock(cost=0.004, aftermath=0.002)
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(40.0)
    lost = clock.spent + clock.aftermath * len(clock.drawn)
    assert lost / 40.0 == pytest.approx(0.02, abs=0.001)
    assert clock.scheduler.share(clock.now) == pytest.approx(0.02, abs=0.003)


def test_a_moving_camera_gets_at_most_half_of_the_time_at_a_coarser_scale() -> None:
    clock = Clock(cost=0.2)
    for number in range(200):
        clock.scheduler.request(View(number, CAMERA, moving=True), clock.now)
        clock.turn(0.02)
    assert clock.spent / (clock.now - 100.0) < 0.55
    assert clock.spent / (clock.now - 100.0) > 0.2
    assert clock.drawn[-1].scale == 0.25  # 0.2 s and 0.05 s are too slow, 0.0125 s is not
    assert (clock.drawn[-1].camera.width, clock.drawn[-1].camera.height) == (160, 120)


def test_a_cheap_scene_moves_at_full_size() -> None:
    clock = Clock(cost=0.01)
    for number in range(20):
        clock.scheduler.request(View(number, CAMERA, moving=True), clock.now)
        clock.turn(0.03)
    assert clock.drawn[-1].scale == 1.0


def test_a_camera_come_to_rest_gets_one_full_picture_soon() -> None:
    clock = Clock(cost=0.2)
    for number in range(10):
        clock.scheduler.request(View(number, CAMERA, moving=True), clock.now)
        clock.turn(0.05)
    known = len(clock.drawn)
    assert known > 0
    assert all(plan.scale < 1.0 for plan in clock.drawn)
    clock.turn(MOVING_SECONDS + 0.3)
    assert [plan.scale for plan in clock.drawn[known:] if plan.scale == 1.0] == [1.0]
    known = len(clock.drawn)
    clock.turn(1.5)  # the next one may come after 2 s at rest
    assert len(clock.drawn) == known


def test_what_the_user_did_by_hand_is_shown_soon_and_once() -> None:
    clock = Clock(cost=0.6)  # a busy machine: at rest a picture is due 2.4 seconds after the last
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(2.0)
    assert len(clock.drawn) == 1
    clock.version += 1
    clock.scheduler.hasten(clock.version)
    clock.turn(1.0)
    assert len(clock.drawn) == 2
    assert clock.drawn[-1].scale == 1.0
    clock.turn(1.0)
    assert len(clock.drawn) == 2


@pytest.mark.parametrize(
    ("cost", "longest"),
    [
        (0.04, 2.0),  # the share has room for it: every 1.96 s
        (0.4, 2.1),  # the share would let it wait for 20 s, hundreds of steps
        (1.0, 4.1),  # every 2 s would be a third of the time: a fifth is the most
    ],
)
def test_a_resting_view_stays_fresh_on_a_busy_machine(cost: float, longest: float) -> None:
    clock = Clock(cost)
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(1.0)
    while clock.now < 130.0:
        known, since = len(clock.drawn), clock.now
        while len(clock.drawn) == known:
            clock.turn(0.05)
        assert clock.now - since - cost <= longest
    assert clock.spent / 30.0 <= 0.25  # the first picture of all and a fifth of the time


def test_a_share_of_nothing_at_rest_draws_a_resting_view_once() -> None:
    clock = Clock(cost=0.4)
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(30.0, Preview(preview_share_rest=0.0))
    assert len(clock.drawn) == 1


def test_a_picture_begun_before_a_change_by_hand_does_not_count_as_showing_it() -> None:
    clock = Clock()
    view = View(1, CAMERA)
    clock.scheduler.request(view, clock.now)
    plan = clock.scheduler.due(clock.now, 7, LIVE, training=True)
    assert plan is not None
    clock.scheduler.hasten(8)
    clock.scheduler.drawn(plan, 7, clock.now, clock.now + 1.0)
    assert clock.scheduler.due(clock.now + 3.0, 8, LIVE, training=True) is not None


def test_a_still_preview_draws_only_what_the_camera_changed() -> None:
    clock = Clock(cost=0.01)
    still = Preview(preview="still")
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(10.0, still)
    assert len(clock.drawn) == 1
    clock.scheduler.request(View(2, CAMERA), clock.now)
    clock.turn(10.0, still)
    assert len(clock.drawn) == 2


def test_a_preview_that_is_off_draws_nothing() -> None:
    clock = Clock()
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(10.0, Preview(preview="off"))
    assert clock.drawn == []


def test_paused_draws_at_once_but_only_what_changed() -> None:
    clock = Clock(cost=0.5)
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.turn(3.0, training=False)
    assert len(clock.drawn) == 1
    clock.version += 1  # an opacity reset by hand, say
    clock.turn(3.0, training=False)
    assert len(clock.drawn) == 2
    for number in range(2, 12):
        clock.scheduler.request(View(number, CAMERA, moving=True), clock.now)
        clock.turn(0.01, training=False)
    assert len(clock.drawn) >= 12  # no budget while nothing trains


def test_a_paused_moving_camera_tells_when_it_will_rest() -> None:
    scheduler = ViewScheduler()
    assert scheduler.wait_seconds(10.0) is None
    scheduler.request(View(1, CAMERA, moving=True), 10.0)
    assert scheduler.wait_seconds(10.1) == pytest.approx(MOVING_SECONDS - 0.1)
    assert scheduler.wait_seconds(10.0 + MOVING_SECONDS) is None


def test_it_tells_when_a_picture_may_be_due_so_that_no_phase_need_end_before() -> None:
    clock = Clock(cost=0.4)

    def due_in() -> float | None:
        return clock.scheduler.due_in(clock.now, clock.version, LIVE)

    assert due_in() is None  # nobody asked
    clock.scheduler.request(View(1, CAMERA, moving=True), clock.now)
    assert due_in() == 0.0
    clock.turn(0.005)
    assert clock.drawn[-1].scale == 0.5
    asked = clock.now - 0.1  # what that picture took
    assert due_in() == pytest.approx(asked + MOVING_SECONDS - clock.now)  # to be refined then
    clock.scheduler.request(View(2, CAMERA, moving=True), clock.now)
    assert due_in() == pytest.approx(0.1)  # half of the time is the training's
    clock.turn(0.1)
    assert len(clock.drawn) == 1
    clock.turn(0.01)
    assert len(clock.drawn) == 2
    nothing_while_moving = Preview(preview_share_moving=0.05, preview_share_rest=0.0)
    clock.scheduler.request(View(2, CAMERA), clock.now)
    clock.turn(5.0)
    clock.version += 1
    assert clock.scheduler.due_in(clock.now, clock.version, nothing_while_moving) is None


def test_a_withdrawn_view_is_not_drawn() -> None:
    clock = Clock()
    clock.scheduler.request(View(1, CAMERA), clock.now)
    clock.scheduler.request(None, clock.now)
    clock.turn(1.0)
    assert clock.drawn == []


def test_no_memory_makes_the_picture_coarse_and_then_gives_it_up() -> None:
    scheduler = ViewScheduler()
    scheduler.request(View(1, CAMERA), 10.0)
    plan = scheduler.due(10.0, 1, LIVE, training=False)
    assert plan is not None
    assert plan.scale == 1.0
    scheduler.out_of_memory(plan, 10.1)
    coarse = scheduler.due(20.0, 1, LIVE, training=False)
    assert coarse is not None
    assert coarse.scale == 0.25
    scheduler.out_of_memory(coarse, 20.1)
    assert scheduler.due(30.0, 1, LIVE, training=False) is None


def test_a_one_pixel_view_keeps_one_pixel() -> None:
    tiny = Camera(np.eye(4), 1.0, 1.0, 0.5, 0.5, 1, 1)
    scheduler = ViewScheduler()
    scheduler.request(View(1, tiny, moving=True), 10.0)
    plan = scheduler.due(10.0, 1, LIVE, training=True)
    assert plan is not None
    assert (plan.camera.width, plan.camera.height) == (1, 1)
