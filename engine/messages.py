"""What crosses between the engine thread and everybody else. All of it is frozen.

Commands are imperatives, posted to the engine and answered between two steps. Events are past
tense; each carries the id of its run, so that a message of a run that is gone can be told from a
message of this one (run id 0: no run yet). Arrays inside events are never written again.
"""

import dataclasses
import enum
from pathlib import Path

import numpy as np

from engine.cameras import Camera
from engine.dataset.scene import Finding, Photo
from engine.gpu_readings import GpuReading
from engine.photo_score import PhotoScore as PhotoScore  # also found here, with `Evaluated`
from engine.setting_info import Value
from engine.settings import Settings


class State(enum.Enum):
    """What the engine is doing."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"  # a scene is loaded, no step done, not training
    TRAINING = "training"
    PAUSED = "paused"
    FINISHED = "finished"  # the last iteration is done
    FAILED = "failed"  # an error stopped the run; its last good state is kept
    CLOSING = "closing"


# --- commands -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Command:
    """Something the engine is asked to do."""


@dataclasses.dataclass(frozen=True)
class OpenScene(Command):
    """Load a scene and make a new run of it; `run_folder` None makes one under the user's runs."""

    path: Path
    settings: Settings = Settings()
    start: bool = True
    run_folder: Path | None = None


@dataclasses.dataclass(frozen=True)
class ResumeRun(Command):
    """Load the scene of a run folder and continue from its last checkpoint.

    `scene` says where the scene is now, when it is not where the run folder remembers it.
    """

    run_folder: Path
    changes: tuple[tuple[str, Value], ...] = ()
    start: bool = True
    scene: Path | None = None


@dataclasses.dataclass(frozen=True)
class CancelLoading(Command):
    """Give up loading; what was open before stays gone."""


@dataclasses.dataclass(frozen=True)
class Start(Command):
    """Train, or go on training after a pause."""


@dataclasses.dataclass(frozen=True)
class Pause(Command):
    """Stop stepping; views are still rendered."""


@dataclasses.dataclass(frozen=True)
class Stop(Command):
    """End the run here: save a checkpoint and the splat file, then be finished."""


@dataclasses.dataclass(frozen=True)
class StepN(Command):
    """Do `count` steps, then pause."""

    count: int = 1


@dataclasses.dataclass(frozen=True)
class RunUntil(Command):
    """Train until `step` steps are done, then pause."""

    step: int


@dataclasses.dataclass(frozen=True)
class ContinueFor(Command):
    """Raise `iterations` to the present step plus `count` and train on."""

    count: int


@dataclasses.dataclass(frozen=True)
class Restart(Command):
    """Make a new run of the open scene from step 0 with the settings held (RESTART ones too)."""

    start: bool = True


@dataclasses.dataclass(frozen=True)
class SetSetting(Command):
    """Change one setting. `gesture` groups the posts of one drag into one journal entry."""

    name: str
    value: Value
    gesture: int = 0


@dataclasses.dataclass(frozen=True)
class ResetOpacity(Command):
    """Lower every opacity to `opacity_reset_value` at the next step boundary."""


@dataclasses.dataclass(frozen=True)
class PruneNow(Command):
    """Remove at the next step boundary what a refine would there: by size after a first reset."""


@dataclasses.dataclass(frozen=True)
class DensifyNow(Command):
    """Clone and split at the next step boundary, by the densify settings."""


@dataclasses.dataclass(frozen=True)
class Evaluate(Command):
    """Measure PSNR and SSIM on the held-out photos now."""


@dataclasses.dataclass(frozen=True)
class Save(Command):
    """Write a checkpoint now."""


@dataclasses.dataclass(frozen=True)
class Export(Command):
    """Write the splats to `path` (.ply)."""

    path: Path


@dataclasses.dataclass(frozen=True)
class Shutdown(Command):
    """End the engine thread; with `save`, write a checkpoint first if steps were done since.

    When that fails, `Failed` is told and the engine waits, CLOSING, for another `Shutdown`: to try
    again, to save in a new run folder under `elsewhere`, or to end without saving.
    """

    save: bool = True
    elsewhere: Path | None = None


# --- views --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class View:
    """A picture that somebody wants to see; the newest request replaces an older one.

    `moving` is true while the user turns the camera: the engine then spends more of its time on
    pictures and draws them coarse. `camera` has the size of the finished picture in pixels.
    """

    view_id: int
    camera: Camera
    moving: bool = False
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Frame:
    """A finished picture: RGBA8 (height, width, 4), never written again.

    It shows `camera` (of the picture's own, possibly coarser, size) after `step` steps.
    """

    run_id: int
    view_id: int
    step: int
    pixels: np.ndarray
    camera: Camera
    scale: float  # picture width / width asked for


# --- events -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened in a run."""

    run_id: int


@dataclasses.dataclass(frozen=True)
class StateChanged(Event):
    """The engine went from one state to another."""

    old: State
    new: State
    step: int


@dataclasses.dataclass(frozen=True)
class LoadingProgressed(Event):
    """Part of the loading is done; `file` is being read, `done` of `total`."""

    stage: str
    file: str
    done: int
    total: int


@dataclasses.dataclass(frozen=True)
class PhotoSummary:
    """What the window needs to know about one photo."""

    name: str
    path: Path
    camera: Camera  # pinhole, at training resolution, in the engine's centred frame
    held_out: bool
    source: Photo | None = None  # what `engine.dataset.images.load_photo` needs to decode it


