"""When the engine draws a picture, and how large: the two preview budgets.

A resting camera gets a small share of the wall time, what the steps behind a picture lose by it
and all that the window's thread does included, and a picture every two seconds where that is too
little for it; a moving one gets up to half of it at a coarser scale chosen from measured cost.
When it comes to rest, one full-size picture follows. While nothing
trains there is no limit, but only what changed is drawn. No clock is read here: `now` is handed in.
"""

import dataclasses
import math
from collections import deque

from engine.cameras import Camera
from engine.messages import View
from engine.setting_groups import Preview

SCALES = (1.0, 0.5, 0.25)
MOVING_SECONDS = 0.25  # a camera counts as moving for this long after the last moving view
SMOOTH_SECONDS = 0.033  # a picture of a moving camera should cost no more than this
REST_SECONDS = 2.0  # a resting view is no older than this, whatever a picture costs,
REST_MOST_SHARE = 0.2  # as long as that takes no more of the time than this
SHARE_WINDOW_SECONDS = 4.0  # the measured share is that of the last seconds
FORGETTING = 0.3  # weight of the newest measurement of cost


@dataclasses.dataclass(frozen=True)
class Plan:
    """One picture to draw now: `camera` has its size, `scale` is its width / the width asked."""

    view: View
    camera: Camera
    scale: float


@dataclasses.dataclass(frozen=True)
class _Wish:
    view: View
    scale: float
    urgent: bool  # somebody waits for it


