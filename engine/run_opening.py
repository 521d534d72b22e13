"""Opening scenes and runs: what is loaded, what is replaced, and when a run exists."""

import gc
import re
from pathlib import Path

from engine import messages as m
from engine.device import put_into_force
from engine.errors import EngineError, RunFolderError, SceneError
from engine.inbox import Report
from engine.messages import State
from engine.open_run import OpenRun
from engine.resume_rules import resuming_changes
from engine.run.disk_space import require_room, room_warning
from engine.run.folder_lock import FolderLock
from engine.run.run_folder import (
    RunFacts,
    RunFolder,
    free_folder,
    require_usable,
    user_runs_folder,
)
from engine.run.run_history import read_history
from engine.run_commands import CommandRefusal
from engine.scene_loader import (
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadRequest,
    SceneKnown,
    SceneLoader,
)
from engine.scene_names import referenced_scene, scene_path
from engine.scene_summary import scene_opened
from engine.session import Session
from engine.setting_info import Applies, Value
from engine.settings import Settings, setting_info
from engine.size_advice import size_advice

_SCENE_SETTINGS = ("resolution", "test_every")  # what decoded photos depend on


class RunOpening:
    """Owns the loader and turns what it delivers into an open run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loader: SceneLoader | None = None
        self._retired: list[SceneLoader] = []

    # --- commands --------------------------------------------------------------------------------

    def open_scene(self, command: m.OpenScene) -> None:
        """Replace what is open by a new run of a scene."""
        _refuse_unless_usable(command.run_folder or free_folder(user_runs_folder(), "run"))
        self._close_old()
        self._load(
            LoadRequest(
                run_id=self._session.run_id + 1,
                scene_path=scene_path(command.path),
                settings=command.settings,
                folder=command.run_folder,
                start=command.start,
            )
        )

    def resume_run(self, command: m.ResumeRun) -> None:
        """Replace what is open by an old run, which goes on from its last checkpoint."""
        folder = RunFolder(command.run_folder)
        try:
            _recorded(folder, command)  # the lock makes a file: only where there is a run
            lock = self._locked(folder)
        except EngineError as error:
            raise CommandRefusal(str(error), path=error.path) from error
        try:
            self._close_old()
            request = self._resumed(folder, command, lock)
        except BaseException:
            lock.release()
            raise
        self._load(request)

    def _locked(self, folder: RunFolder) -> FolderLock:
        """The folder's lock, shared with the open run where it is its own."""
        run = self._session.run
        is_own = run is not None and run.folder.path.resolve() == folder.path.resolve()
        return run.lock.share() if run and is_own else FolderLock(folder.path)

    def _resumed(self, folder: RunFolder, command: m.ResumeRun, lock: FolderLock) -> LoadRequest:
        settings, facts, changes = _recorded(folder, command)
        scene = command.scene or referenced_scene(facts.scene, folder)
        return LoadRequest(
            run_id=self._session.run_id + 1,
            scene_path=scene_path(scene),
            settings=settings.updated(changes),
            folder=command.run_folder,
            start=command.start,
            is_resumed=True,
            checkpoint=folder.last_checkpoint(),
            changes=tuple(changes.items()),
            recorded=facts,
            lock=lock,
        )

    def restart(self, run: OpenRun, command: m.Restart) -> None:
        """Replace the run by a new one of the same scene; photos are used again if they may be."""
        settings = run.settings.updated(run.held)
        same = all(settings[name] == run.settings[name] for name in _SCENE_SETTINGS)
        folder = run.folder.path
        base = re.sub(r"-\d{1,3}$", "", folder.name)
        request = LoadRequest(
            run_id=self._session.run_id + 1,
            scene_path=run.scene.path,
            settings=settings,
            folder=free_folder(folder.parent, base),
            start=command.start,
            scene=run.scene if same else None,
            photos=run.photos if same else None,
        )
        self._close_old(keep_photos=same)
        self._load(request)

    def cancel(self) -> None:
        """Give up loading."""
        self._retire_loader()
        self._session.set_state(State.EMPTY)

    def shut_down(self, timeout: float) -> None:
        """End every loader; each ends soon after it was told."""
        self._retire_loader()
        for loader in self._retired:
            loader.join(timeout)

    def _close_old(self, *, keep_photos: bool = False) -> None:
        """Raises CommandRefusal, with the run as it was, when its last steps cannot be saved."""
        if self._session.run is not None:
            problem = self._session.close_run(save=True, keep_photos=keep_photos)
            if problem is not None:
                raise CommandRefusal(
                    f"The open run could not be saved, so it stays open: {problem} Then try "
                    "again, or export its splats to another place first.",
                    path=problem.path,
                )
            gc.collect()  # a model is large: do not wait until cycles through it are found
        self._retire_loader()

    def _load(self, request: LoadRequest) -> None:
        self._session.run_id = request.run_id
        self._session.set_state(State.LOADING)
        self._loader = SceneLoader(request, self._session.inbox.post)
        self._loader.start()

    def _retire_loader(self) -> None:
        if self._loader is not None:
            self._loader.cancel()
            self._retired.append(self._loader)
            self._let_go()
        self._forget_ended()

    def _let_go(self) -> None:
        """Nothing comes of the load: the folder is free for others."""
        if self._loader is not None and self._loader.request.lock is not None:
            self._loader.request.lock.release()
        self._loader = None

    def _forget_ended(self) -> None:
        """A loader holds on to its scene; let go of those that have ended."""
        self._retired = [loader for loader in self._retired if not loader.join(0.0)]

    # --- reports ---------------------------------------------------------------------------------

    def take(self, report: Report) -> None:
        """Act on what the loader tells; reports of a load that was given up are dropped."""
        current = self._loader is not None and self._loader.request.run_id
        match report:
            case LoadProgress() if report.run_id == current:
                self._session.publish(
                    m.LoadingProgressed(
                        report.run_id, report.stage, report.file, report.done, report.total
                    )
                )
            case SceneKnown() if report.run_id == current:
                self._session.publish(scene_opened(report.run_id, report.scene))
            case LoadFailed() if report.run_id == current and self._loader is not None:
                error = _as_error_of_run(report.error, self._loader.request)
                self._let_go()
                self._session.fail(error, report.details)
            case Loaded() if report.run_id == current:
                self._loader = None
                self._forget_ended()
                self._begin(report)
            case Loaded():
                report.photos.close()

    def _begin(self, loaded: Loaded) -> None:
        """A run exists from here on."""
        session, request = self._session, loaded.request
        try:
            refused = put_into_force(loaded.trainer.settings, loaded.trainer.device)
            run = self._make_run(loaded)
        except (EngineError, OSError) as error:
            loaded.photos.close()
            session.fail(_as_folder_error(error, request.folder))
            return
        finally:
            if request.lock is not None:
                request.lock.release()  # the run has a share of its own
        session.run = run
        session.publish(
            m.RunStarted(
                *(run.run_id, run.folder.path, run.settings, run.step, run.device),
                splats=len(run.trainer.model),
            )
        )
        session.notice(refused)
        session.notice(run.lock.problem)
        self._note_beginning(run, loaded)
        if run.is_complete:
            session.finish(run, evaluate=True)
            return
        session.set_state(State.READY if run.step == 0 else State.PAUSED)
        if request.start:
            session.set_state(State.TRAINING)

    def _make_run(self, loaded: Loaded) -> OpenRun:
        request = loaded.request
        path = request.folder or free_folder(user_runs_folder(), loaded.scene.name)
        folder = RunFolder(path)
        require_room(path, loaded.trainer)
        if not request.is_resumed:
            folder.create()
        lock = request.lock.share() if request.lock else FolderLock(path)
        try:
            if request.is_resumed:
                folder.reopen()
            run = OpenRun(
                *(request.run_id, loaded.scene, loaded.photos, loaded.trainer),
                *(folder, lock, loaded.before),
            )
        except BaseException:
            lock.release()
            raise
        try:
            run.hold(request.recorded.held if request.recorded else {})
            run.write_facts()
        except BaseException:
            run.close(keep_photos=True)
            raise
        return run

    def _note_beginning(self, run: OpenRun, loaded: Loaded) -> None:
        request = loaded.request
        what = "Resumed" if request.is_resumed else "RunStarted"
        self._session.notice(run.journal(what, run.step, {"settings": run.settings.differences()}))
        self._session.notice(room_warning(run.folder.path, run.trainer))
        if not request.is_resumed:
            self._note_seed_cap(run)
            self._session.notice(size_advice(run.scene, run.trainer.device.type))
            return
        self._tell_history(run)
        for name, value in run.settings.differences(loaded.before).items():
            old = loaded.before[name]
            self._session.notice(run.journal_setting(name, old, value, gesture=0, held=False))
            self._session.publish(m.SettingApplied(run.run_id, run.step, name, old, value))
            if setting_info(name).applies is Applies.RESTART:
                self._session.notice(
                    f"{name} was {old} up to step {run.step:,}, now it is {value}."
                )
        for name, value in run.held.items():
            old = run.settings[name]
            self._session.publish(
                m.SettingApplied(run.run_id, run.step, name, old, value, held=True)
            )
        self._session.warn(run.damaged_metrics)
        self._session.warn(run.undone_steps)
        if request.recorded is not None:
            self._session.notice(run.other_machine(request.recorded))
        self._session.notice(_where_it_is(run, request))

    def _tell_history(self, run: OpenRun) -> None:
        try:
            history = read_history(run.folder, run.run_id, run.step)
        except OSError as error:
            self._session.notice(
                f"The curves of the steps before cannot be read from {run.folder.path}: "
                f"{error.strerror or error}. The run goes on without them."
            )
            return
        self._session.publish(history.event)
        if count := history.damaged_changes:
            lines = "line" if count == 1 else "lines"
            self._session.notice(
                f"{count:,} damaged {lines} of {run.folder.journal_path} could not be read, so "
                "changes are missing among the marks. The model is not affected."
            )

    def _note_seed_cap(self, run: OpenRun) -> None:
        points, splats = len(run.scene.points), len(run.trainer.model)
        if splats < points:
            self._session.notice(
                f"{splats:,} of {points:,} sparse points are used, drawn at random: that is the "
                "splat cap. Raise it to start from all."
            )


