"""Compiles CUDA sources with g++ into a library of the emulator.

Objects are kept by a hash of all that goes into them, so that only what changed is compiled again.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cores import own_cores

FOLDER = Path(__file__).parent
FLAGS = (
    *("-std=c++17", "-O2", "-fPIC", "-fno-exceptions", "-ffp-contract=off", "-fno-math-errno"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unknown-pragmas"),
)
# Counted before functions become part of their callers: a decision is one, wherever it is used.
COVERAGE_FLAGS = ("--coverage", "-fno-early-inlining", "-fno-partial-inlining")
KEPT_SECONDS = 3 * 24 * 3600


class EmulatorError(AssertionError):
    """A kernel broke a rule, or a source does not compile; the message names it."""


def build(
    cu_files: Sequence[Path],
    include_folders: Sequence[Path],
    cache: Path,
    *,
    first_header: str = "",
    coverage: bool = False,
) -> Path:
    """The library, out of `cache` where it is there already.

    Args:
        cu_files: each compiled by itself.
        include_folders: where they find their headers, any of which may matter to all.
        cache: a folder; several processes may share it.
        first_header: text that is compiled before each file.
        coverage: count executed lines and branches for gcov (see `coverage`).

    Raises:
        EmulatorError: there is no g++, or a source does not compile.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise EmulatorError("the CUDA emulator needs g++")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        header = cache / f"first-{_digest([first_header])}.h"
        header.write_text(first_header, encoding="utf-8")
        folders = [*include_folders, FOLDER]
        command = [compiler, *FLAGS, *_fused_flag(), *(f"-I{folder}" for folder in folders)]
        headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
        version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
        common = _digest([version, *command, first_header, *(h.read_bytes() for h in headers)])

        def compiled(source: Path) -> Path:
            key = _digest([common, source.read_bytes(), str(coverage)])
            item = cache / f"{source.stem}-{key}.o"
            if source.suffix == ".cu":
                extra = ["-x", "c++", "-include", str(header)]
                extra += COVERAGE_FLAGS if coverage else []
            else:
                extra = ["-DSPLATSCOPE_COVERAGE"] if coverage else []
            if not item.is_file():
                _run([*command, *extra, "-c", str(source.resolve()), "-o", str(item)])
            return item

        with ThreadPoolExecutor(own_cores()) as pool:
            objects = list(pool.map(compiled, [*cu_files, *sorted(FOLDER.glob("*.cpp"))]))
        library = cache / f"emulated-{_digest(map(str, objects))}.so"
        if not library.is_file():
            extra = ["--coverage"] if coverage else []
            _run([compiler, "-shared", *extra, *map(str, objects), "-o", str(library)])
        _forget_what_is_old(cache, [*objects, library])
        return library


def _forget_what_is_old(cache: Path, used: Iterable[Path]) -> None:
    """Keeps what some session used within the last days."""
    for path in used:
        path.touch()
    long_ago = time.time() - KEPT_SECONDS
    for path in cache.glob("*-*.*"):
        if path.stat().st_mtime < long_ago and path.with_suffix(".o") not in used:
            path.unlink()  # a .gcno goes with its object


def _run(command: list[str]) -> None:
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    )
    if result.returncode != 0:
        Path(command[-1]).unlink(missing_ok=True)
        raise EmulatorError(f"{' '.join(command)}\n{result.stderr}")


def _digest(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:16]


def _fused_flag() -> list[str]:
    """Lets `fused` be one instruction where the machine has it; the bits are the same."""
    cpuinfo = Path("/proc/cpuinfo")
    has_it = cpuinfo.is_file() and " fma " in cpuinfo.read_text(encoding="utf-8")
    return ["-mfma"] if has_it else []
