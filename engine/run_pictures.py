"""Pictures of an open run for those who look on: when, how large, and as bytes to show."""

import dataclasses
import math
import time
from collections.abc import Callable

from cuda_rasterizer import to_rgba8
from engine.inbox import Inbox
from engine.memory import give_back_memory, is_out_of_memory
from engine.messages import Frame
from engine.open_run import OpenRun
from engine.transfers import PictureCopy
from engine.view_scheduler import Plan, ViewScheduler

# While training, what has been found about the next picture is believed for so long: to ask anew in
# every phase took 1.7 % of steps of 2 ms.
BELIEVED_SECONDS = 0.05

# Where a CPU drew a picture, training finds its caches emptied: the step that it fell into and
# those behind take longer, together by so much of its time, but by no more than it takes to fill
# caches (the demo on Zen 5: a picture of 4.9 ms, 1.6 in its step and 1.3 in the five behind). What
# the window's thread does for a picture, some 4 ms on one of the two cores, is taken for the same.
AFTERMATH_SHARE, AFTERMATH_SECONDS = 0.6, 0.003


@dataclasses.dataclass(frozen=True)
class _Outlook:
    """When the next picture is due unless somebody asks for one; infinity: not of this version."""

    due_at: float
    version: int
    believed_until: float

    def rules_out(self, now: float, version: int) -> bool:
        """Whether none is due now."""
        if now >= min(self.due_at, self.believed_until):
            return False
        return self.due_at < math.inf or version == self.version


@dataclasses.dataclass(frozen=True)
class _Sent:
    """A picture on its way from the device, and what it shows."""

    run_id: int
    step: int
    version: int
    plan: Plan
    copy: PictureCopy
    start: float


class RunPictures:
    """Serves the newest view request inside its budget; belongs to the engine thread.

    While training, a picture drawn by a GPU is not waited for: it is shown when it has arrived, and
    until then no other one is drawn.
    """

    def __init__(
        self, inbox: Inbox, show: Callable[[Frame], None], notice: Callable[[str], None]
    ) -> None:
        self._inbox = inbox
        self._show = show
        self._notice = notice
        self._scheduler = ViewScheduler()
        self._sent: _Sent | None = None
        self._outlook: _Outlook | None = None

    def forget(self) -> None:
        """Another model is open, of which nothing was shown yet."""
        self._scheduler.forget()
        self._sent = None
        self._outlook = None

    def hasten(self, version: int) -> None:
        """The user has made this version of the model by hand and waits to see it."""
        self._scheduler.hasten(version)
        self._outlook = None

    def serve(self, run: OpenRun | None, *, training: bool) -> bool:
        """Draw the picture that is due, if one is; whether one was drawn."""
        start = time.perf_counter()
        if training and run is not None and self._is_idle(start, run.version):
            return False
        self._outlook = None
        is_new, view = self._inbox.take_view()
        if is_new:
            self._scheduler.request(view, start)
        work = self._inbox.take_window_work()
        if work > 0.0:
            self._scheduler.window_worked(work + _aftermath(run, work), start)
        if self._sent is not None:
            return self._shown_when_there(self._sent, run, training=training)
        if run is None:
            return False
        plan = self._scheduler.due(start, run.version, run.settings.preview, training=training)
        if plan is None:
            return False
        try:
            copy = _drawn(run, plan)
        except Exception as error:
            if not is_out_of_memory(error):
                self._scheduler.request(None, start)  # or it would fail again at once, for ever
                raise
            give_back_memory(error)
            self._scheduler.out_of_memory(plan, time.perf_counter())
            self._notice(
                f"Memory ran out while a picture of {plan.camera.width}x{plan.camera.height} "
                "pixels was drawn; the preview is coarser from now on. Training is not touched."
            )
            return False
        self._sent = _Sent(run.run_id, run.step, run.version, plan, copy, start)
        return self._shown_when_there(self._sent, run, training=training)

    def _shown_when_there(self, sent: _Sent, run: OpenRun | None, *, training: bool) -> bool:
        """Show a picture that has arrived; whether it has."""
        self._sent = None  # a device that fails is not asked for it again and again
        if training and not sent.copy.is_there():
            self._sent = sent
            return False
        pixels = sent.copy.pixels()
        seconds = sent.copy.seconds()
        if training and run is not None:
            run.trainer.waited_for_others(sent.copy.seconds_behind())
        aftermath = _aftermath(run, seconds) if training else 0.0
        self._scheduler.drawn(sent.plan, sent.version, sent.start, sent.start + seconds, aftermath)
        self._show(
            Frame(
                run_id=sent.run_id,
                view_id=sent.plan.view.view_id,
                step=sent.step,
                pixels=pixels,
                camera=sent.plan.camera,
                scale=sent.plan.scale,
            )
        )
        return True

    def due_in(self, run: OpenRun) -> float | None:
        """While training: seconds until a picture may be due without a new request, if ever."""
        now, outlook = time.perf_counter(), self._outlook
        if outlook is None or not self._is_idle(now, run.version):
            wait = self._scheduler.due_in(now, run.version, run.settings.preview)
            due_at = math.inf if wait is None else now + wait
            outlook = self._outlook = _Outlook(due_at, run.version, now + BELIEVED_SECONDS)
        return max(0.0, outlook.due_at - now) if outlook.due_at < math.inf else None

    def _is_idle(self, now: float, version: int) -> bool:
        """Whether it is known that no picture is due, and none is waited for."""
        if self._outlook is None or not self._outlook.rules_out(now, version):
            return False
        return self._sent is None and not self._inbox.has_new_view()

    def wait_seconds(self) -> float | None:
        """While nothing trains: how long until a picture may be due without a new request."""
        return self._scheduler.wait_seconds(time.perf_counter())

    def share(self) -> float:
        """The share of wall time that pictures took lately."""
        return self._scheduler.share(time.perf_counter())


def _aftermath(run: OpenRun | None, seconds: float) -> float:
    """The seconds that training loses by others' work beside the `seconds` that it took."""
    on_cpu = run is not None and run.trainer.device.type == "cpu"
    return min(AFTERMATH_SHARE * seconds, AFTERMATH_SECONDS) if on_cpu else 0.0


def _drawn(run: OpenRun, plan: Plan) -> PictureCopy:
    copy = PictureCopy(run.trainer.device)
    color = run.trainer.render(plan.camera, plan.view.background)
    copy.send(to_rgba8(color, backend=run.trainer.backend))
    return copy
