"""Events as an engine would send them, with the few facts that a test is about."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.cameras import Camera
from engine.dataset.scene import Finding
from engine.messages import Event, HistoryRead, PhotoSummary, RunStarted, SceneOpened, Stepped
from engine.settings import Settings

RUN_ID = 1


def camera(width: int = 320, height: int = 213) -> Camera:
    return Camera(np.eye(4), 300.0, 300.0, width / 2, height / 2, width, height)


def photo(name: str, held_out: bool = False, path: Path | None = None) -> PhotoSummary:
    return PhotoSummary(name, path or Path("/nowhere") / name, camera(), held_out)


def scene_opened(
    photos: Sequence[PhotoSummary] = (),
    findings: Sequence[Finding] = (),
    extent: float = 4.0,
) -> SceneOpened:
    return SceneOpened(
        RUN_ID,
        "scene",
        Path("/nowhere"),
        tuple(photos),
        np.zeros((5, 3), np.float32),
        np.zeros((5, 3), np.uint8),
        tuple(findings),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 0.0),
        extent,
    )


def run_started(settings: Settings | None = None, step: int = 0) -> RunStarted:
    return RunStarted(RUN_ID, Path("/nowhere/run-1"), settings or Settings(), step, "CPU")


def history_read(steps: int, *happenings: Event, saved: Sequence[int] = ()) -> HistoryRead:
    """A past of so many steps, measured at the last one; 20 steps a second, PSNR 25 dB."""
    ones = np.ones(steps)
    return HistoryRead(
        RUN_ID,
        np.arange(1, steps + 1),
        np.arange(1, steps + 1) / 20.0,
        0.1 * ones,
        0.1 * ones,
        0.9 * ones,
        25.0 * ones,
        1_000 * ones,
        np.array([steps]),
        np.array([24.0]),
        happenings,
        tuple(saved),
    )


def stepped(
    steps: Sequence[int],
    *,
    splats: int = 1_000,
    position_lr: float = 0.0,
    sh_degree: int = 0,
    loss: float = 0.1,
    speed: float = 20.0,
) -> Stepped:
    count = len(steps)
    return Stepped(
        RUN_ID,
        np.asarray(steps, dtype=np.int64),
        np.arange(count) / 20.0,
        np.full(count, loss),
        np.full(count, loss / 2),
        np.full(count, 0.9),
        np.full(count, 25.0),
        np.full(count, splats, dtype=np.int64),
        position_lr,
        sh_degree,
        speed,
        0.02,
        1_000_000,
    )
