"""NVIDIA's compute-sanitizer over a small scene: accesses out of bounds, races, barriers."""

import os
import shutil
import sys
from pathlib import Path

from benchmarks.gpu_kit import child

TOOLS = ("memcheck", "racecheck", "synccheck")
_FOUND_SOMETHING = 9
# Every tensor an allocation of its own: in torch's large blocks the tool sees no end of an array.
_APART = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def find_sanitizer() -> str | None:
    """The program, on the path or in a toolkit; None where there is none."""
    folders = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    folders.append("/usr/local/cuda")
    searched = os.pathsep.join(str(Path(folder) / "bin") for folder in folders if folder)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=searched)


def check_small_scene(program: str, tool: str, limit_s: float) -> tuple[bool | None, str]:
    """Whether the tool is content (None: it had no time or did not run), and what it said last."""
    command = [
        *(program, "--tool", tool, "--error-exitcode", str(_FOUND_SOMETHING)),
        *(sys.executable, "-m", "benchmarks.gpu", "--only", "small"),
    ]
    code, text = child.run(command, limit_s, _APART)
    return {0: True, _FOUND_SOMETHING: False}.get(-1 if code is None else code), text