def _where_it_is(run: OpenRun, request: LoadRequest) -> str:
    splats = f"{len(run.trainer.model):,} splats"
    if run.is_complete:
        return f"The run is finished: step {run.step:,}, {splats}. More iterations continue it."
    source = "its last checkpoint" if request.checkpoint else "the start: it has no checkpoint"
    return f"The run goes on from {source}: step {run.step:,}, {splats}."


def _recorded(
    folder: RunFolder, command: m.ResumeRun
) -> tuple[Settings, RunFacts, dict[str, Value]]:
    """What `run.toml` says, and the changes that the command may bring."""
    settings, facts = folder.read_facts()
    done = max(folder.found_checkpoints(), default=0)
    return settings, facts, resuming_changes(settings, dict(command.changes), done)


def _refuse_unless_usable(path: Path) -> None:
    try:
        require_usable(path)
    except RunFolderError as error:
        raise CommandRefusal(str(error), path=error.path) from error


def _as_error_of_run(error: BaseException, request: LoadRequest) -> BaseException:
    """What is wrong with a scene says nothing of the run that was to go on with it."""
    if not request.is_resumed or not isinstance(error, SceneError):
        return error
    wrapped = SceneError(
        f"{error} The run {request.folder} is as it was; it goes on once its scene is whole.",
        path=error.path,
    )
    wrapped.__cause__ = error
    return wrapped


def _as_folder_error(error: EngineError | OSError, folder: Path | None) -> EngineError:
    if isinstance(error, EngineError):
        return error
    wrapped = RunFolderError(
        f"The run folder {folder or user_runs_folder()} cannot be written: "
        f"{error.strerror or error}. Choose another place.",
        path=folder,
    )
    wrapped.__cause__ = error
    return wrapped
