"""The metrics of steps on their way out: gathered, and published a few times a second."""

import numpy as np
import psutil

from engine.gpu_readings import GpuReading
from engine.messages import Stepped
from engine.training.step_result import StepResult

PUBLISH_SECONDS = 0.1


class StepReports:
    """Gathers step results; no clock is read here, `now` is handed in."""

    def __init__(self) -> None:
        self._results: list[StepResult] = []
        self._since = 0.0
        self._speed = 0.0
        self._process = psutil.Process()

    def begin(self, now: float) -> None:
        """Training begins or goes on: the time before does not count into the speed."""
        self._since = now

    def add(self, result: StepResult) -> None:
        """Take the result of one step."""
        self._results.append(result)

    def is_due(self, now: float) -> bool:
        """Whether it is time to publish."""
        return bool(self._results) and now - self._since >= PUBLISH_SECONDS

    def take(
        self, run_id: int, now: float, preview_share: float, gpu: GpuReading | None
    ) -> Stepped | None:
        """What was gathered since the last call as one event; None when there is nothing."""
        if not self._results:
            return None
        results, self._results = self._results, []
        elapsed = now - self._since
        self._since = now
        if elapsed > 0:
            self._speed = len(results) / elapsed
        last = results[-1]
        return Stepped(
            run_id=run_id,
            steps=_frozen([result.step for result in results], np.int64),
            seconds=_frozen([result.seconds for result in results], np.float64),
            loss=_frozen([result.loss for result in results], np.float64),
            l1=_frozen([result.l1 for result in results], np.float64),
            ssim=_frozen([result.ssim for result in results], np.float64),
            psnr=_frozen([result.psnr for result in results], np.float64),
            splats=_frozen([result.splats for result in results], np.int64),
            position_lr=last.position_lr,
            sh_degree=last.sh_degree,
            steps_per_second=self._speed,
            preview_share=preview_share,
            memory_bytes=int(self._process.memory_info().rss),
            gpu=gpu,
        )


def _frozen(values: list[float] | list[int], kind: type[np.generic]) -> np.ndarray:
    array = np.array(values, dtype=kind)
    array.flags.writeable = False
    return array
