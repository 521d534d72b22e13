"""Compiled kernels on disk, in a folder of the user's cache.

A key covers everything that the machine code depends on; each entry carries its checksum, so one
that was cut short or damaged is built again. Entries appear whole or not at all.
"""

import contextlib
import hashlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from cuda_rasterizer.cuda.nvrtc import OPTIONS

_MAGIC = b"splatscope kernels 1\n"
_CHECKSUM_SIZE = hashlib.sha256().digest_size
_KEPT_KEYS = 8
_KEY = re.compile("[0-9a-f]{32}")
_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """SPLATSCOPE_CUDA_CACHE, or splatscope/kernels in the user's cache."""
    if chosen := os.environ.get("SPLATSCOPE_CUDA_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "splatscope" / "kernels"


def cache_key(
    modules: Mapping[str, str],
    headers: Mapping[str, str],
    target: str,
    compiler_version: str,
    options: tuple[str, ...] = OPTIONS,
) -> str:
    """A name for what is compiled from these sources and headers, so and with this compiler."""
    digest = hashlib.sha256()
    parts = [target, compiler_version, *options]
    for kind in (modules, headers):
        parts += [text for name in sorted(kind) for text in (name, kind[name])]
    for part in parts:
        digest.update(f"{len(part)}:{part}\n".encode())
    return digest.hexdigest()[:32]


class CubinCache:
    """The entries of one key, a file a module; `folder` is made when something is stored."""

    def __init__(self, folder: Path, key: str) -> None:
        self._root = folder
        self._folder = folder / key

    def holds(self, module: str) -> bool:
        """Whether a whole entry lies there."""
        return self._load(module) is not None

    def load_or_build(self, module: str, build: Callable[[], bytes]) -> bytes:
        """The entry; built and kept where there is none or a damaged one.

        A cache that cannot be written costs time at the next start and is logged, no more.
        """
        image = self._load(module)
        if image is None:
            image = build()
            try:
                self._store(module, image)
            except OSError as error:
                _log.warning("compiled kernels cannot be kept in %s: %s", self._folder, error)
        return image

    def _path(self, module: str) -> Path:
        return self._folder / f"{module}.cubin"

    def _load(self, module: str) -> bytes | None:
        try:
            content = self._path(module).read_bytes()
        except OSError:  # absent or not readable: both are mended by building
            return None
        start = len(_MAGIC) + _CHECKSUM_SIZE
        image = content[start:]
        if content[:start] == _MAGIC + hashlib.sha256(image).digest():
            return image
        _log.warning("the compiled kernels in %s are damaged and built anew", self._path(module))
        return None

    def _store(self, module: str, image: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(image).digest() + image)
            Path(temporary).replace(self._path(module))
        except OSError:
            with contextlib.suppress(OSError):  # the disk is full or gone; the first error counts
                Path(temporary).unlink()
            raise
        self._forget_old_keys()

    def _forget_old_keys(self) -> None:
        """Leaves the newest keys: every change of a source makes a new one."""
        folders = [path for path in self._root.iterdir() if _KEY.fullmatch(path.name)]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for folder in folders[_KEPT_KEYS:]:
            for entry in folder.iterdir():  # with what a killed program left half written
                entry.unlink(missing_ok=True)
            folder.rmdir()
