"""Programs run in a process of their own, to their end."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
BUSY_SECONDS = 250  # for what takes a few: the machine may have ten other things to do
_DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def run_program(
    *command: str | Path,
    folder: Path = PROJECT,
    variables: Mapping[str, str] | None = None,
    seconds: float = BUSY_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run a program in `folder`; what it said and its exit code.

    `variables` None leaves the environment as it is. subprocess.TimeoutExpired after `seconds`.
    """
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=None if variables is None else dict(variables),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def run_python(
    *arguments: str | Path,
    variables: Mapping[str, str] | None = None,
    seconds: float = BUSY_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run this Python in the checkout."""
    return run_program(sys.executable, *arguments, variables=variables, seconds=seconds)


def interrupted_on_import(module: str, *arguments: str | Path) -> list[str]:
    """A command that runs the program, which sends itself Ctrl+C when it imports `module`.

    From outside nobody can tell how far a program on a busy machine has come.
    """
    program = (
        "import os, signal, sys, app.__main__\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.exit(app.__main__.main())\n"
    )
    return [sys.executable, "-c", program, *map(str, arguments)]


def without_display(**changes: str) -> dict[str, str]:
    """The environment without a display, then `changes`."""
    return {key: value for key, value in os.environ.items() if key not in _DISPLAY} | changes
