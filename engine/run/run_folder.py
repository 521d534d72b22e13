"""What a run leaves on disk, and where.

    run.toml  journal.jsonl  metrics.jsonl  run.log  run.lock  checkpoints/  exports/  views/

Paths inside are relative, so that a folder may move to another machine. A new run never writes
into a folder that holds something. `folder_lock` keeps other programs out while it is open.
"""

import dataclasses
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import platformdirs
import tomli_w

from engine.documents import UNREADABLE, problem_of, read_toml
from engine.errors import RunFolderError, SettingError
from engine.plain_files import is_unicode, require_plain_file, with_escapes
from engine.run.atomic_file import TEMPORARY_SUFFIX, atomic_file
from engine.setting_info import Value
from engine.settings import Settings, setting_info
from engine.wording import counted

APP_NAME = "splatscope"
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class RunFacts:
    """What `run.toml` tells about a run besides its settings; `scene` is as written there.

    `held` are the changes that wait for a restart, by name.
    """

    scene: str
    scene_name: str
    backend: str
    device: str
    versions: dict[str, str]
    held: dict[str, Value] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The folder of one run; making the object touches nothing on disk."""

    path: Path

    @property
    def facts_path(self) -> Path:
        """Settings that differ from the defaults, seed, versions, device, scene."""
        return self.path / "run.toml"

    @property
    def journal_path(self) -> Path:
        """Every command and applied change, one JSON object a line."""
        return self.path / "journal.jsonl"

    @property
    def metrics_path(self) -> Path:
        """One JSON object a step."""
        return self.path / "metrics.jsonl"

    @property
    def log_path(self) -> Path:
        """The log of the program while this run was open."""
        return self.path / "run.log"

    @property
    def checkpoints(self) -> Path:
        """The folder of exact states."""
        return self.path / "checkpoints"

    @property
    def exports(self) -> Path:
        """The folder of splat files."""
        return self.path / "exports"

    @property
    def views(self) -> Path:
        """The folder of rendered pictures."""
        return self.path / "views"

    def checkpoint_path(self, step: int) -> Path:
        """Where the state after `step` steps is kept."""
        return self.checkpoints / f"step-{step:06d}.safetensors"

    def export_path(self, step: int) -> Path:
        """Where the splats after `step` steps are kept."""
        return self.exports / f"step-{step:06d}.ply"

    def found_checkpoints(self) -> dict[int, Path]:
        """The checkpoints there are, by their step, in order."""
        found = {
            int(match[1]): path
            for path in self.checkpoints.glob("step-*.safetensors")
            if (match := re.fullmatch(r"step-(\d+)\.safetensors", path.name))
        }
        return dict(sorted(found.items()))

    def last_checkpoint(self) -> Path | None:
        """The checkpoint with the highest step, or None."""
        return next(reversed(self.found_checkpoints().values()), None)

    def create(self) -> None:
        """Make the folder and its sub-folders; RunFolderError when it holds something already."""
        require_unused(self.path)
        try:
            for folder in (self.checkpoints, self.exports, self.views):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(
                f"The run folder {self.path} cannot be made: {error.strerror or error}. "
                "Choose another folder.",
                path=self.path,
            ) from error

    def reopen(self) -> None:
        """Make what is missing in an old folder and remove what a killed program left half done."""
        for folder in (self.checkpoints, self.exports, self.views):
            folder.mkdir(parents=True, exist_ok=True)
            for partial in folder.glob("*" + TEMPORARY_SUFFIX):
                partial.unlink()

    def write_facts(self, settings: Settings, facts: RunFacts) -> None:
        """Write `run.toml` anew. Raises OSError."""
        document: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "scene": facts.scene,
            "scene_name": facts.scene_name,
            "backend": facts.backend,
            "device": facts.device,
            "seed": settings.run.seed,
            "versions": facts.versions,
            "settings": settings.differences(),
            "held": facts.held,
        }
        with atomic_file(self.facts_path) as handle:
            handle.write(tomli_w.dumps(document).encode("utf-8"))

    def read_facts(self) -> tuple[Settings, RunFacts]:
        """The settings and facts of an old run; RunFolderError when they cannot be read."""
        path = self.facts_path
        try:
            require_plain_file(path)
            document = self._document()
            _require_version(path, document.get("format_version", 0))
            settings = Settings().updated(document["settings"])
            facts = RunFacts(
                scene=str(document["scene"]),
                scene_name=str(document["scene_name"]),
                backend=str(document["backend"]),
                device=str(document["device"]),
                versions=dict(document["versions"]),
                held={
                    name: setting_info(name).check(value)
                    for name, value in document.get("held", {}).items()
                },
            )
        except FileNotFoundError:
            raise RunFolderError(
                f"{self.path} is not a run folder: it has no run.toml. Expected the folder of an "
                "earlier run.",
                path=self.path,
            ) from None
        except KeyError as error:
            message = f"{path} lacks the entry {error}. {self._way_round()}"
            raise RunFolderError(message, path=path) from error
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}."
            raise RunFolderError(message, path=path) from error
        except (ValueError, TypeError, AttributeError, SettingError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}", path=path) from error
        return settings, facts

    def _document(self) -> dict[str, Any]:
        """The entries of `run.toml`; RunFolderError when it is empty or no TOML."""
        path = self.facts_path
        try:
            document = read_toml(path.read_text(encoding="utf-8"))
        except UNREADABLE as error:
            message = f"{path} cannot be read: {problem_of(error)}. {self._way_round()}"
            raise RunFolderError(message, path=path) from error
        if not document:
            size = path.stat().st_size
            message = (
                f"{path} is empty ({counted(size, 'byte')}); expected the scene and the settings "
                f"of the run. {self._way_round()}"
            )
            raise RunFolderError(message, path=path)
        return document

    def _way_round(self) -> str:
        """What can be done when `run.toml` is damaged."""
        last = self.last_checkpoint()
        if last is None:
            return "Put a copy of it back, or begin a new run: this one has no checkpoint."
        return (
            "Put a copy of it back to go on with the run. Checkpoints do not need it: "
            f"splatscope eval and splatscope render take {last}, or an earlier one, by itself."
        )

    def scene_reference(self, scene: Path) -> str:
        """`scene` as `run.toml` holds it: relative to the folder wherever that is possible."""
        try:
            return Path(os.path.relpath(scene.resolve(), self.path.resolve())).as_posix()
        except ValueError:  # another drive
            return str(scene.resolve())

    def scene_path(self, reference: str) -> Path:
        """The path that `scene_reference` was made from."""
        return Path(os.path.normpath(self.path.resolve() / reference))


def _require_version(path: Path, found: object) -> None:
    """Before anything else is looked at: a newer version may have settings unknown here."""
    if not isinstance(found, int):
        raise TypeError(f"its format_version is {found!r}; expected a whole number")
    if found > FORMAT_VERSION:
        raise RunFolderError(
            f"{path} was written by a newer version of the program (format {found}, this one reads "
            f"up to {FORMAT_VERSION}). Update the program.",
            path=path,
        )


def require_unused(path: Path) -> None:
    """RunFolderError when `path` is a file or a folder that holds something."""
    if path.is_file():
        raise RunFolderError(
            f"{path} is a file; a run needs a new or empty folder. Choose another place.",
            path=path,
        )
    if path.is_dir() and any(path.iterdir()):
        resumable = (path / "run.toml").exists()
        remedy = "continue it with --resume, or choose" if resumable else "choose"
        what = "an earlier run" if resumable else "files"
        raise RunFolderError(
            f"The folder {path} already holds {what}; {remedy} a new or empty folder.", path=path
        )


def require_usable(path: Path) -> None:
    """RunFolderError when a new run cannot be kept at `path`; leaves nothing behind."""
    if not is_unicode(path):
        raise RunFolderError(
            f"The name {with_escapes(path)} has bytes that are no UTF-8, and checkpoints cannot be "
            "read back from there. Choose another folder.",
            path=path,
        )
    try:
        require_unused(path)
        probe_folder(path)
    except OSError as error:
        raise RunFolderError(
            f"The run folder {path} cannot be made: {error.strerror or error}. Choose another "
            "folder.",
            path=path,
        ) from error


def probe_folder(path: Path) -> None:
    """Try to make a folder and write into it; what was made for that is gone afterwards.

    Raises OSError. Permissions alone do not tell: they say nothing of read-only disks.
    """
    made: list[Path] = []
    try:
        for folder in reversed((path, *path.parents)):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        with tempfile.TemporaryFile(dir=path):
            pass
    finally:
        for folder in reversed(made):
            folder.rmdir()


def user_runs_folder() -> Path:
    """Where runs are kept when nobody names a place."""
    return Path(platformdirs.user_data_dir(APP_NAME, appauthor=False)) / "runs"


def free_folder(parent: Path, name: str) -> Path:
    """`parent/name-N` with the first N above all that exist; a plain `name` counts as 1."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    taken = [
        int(match[1])
        for path in (parent.iterdir() if parent.is_dir() else ())
        if (match := re.fullmatch(re.escape(safe) + r"-(\d+)", path.name))
    ]
    if (parent / safe).exists():
        taken.append(1)
    return parent / f"{safe}-{max(taken, default=0) + 1}"