@dataclasses.dataclass(frozen=True, eq=False)
class SceneOpened(Event):
    """Cameras and sparse points are known (the photos may still be decoding)."""

    name: str
    path: Path
    photos: tuple[PhotoSummary, ...]
    points: np.ndarray  # (n, 3) float32, in the engine's centred frame
    point_colors: np.ndarray  # (n, 3) uint8
    findings: tuple[Finding, ...]
    up: tuple[float, float, float]
    pivot: tuple[float, float, float]
    extent: float  # camera extent, the unit of several settings


@dataclasses.dataclass(frozen=True)
class RunStarted(Event):
    """A run exists: its folder, settings and device."""

    folder: Path
    settings: Settings
    step: int
    device: str  # such as "CPU, 2 threads, AVX2"
    splats: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class HistoryRead(Event):
    """What the folder of a run that goes on tells about its steps; follows `RunStarted`.

    The arrays are as in `Stepped`, NaN where a figure is not known.
    """

    steps: np.ndarray  # int64, rising
    seconds: np.ndarray  # float64, cumulative
    loss: np.ndarray
    l1: np.ndarray
    ssim: np.ndarray
    psnr: np.ndarray  # of the training photo drawn
    splats: np.ndarray  # float64
    evaluated_steps: np.ndarray  # int64
    evaluated_psnr: np.ndarray  # mean over the held-out photos
    happenings: tuple[Event, ...]  # changes, resets, degrees, larger photos; in order
    saved_steps: tuple[int, ...]  # of the checkpoints there are

    @property
    def last_evaluation(self) -> tuple[float, int] | None:
        """PSNR in dB and step of the last measurement on the held-out photos, if there was one."""
        if not len(self.evaluated_steps):
            return None
        return float(self.evaluated_psnr[-1]), int(self.evaluated_steps[-1])


@dataclasses.dataclass(frozen=True)
class SettingApplied(Event):
    """A change took hold at `step` (or waits: `held` for a restart, shown until then)."""

    step: int
    name: str
    old: Value
    new: Value
    held: bool = False


@dataclasses.dataclass(frozen=True)
class DeviceChanged(Event):
    """The run goes on with other threads."""

    device: str  # as in `RunStarted`


@dataclasses.dataclass(frozen=True)
class CommandRefused(Event):
    """A command was not carried out; `reason` is a sentence, `path` what is in the way."""

    command: Command
    reason: str
    path: Path | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Stepped(Event):
    """Metrics of the steps since the last such event, merged; arrays of equal length (n,).

    `seconds` is training time, cumulative over resumes. `psnr` is of the training photo drawn.
    """

    steps: np.ndarray  # int64, 1 is the first step done
    seconds: np.ndarray  # float64
    loss: np.ndarray  # float64
    l1: np.ndarray  # float64
    ssim: np.ndarray  # float64, the value, not 1 - value
    psnr: np.ndarray  # float64
    splats: np.ndarray  # int64
    position_lr: float  # the rate in force, extent included
    sh_degree: int
    steps_per_second: float
    preview_share: float  # of wall time, lately
    memory_bytes: int  # resident memory of the process
    gpu: GpuReading | None = None  # where the driver gives readings


@dataclasses.dataclass(frozen=True)
class Refined(Event):
    """Splats were cloned, split and pruned at `step`; the counts are of splats."""

    step: int
    cloned: int
    split: int
    pruned: int
    splats: int
    refused: int = 0  # how many more would have grown, had the splat cap left room
    by_hand: bool = False


@dataclasses.dataclass(frozen=True)
class OpacitiesReset(Event):
    """Every opacity was lowered to at most `value` at `step`."""

    step: int
    value: float
    by_hand: bool = False


@dataclasses.dataclass(frozen=True)
class ShDegreeRaised(Event):
    """The spherical-harmonics degree in use changed."""

    step: int
    degree: int


@dataclasses.dataclass(frozen=True)
class Evaluated(Event):
    """Mean PSNR and SSIM over the held-out photos, and each photo's own."""

    step: int
    psnr: float
    ssim: float
    photos: tuple[PhotoScore, ...]


@dataclasses.dataclass(frozen=True)
class Saved(Event):
    """A checkpoint was written."""

    step: int
    path: Path
    seconds: float


@dataclasses.dataclass(frozen=True)
class Exported(Event):
    """A splat file was written."""

    step: int
    path: Path
    splats: int


@dataclasses.dataclass(frozen=True)
class Noticed(Event):
    """Something the user should know that stops nothing."""

    message: str


@dataclasses.dataclass(frozen=True)
class Warned(Noticed):
    """Something the user must not miss, though it stops nothing: it stays until put away."""


@dataclasses.dataclass(frozen=True)
class PhotosGrew(Noticed):
    """Training goes on with larger photos: from `step` on their size is divided by `divisor`."""

    step: int
    divisor: int  # 1 is the full size


@dataclasses.dataclass(frozen=True)
class Failed(Event):
    """An error; `details` is the traceback. The last good state is kept when a run is open."""

    message: str
    details: str
    path: Path | None = None
    step: int = 0


@dataclasses.dataclass(frozen=True)
class Finished(Event):
    """The last iteration is done, and checkpoint and splat file are written."""

    step: int
    checkpoint: Path
    export: Path


@dataclasses.dataclass(frozen=True)
class EngineStopped(Event):
    """The engine thread is about to end; the last event of all."""
