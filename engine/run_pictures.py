"""Pictures of an open run for those who look on: when, how large, and as bytes to show."""

import time
from collections.abc import Callable

import numpy as np

from cuda_rasterizer import to_rgba8
from engine.inbox import Inbox
from engine.memory import is_out_of_memory
from engine.messages import Frame
from engine.open_run import OpenRun
from engine.view_scheduler import Plan, ViewScheduler


class RunPictures:
    """Serves the newest view request inside its budget; belongs to the engine thread."""

    def __init__(
        self, inbox: Inbox, show: Callable[[Frame], None], notice: Callable[[str], None]
    ) -> None:
        self._inbox = inbox
        self._show = show
        self._notice = notice
        self._scheduler = ViewScheduler()

    def forget(self) -> None:
        """Another model is open, of which nothing was shown yet."""
        self._scheduler.forget()

    def serve(self, run: OpenRun | None, *, training: bool) -> bool:
        """Draw the picture that is due, if one is; whether one was drawn."""
        start = time.perf_counter()
        is_new, view = self._inbox.take_view()
        if is_new:
            self._scheduler.request(view, start)
        if run is None:
            return False
        plan = self._scheduler.due(start, run.version, run.settings.preview, training=training)
        if plan is None:
            return False
        try:
            pixels = _draw(run, plan)
        except Exception as error:
            if not is_out_of_memory(error):
                self._scheduler.request(None, start)  # or it would fail again at once, for ever
                raise
            self._scheduler.out_of_memory(plan, time.perf_counter())
            self._notice(
                f"Memory ran out while a picture of {plan.camera.width}x{plan.camera.height} "
                "pixels was drawn; the preview is coarser from now on. Training is not touched."
            )
            return False
        end = time.perf_counter()
        self._scheduler.drawn(plan, run.version, start, end)
        self._show(
            Frame(
                run_id=run.run_id,
                view_id=plan.view.view_id,
                step=run.step,
                pixels=pixels,
                camera=plan.camera,
                scale=plan.scale,
                render_seconds=end - start,
            )
        )
        return True

    def wait_seconds(self) -> float | None:
        """While nothing trains: how long until a picture may be due without a new request."""
        return self._scheduler.wait_seconds(time.perf_counter())

    def share(self) -> float:
        """The share of wall time that pictures took lately."""
        return self._scheduler.share(time.perf_counter())


def _draw(run: OpenRun, plan: Plan) -> np.ndarray:
    color = run.trainer.render(plan.camera, plan.view.background)
    pixels: np.ndarray = to_rgba8(color, backend=run.trainer.backend).cpu().numpy()
    pixels.flags.writeable = False
    return pixels