class ViewScheduler:
    """Decides from requests, costs and the model's version; draws nothing itself."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._moving_until = float("-inf")
        self._shown: tuple[View, float, int] | None = None  # view, scale, model version
        self._cost: dict[float, float] = {}  # seconds at a scale, smoothed
        self._cost_pixels = 0  # size in pixels that the costs were measured for
        self._last_end = float("-inf")
        self._last_cost = 0.0
        self._last_aftermath = 0.0
        self._window_work = 0.0  # seconds from picture to picture, as the window last said
        self._spent: deque[tuple[float, float]] = deque()  # (end, seconds)
        self._started: float | None = None
        self._coarsest_only = False
        self._awaited: int | None = None  # a model version that the user waits to see

    def request(self, view: View | None, now: float) -> None:
        """Take the newest request in place of an older one; None withdraws it."""
        if view is not None and view.moving:
            self._moving_until = now + MOVING_SECONDS
        elif view is not None:
            self._moving_until = float("-inf")
        self._view = view

    def forget(self) -> None:
        """Nothing has been shown of the model that is open now; the request stands."""
        self._shown = None
        self._coarsest_only = False
        self._awaited = None

    def hasten(self, version: int) -> None:
        """The user has changed the model by hand and waits to see it: rest is over for once."""
        self._awaited = version

    def due(self, now: float, version: int, settings: Preview, *, training: bool) -> Plan | None:
        """The picture to draw now, or None. `version` changes whenever the model does."""
        if self._started is None:
            self._started = now
        wish = self._wish(now, version, settings, training=training)
        if wish is None or (training and now < self._allowed_at(settings, urgent=wish.urgent)):
            return None
        camera = _resized(wish.view.camera, wish.scale)
        return Plan(view=wish.view, camera=camera, scale=wish.scale)

    def due_in(self, now: float, version: int, settings: Preview) -> float | None:
        """While training: the seconds until a picture may be due without a new request, if ever."""
        wish = self._wish(now, version, settings, training=True)
        at = math.inf if wish is None else self._allowed_at(settings, urgent=wish.urgent)
        if self._view is not None and now < self._moving_until:
            at = min(at, self._moving_until)
        return max(0.0, at - now) if at < math.inf else None

    def _wish(self, now: float, version: int, settings: Preview, *, training: bool) -> _Wish | None:
        """What would be drawn now if there were time for it."""
        view = self._view
        if view is None or settings.preview == "off":
            return None
        moving = now < self._moving_until
        scale = self._scale(view) if moving or self._coarsest_only else SCALES[0]
        new_view = self._shown is None or self._shown[0] is not view
        coarse = not new_view and self._shown is not None and scale > self._shown[1]
        changed = not new_view and self._shown is not None and self._shown[2] != version
        if not (new_view or coarse or (changed and (settings.preview == "live" or not training))):
            return None
        urgent = new_view or coarse or moving or self._awaited is not None
        return _Wish(view, scale, urgent)

    def _allowed_at(self, settings: Preview, *, urgent: bool) -> float:
        """From when on the share of time for pictures has room for another one."""
        share = settings.preview_share_moving if urgent else settings.preview_share_rest
        if share <= 0:
            return math.inf
        wait = self._last_cost * (1 - share) / share
        if not urgent:
            wait += (self._last_aftermath + self._window_work) / share
            dearest = self._last_cost * (1 - REST_MOST_SHARE) / REST_MOST_SHARE
            wait = min(wait, max(REST_SECONDS, dearest))
        return self._last_end + wait

    def drawn(
        self, plan: Plan, version: int, start: float, end: float, aftermath: float = 0.0
    ) -> None:
        """Note that `plan` was drawn from `start` to `end`, and the seconds lost behind it."""
        seconds = end - start
        pixels = plan.view.camera.width * plan.view.camera.height
        if pixels != self._cost_pixels:
            ratio = pixels / self._cost_pixels if self._cost_pixels else 1.0
            self._cost = {scale: cost * ratio for scale, cost in self._cost.items()}
            self._cost_pixels = pixels
        old = self._cost.get(plan.scale, seconds)
        self._cost[plan.scale] = old + FORGETTING * (seconds - old)
        self._last_end, self._last_cost, self._last_aftermath = end, seconds, aftermath
        self._spent.append((end, seconds + aftermath))
        self._shown = (plan.view, plan.scale, version)
        if self._awaited is not None and version >= self._awaited:
            self._awaited = None

    def window_worked(self, seconds: float, now: float) -> None:
        """Note that the window's thread has worked that long since the picture before."""
        self._window_work = seconds
        self._spent.append((now, seconds))

    def out_of_memory(self, plan: Plan, now: float) -> None:
        """`plan` did not fit into memory: draw coarse from now on, or nothing if it was coarse."""
        self._last_end, self._last_cost = now, 0.1
        if plan.scale == SCALES[-1]:
            self._view = None
        self._coarsest_only = True
        for scale in SCALES[:-1]:
            self._cost[scale] = 1.0

    def wait_seconds(self, now: float) -> float | None:
        """While nothing trains: how long until a moving camera counts as resting, if it does."""
        if self._view is None or now >= self._moving_until:
            return None
        return self._moving_until - now

    def share(self, now: float) -> float:
        """The share of wall time that pictures took lately."""
        while self._spent and self._spent[0][0] < now - SHARE_WINDOW_SECONDS:
            self._spent.popleft()
        if self._started is None:
            return 0.0
        window = min(SHARE_WINDOW_SECONDS, max(now - self._started, 1e-3))
        return min(1.0, sum(seconds for _, seconds in self._spent) / window)

    def _scale(self, view: View) -> float:
        """The finest scale that is cheap enough for a moving camera."""
        if not self._cost:
            return SCALES[1]
        pixels = view.camera.width * view.camera.height
        for scale in SCALES:
            if self._expected(scale) * pixels / max(self._cost_pixels, 1) <= SMOOTH_SECONDS:
                return scale
        return SCALES[-1]

    def _expected(self, scale: float) -> float:
        if scale in self._cost:
            return self._cost[scale]
        known = min(self._cost, key=lambda other: abs(other - scale))
        return self._cost[known] * (scale / known) ** 2


def _resized(camera: Camera, scale: float) -> Camera:
    if scale == 1.0:
        return camera
    width = max(1, round(camera.width * scale))
    return camera.resized(width, max(1, round(camera.height * scale)))
