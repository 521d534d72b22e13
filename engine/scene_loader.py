"""Loading a scene beside the engine thread: cameras first, then photos, then the first model.

Nothing made here is shared while it is made: it is handed over whole, in reports to the inbox.
Each report carries the id of the run it is meant for, so that those of a cancelled load are told
apart.
"""

import dataclasses
import logging
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Scene
from engine.device import choose_backend, make_current, prepare_kernels, tensor_device
from engine.errors import CheckpointError, LoadingCancelled
from engine.export.saved_model import frame_of
from engine.inbox import Report
from engine.run.checkpoint import Checkpoint, load_checkpoint
from engine.run.folder_lock import FolderLock
from engine.run.run_folder import RunFacts
from engine.setting_info import Value
from engine.settings import Settings, all_settings
from engine.training.trainer import Trainer
from engine.wording import listed

PROGRESS_SECONDS = 0.05

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, eq=False)
class LoadRequest:
    """What to load: a new run of `scene_path`, or one that goes on from `checkpoint`.

    `scene` and `photos` are those of the run before when a restart can use them again. `lock` is
    that of the folder of an old run; whoever asks lets it go when nothing comes of the load.
    """

    run_id: int
    scene_path: Path
    settings: Settings
    folder: Path | None
    start: bool
    is_resumed: bool = False
    checkpoint: Path | None = None
    changes: tuple[tuple[str, Value], ...] = ()
    recorded: RunFacts | None = None  # what `run.toml` of the resumed run says
    lock: FolderLock | None = None
    scene: Scene | None = None
    photos: PhotoStore | None = None


@dataclasses.dataclass(frozen=True)
class LoadProgress(Report):
    """`file` is being read, `done` of `total`."""

    run_id: int
    stage: str
    file: str
    done: int
    total: int


@dataclasses.dataclass(frozen=True, eq=False)
class SceneKnown(Report):
    """Cameras and sparse points are known; photos are not decoded yet."""

    run_id: int
    scene: Scene


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded(Report):
    """Everything a run needs; whoever takes it owns it and closes the photos."""

    run_id: int
    request: LoadRequest
    scene: Scene
    photos: PhotoStore
    trainer: Trainer
    before: Settings  # of a resumed run, as its checkpoint has them; else those in force


@dataclasses.dataclass(frozen=True, eq=False)
class LoadFailed(Report):
    """Loading ended with an error; `details` is the traceback."""

    run_id: int
    error: Exception
    details: str


class SceneLoader:
    """One load on a thread of its own."""

    def __init__(self, request: LoadRequest, deliver: Callable[[Report], None]) -> None:
        self.request = request
        self._deliver = deliver
        self._cancelled = threading.Event()
        self._reported = 0.0
        self._stage = ""
        self._thread = threading.Thread(
            target=self._run, name=f"scene loader {request.run_id}", daemon=True
        )

    def start(self) -> None:
        """Begin; the outcome comes as `Loaded` or `LoadFailed`, or not at all after a cancel."""
        self._thread.start()

    def cancel(self) -> None:
        """Give up soon; nothing more is delivered but what is on its way."""
        self._cancelled.set()

    def join(self, timeout: float) -> bool:
        """Wait for the thread; whether it ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._load()
        except LoadingCancelled:
            _log.info("loading of %s was cancelled", self.request.scene_path)
        except Exception as error:  # noqa: BLE001  whatever it is must reach the user
            self._deliver(LoadFailed(self.request.run_id, error, traceback.format_exc()))

    def _load(self) -> None:
        torch.set_num_threads(1)  # per thread where torch was built with OpenMP
        request = self.request
        state = load_checkpoint(request.checkpoint) if request.checkpoint else None
        before = Settings().updated(state.fact("settings")) if state else request.settings
        settings = before.updated(dict(request.changes))
        scene = request.scene or load_scene(
            request.scene_path, settings, self._progress, self._cancelled.is_set
        )
        self._raise_if_cancelled()
        if state is not None:
            _require_same_frame(request, scene, state)
        self._deliver(SceneKnown(request.run_id, scene))
        backend = choose_backend(settings)
        device = tensor_device(backend, settings)
        make_current(device)
        photos = request.photos or PhotoStore(scene, settings)
        try:
            usable = photos.load_all(self._progress, self._cancelled.is_set)
            if usable is not scene:  # broken photos were left out
                scene = usable
                self._deliver(SceneKnown(request.run_id, scene))
            prepare_kernels(backend, self._progress)
            self._progress("Preparing the splats", scene.name, 0, 1)
            trainer = _make_trainer(scene, photos, settings, backend, device, state)
            self._raise_if_cancelled()
        except BaseException:
            photos.close()
            raise
        self._deliver(Loaded(request.run_id, request, scene, photos, trainer, before))

    def _raise_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise LoadingCancelled("Loading was cancelled.")

    def _progress(self, stage: str, file: str, done: int, total: int) -> None:
        """Pass on the first and last of each stage, and others a few times a second."""
        self._raise_if_cancelled()
        now = time.monotonic()
        if stage == self._stage and done < total and now - self._reported < PROGRESS_SECONDS:
            return
        self._stage, self._reported = stage, now
        self._deliver(LoadProgress(self.request.run_id, stage, file, done, total))


def _make_trainer(
    scene: Scene,
    photos: PhotoStore,
    settings: Settings,
    backend: str,
    device: torch.device,
    state: Checkpoint | None,
) -> Trainer:
    if state is None:
        return Trainer(scene, photos, settings, backend=backend, device=device)
    values = {info.name: settings[info.name] for info in all_settings()}
    header = {**state.facts, "settings": values}
    try:
        return Trainer.from_state(
            scene, photos, state.tensors, header, backend=backend, device=device
        )
    except CheckpointError as error:
        raise CheckpointError(f"{state.path}: {error}", path=state.path) from error


def _require_same_frame(request: LoadRequest, scene: Scene, state: Checkpoint) -> None:
    """The splats of a checkpoint are where its scene was; other poses would leave them behind."""
    if frame_of(state.fact("scene_frame")) == scene.frame:
        return
    names = {photo.name for photo in scene.photos}
    lost = [name for name in state.fact("training_photos") if name not in names]
    what = f"{listed(lost)} {'is' if len(lost) == 1 else 'are'} not there" if lost else "moved"
    own = f" ({request.recorded.scene_name})" if request.recorded else ""
    raise CheckpointError(
        f"{state.path} was trained on other poses than {scene.path} has: {what}. Resume with the "
        f"scene of the run{own}, or make a new run in another folder.",
        path=state.path,
    )
