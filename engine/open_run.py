"""A run that is open: its trainer, its settings and what it writes. Owned by the engine thread.

Nothing of a run lives anywhere else, so that dropping this object ends it.
"""

import contextlib
import dataclasses
import re
import shutil
from collections.abc import Generator, Mapping
from pathlib import Path

from cuda_rasterizer import describe
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Scene
from engine.errors import ExportError
from engine.export.splat_files import Written, write_splats_in_phases
from engine.gpu_readings import GpuReadings
from engine.run.atomic_file import disk_error, other_place, what_to_mend
from engine.run.checkpoint import save_checkpoint
from engine.run.folder_lock import FolderLock
from engine.run.journal import Journal
from engine.run.metrics_log import MetricsLog
from engine.run.run_folder import RunFacts, RunFolder, free_folder
from engine.run.run_log import RunLog
from engine.scene_names import scene_reference
from engine.setting_info import Value
from engine.settings import Settings
from engine.training.step_result import StepResult
from engine.training.trainer import Trainer
from engine.versions import recorded_versions


class OpenRun:
    """One run with its folder.

    Saving and exporting raise ExportError when the disk fails, or CheckpointError when what was
    written reads back otherwise. The logs never raise: their
    methods return a sentence for the user the first time that the disk fails, else None.
    """

    def __init__(
        self,
        run_id: int,
        scene: Scene,
        photos: PhotoStore,
        trainer: Trainer,
        folder: RunFolder,
        lock: FolderLock,
        saved_settings: Settings,
    ) -> None:
        """Take over what the loader made; `folder` exists, and can give back `saved_settings`.

        `lock` is the folder's, and let go by `close`.
        """
        self.run_id = run_id
        self.scene = scene
        self.photos = photos
        self.trainer = trainer
        self.folder = folder
        self.lock = lock
        self.gpu = GpuReadings(trainer.device)
        self.held: dict[str, Value] = {}  # changes that wait for a restart
        self._written_held: dict[str, Value] = {}  # those that `run.toml` has
        self.version = 0  # changes whenever the model does
        self.saved_version = -1  # of the model in the last checkpoint
        self.saved_settings = saved_settings
        self.exported_version = 0 if self._has_export() else -1  # of the step's splat file
        self.evaluated_step = -1
        self.cap_told: int | None = None  # the splat cap that was last told to be reached
        self._is_verified = False
        self._logs_failed = False
        self._journal = Journal(folder.journal_path)
        self._metrics = MetricsLog(folder.metrics_path, after_step=trainer.step)
        self._log = RunLog(folder.log_path)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.trainer.settings

    @property
    def step(self) -> int:
        """Steps done."""
        return self.trainer.step

    @property
    def device(self) -> str:
        """Such as "CPU, 2 threads, AVX2"."""
        return describe(self.trainer.backend)

    @property
    def is_unsaved(self) -> bool:
        """Whether model or settings changed since the last checkpoint, or since the start."""
        model_changed = self.version > 0 and self.saved_version != self.version
        return model_changed or self.saved_settings != self.settings

    @property
    def is_exported(self) -> bool:
        """Whether the splat file of this step is there and holds the model as it is."""
        is_current = self.exported_version == self.version
        return is_current and self.folder.export_path(self.step).is_file()

    def _has_export(self) -> bool:
        """Whether an old run has the splats of its checkpoint: written after it, as a finish does.

        Saving again after a prune by hand leaves a checkpoint that is newer than the splats.
        """
        checkpoint, export = (
            self.folder.checkpoint_path(self.step),
            self.folder.export_path(self.step),
        )
        if not (checkpoint.is_file() and export.is_file()):
            return False
        return export.stat().st_mtime_ns >= checkpoint.stat().st_mtime_ns

    @property
    def is_complete(self) -> bool:
        """Whether the last iteration is done."""
        return self.step >= self.settings.run.iterations

    def other_machine(self, recorded: RunFacts) -> str | None:
        """A sentence when a resumed run will not give the bits that it would have given before."""
        here = {**recorded_versions(), "kernels": _kernels(self.device)}
        there = {**recorded.versions, "kernels": _kernels(recorded.device)}
        changed = [
            f"{name} {there.get(name, 'unknown')} -> {found}"
            for name, found in here.items()
            if there.get(name) != found
        ]
        if not changed:
            return None
        return (
            f"The run was made with other versions ({', '.join(changed)}); from here on its "
            "results are as good, but not the same bits."
        )

    def write_facts(self) -> None:
        """Write `run.toml` with the settings in force and those held back. Raises OSError."""
        held = dict(self.held)
        self.folder.write_facts(
            self.settings,
            RunFacts(
                scene=scene_reference(self.scene.path, self.folder),
                scene_name=self.scene.name,
                backend=self.trainer.backend,
                device=self.device,
                versions=recorded_versions(),
                held=held,
            ),
        )
        self._written_held = held

    @property
    def damaged_metrics(self) -> str | None:
        """A sentence when the metrics of a resumed run had lines that could not be read."""
        count = self._metrics.damaged
        if not count:
            return None
        lines = "line" if count == 1 else "lines"
        return (
            f"{count:,} damaged {lines} of {self.folder.metrics_path} could not be read and are "
            "taken out, so the curves have a gap. The model is not affected."
        )

    @property
    def undone_steps(self) -> str | None:
        """A sentence when a resumed run had gone further than what was saved of it."""
        undone = self._metrics.undone
        if undone is None:
            return None
        where = f"step {self.step:,}" if self.step else "the start"
        return (
            f"The run had come to step {undone.last:,}, of which nothing was saved behind {where}: "
            f"it goes on from there. The figures of steps {undone.first:,} to {undone.last:,} are "
            f"kept in {undone.path}."
        )

    def hold(self, changes: Mapping[str, Value]) -> None:
        """Let changes wait for a restart, but for those that are in force already."""
        self.held = {name: value for name, value in changes.items() if value != self.settings[name]}

    # --- logs: a full disk is told once and stops nothing ----------------------------------------

    def log_step(self, result: StepResult) -> str | None:
        """Add the row of one step to the metrics."""
        row: dict[str, object] = {
            "step": result.step,
            "seconds": result.seconds,
            "loss": result.loss,
            "l1": result.l1,
            "ssim": result.ssim,
            "splats": result.splats,
            "photo": result.photo,
            "position_lr": result.position_lr,
            "sh_degree": result.sh_degree,
            "train_psnr": result.psnr,
        }
        if result.reset is not None:
            row["opacity_reset"] = result.reset
        if result.grown is not None:
            row["photo_divisor"] = result.grown
        try:
            self._metrics.append(row)
        except OSError as error:
            return self._log_failed(self.folder.metrics_path, error)
        return None

    def log_evaluation(self, psnr: float, ssim: float) -> str | None:
        """Add the held-out scores to the row of the last step."""
        return self._amend({"psnr": psnr, "held_out_ssim": ssim})

    def log_reset(self, value: float) -> str | None:
        """Add an opacity reset by hand to the row of the last step."""
        return self._amend({"opacity_reset": value})

    def _amend(self, values: Mapping[str, object]) -> str | None:
        try:
            self._metrics.amend(values)
            self._metrics.flush()
        except OSError as error:
            return self._log_failed(self.folder.metrics_path, error)
        return None

    def journal(self, what: str, step: int, details: Mapping[str, object]) -> str | None:
        """Write an entry to the journal."""
        try:
            self._journal.record(step, what, details)
        except OSError as error:
            return self._log_failed(self.folder.journal_path, error)
        return None

    def journal_setting(
        self, name: str, old: Value, new: Value, *, gesture: int, held: bool
    ) -> str | None:
        """Note a changed setting in the journal."""
        try:
            self._journal.record_setting(self.step, name, old, new, gesture=gesture, held=held)
        except OSError as error:
            return self._log_failed(self.folder.journal_path, error)
        return None

    @property
    def has_gesture(self) -> bool:
        """Whether the journal gathers changes that are not written yet."""
        return self._journal.has_gesture

    def end_stale_gesture(self) -> str | None:
        """Write a gesture to which nothing was added lately."""
        try:
            self._journal.end_stale_gesture()
        except OSError as error:
            return self._log_failed(self.folder.journal_path, error)
        return None

    def flush_logs(self) -> str | None:
        """Write what is buffered, an unfinished gesture included."""
        try:
            self._metrics.flush()
            self._journal.end_gesture()
        except OSError as error:
            return self._log_failed(self.folder.path, error)
        return None

    def _log_failed(self, path: Path, error: OSError) -> str | None:
        if self._logs_failed:
            return None
        self._logs_failed = True
        return disk_error(path, error) + " Training goes on without it."

    # --- results ---------------------------------------------------------------------------------

    def restore_folder(self) -> str | None:
        """Make the run folder anew where somebody took it away; a sentence when that was so.

        The lock is taken anew as well. RunFolderError when another program has the folder now.
        """
        path = self.folder.path
        if path.is_dir():
            if not self.lock.stands_in(path):
                self.lock.take_anew(path)
            return None
        try:
            self.folder.reopen()
            self._settle_in(self.folder)
        except OSError:  # saving will say why
            return None
        return (
            f"The run folder {path} was gone and is made anew, with its curves and marks. Earlier "
            "checkpoints, splat files and pictures in it are lost; the model is not."
        )

    def _settle_in(self, folder: RunFolder) -> None:
        """Lock a folder that is new, and go on with the logs there. Raises OSError or EngineError.

        What an old file does not take when it is closed, the new one has.
        """
        with contextlib.ExitStack() as opened:
            metrics = self._metrics.copied_to(folder.metrics_path)
            opened.callback(metrics.close)
            journal = self._journal.copied_to(folder.journal_path)
            opened.callback(journal.close)
            log = RunLog(folder.log_path)
            opened.callback(log.close)
            self.lock.take_anew(folder.path)
            opened.pop_all()
        for old in (self._metrics, self._journal):
            with contextlib.suppress(OSError):
                old.close()
        self._log.close()
        self._metrics, self._journal, self._log = metrics, journal, log
        self._logs_failed = False

    def save_elsewhere(self, parent: Path) -> Generator[str, None, None]:
        """Go on in a new folder under `parent`: a checkpoint there, and the logs.

        The old folder stays as it is. When this fails, or is closed early, the run is where it was
        and nothing is left under `parent`.
        """
        before, saved = self.folder, (self.saved_version, self.saved_settings)
        path = parent
        try:
            path = free_folder(parent, re.sub(r"-\d{1,3}$", "", before.path.name))
            folder = RunFolder(path)
            folder.create()
            try:
                self.folder = folder
                self._is_verified = False  # on a disk that is not known
                yield from self.save()
                self._settle_in(folder)
            except BaseException:
                self.folder = before
                self.saved_version, self.saved_settings = saved
                shutil.rmtree(path, ignore_errors=True)
                raise
        except OSError as error:
            raise ExportError(
                f"{disk_error(path, error)} {other_place(error, 'folder')}.", path=path
            ) from error

    def save(self) -> Generator[str, None, None]:
        """Write a checkpoint, tensor by tensor; the first one of a run is read back and compared.

        The model may not change meanwhile. Closing the iterator early leaves nothing behind.
        """
        path = self.folder.checkpoint_path(self.step)
        tensors, header = self.trainer.export_state(copy=False)
        header["scene_frame"] = dataclasses.asdict(self.scene.frame)
        try:
            yield from save_checkpoint(path, tensors, header, verify=not self._is_verified)
            self._is_verified = True
            self.write_facts()
            self.saved_version = self.version
            self.saved_settings = self.settings
        except OSError as error:
            raise ExportError(
                f"{disk_error(path, error)} What was saved before is unchanged. "
                f"{what_to_mend(error)} and save again.",
                path=path,
            ) from error

    def keep_held(self) -> None:
        """Write the changes that wait for a restart, unless `run.toml` has them already."""
        if self.held == self._written_held:
            return
        try:
            self.write_facts()
        except OSError as error:
            path = self.folder.facts_path
            raise ExportError(
                disk_error(path, error) + " The changes that wait for a restart are not kept yet.",
                path=path,
            ) from error

    def export(self, path: Path) -> Generator[int, None, Written]:
        """Write the splats as PLY in the coordinates of the scene's files, in phases."""
        version = self.version
        written = yield from write_splats_in_phases(path, self.trainer.model, self.scene.frame)
        if path == self.folder.export_path(self.step):
            self.exported_version = version
        return written

    def close(self, *, keep_photos: bool = False) -> str | None:
        """Write what is buffered, close the files, end the decoders and unlock the folder."""
        notice = self.flush_logs()
        for log in (self._metrics, self._journal):
            try:
                log.close()
            except OSError as error:
                notice = notice or self._log_failed(self.folder.path, error)
        self._log.close()
        if not keep_photos:
            self.photos.close()
        self.lock.release()
        return notice


def _kernels(device: str) -> str:
    """The instruction set in a device's description; the number of threads changes no bit."""
    return device.rpartition(", ")[2]
