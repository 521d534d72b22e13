"""What leaves the engine thread: a queue of events and a mailbox with the newest frame.

Lifecycle events are never lost. Step metrics merge into one pending block until somebody takes
them or another event follows them. Whoever listens is woken once until it takes, and for metrics
alone a few times a second at most: every wake-up costs the window work that training pays for.
"""

import logging
import threading
import time
from collections.abc import Callable

import numpy as np

from engine.messages import Event, Frame, Stepped

METRICS_SECONDS = 0.5  # between two wake-ups that have nothing but metrics to tell

Wake = Callable[[], None]

_log = logging.getLogger(__name__)


class Outbox:
    """Safe to use from any thread; the lock guards a few references and is held for no work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event | list[Stepped]] = []
        self._frame: Frame | None = None
        self._wake: Wake | None = None
        self._woken = False
        self._told_metrics = float("-inf")  # when metrics last woke the listener

    def publish(self, event: Event) -> None:
        """Append an event; metrics join the block before them when that is of the same run."""
        with self._lock:
            if isinstance(event, Stepped):
                last = self._events[-1] if self._events else None
                if isinstance(last, list) and last[-1].run_id == event.run_id:
                    last.append(event)
                else:
                    self._events.append([event])
                wake = self._claim_metrics_wake()
            else:
                self._events.append(event)
                wake = self._claim_wake()
        self._call(wake)

    def put_frame(self, frame: Frame) -> None:
        """Put a frame in place of one that nobody took."""
        with self._lock:
            self._frame = frame
            wake = self._claim_wake()
        self._call(wake)

    def drop_frame(self) -> None:
        """Forget a frame that nobody took: it belongs to a run that is gone."""
        with self._lock:
            self._frame = None

    def take_events(self) -> list[Event]:
        """The events since the last call, in order."""
        with self._lock:
            taken, self._events = self._events, []
            self._woken = False
            if any(isinstance(item, list) for item in taken):
                self._told_metrics = time.monotonic()  # with a frame, perhaps: no need to wake soon
        return [merge(item) if isinstance(item, list) else item for item in taken]

    def take_frame(self) -> Frame | None:
        """The newest frame, once."""
        with self._lock:
            frame, self._frame = self._frame, None
            self._woken = False
        return frame

    def set_wake(self, wake: Wake | None) -> None:
        """Call `wake` whenever something is waiting; at once when something is already."""
        with self._lock:
            self._wake = wake
            self._woken = False
            ready = self._claim_wake() if self._events or self._frame else None
        self._call(ready)

    def _call(self, wake: Wake | None) -> None:
        """A listener that fails, such as a window that is gone, must not end the engine."""
        if wake is None:
            return
        try:
            wake()
        except Exception:  # noqa: BLE001  a listener of any kind may fail in any way
            _log.exception("the listener could not be woken; it is not called again")
            with self._lock:
                self._wake = None

    def _claim_metrics_wake(self) -> Wake | None:
        """Metrics held back here go with the next event, frame or step."""
        now = time.monotonic()
        if now - self._told_metrics < METRICS_SECONDS:
            return None
        self._told_metrics = now
        return self._claim_wake()

    def _claim_wake(self) -> Wake | None:
        if self._woken or self._wake is None:
            return None
        self._woken = True
        return self._wake


def merge(blocks: list[Stepped]) -> Stepped:
    """One block of the rows of several, in order; the single figures are the last block's."""
    last = blocks[-1]
    if len(blocks) == 1:
        return last

    def joined(name: str) -> np.ndarray:
        array = np.concatenate([getattr(block, name) for block in blocks])
        array.flags.writeable = False
        return array

    return Stepped(
        run_id=last.run_id,
        steps=joined("steps"),
        seconds=joined("seconds"),
        loss=joined("loss"),
        l1=joined("l1"),
        ssim=joined("ssim"),
        psnr=joined("psnr"),
        splats=joined("splats"),
        position_lr=last.position_lr,
        sh_degree=last.sh_degree,
        steps_per_second=last.steps_per_second,
        preview_share=last.preview_share,
        memory_bytes=last.memory_bytes,
        gpu=last.gpu,
    )
