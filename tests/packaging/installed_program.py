"""A wheel of this checkout, and a venv that holds it alone.

The venv borrows the dependencies of the running Python by a .pth line, so that nothing is
downloaded; what is installed there in editable form does not follow, because the hooks of a
borrowed folder are not run.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.child_process import BUSY_SECONDS, PROJECT, run_program, run_python, without_display
from tests.cores import own_cores

SOURCES = ("app", "engine", "cuda_rasterizer", "resources")
FILES = ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", ".gitignore")
NATIVE = "SPLATSCOPE_REQUIRE_NATIVE"


def hasty_compiler(folder: Path) -> str:
    """A C++ compiler that optimises nothing, which saves two thirds of the time.

    That a wheel holds the kernels is seen as well; `make install` compiles them in earnest.
    """
    program = folder / "hasty-compiler"
    program.write_text(f'#!/bin/sh\nexec "{os.environ.get("CXX", "c++")}" "$@" -O0\n')
    program.chmod(0o755)
    return str(program)


def build_wheel(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel of a copy of the sources into `folder/wheel`."""
    copy = folder / "sources"
    unwanted = shutil.ignore_patterns("__pycache__", "native_lib")
    for name in SOURCES:
        shutil.copytree(PROJECT / name, copy / name, ignore=unwanted)
    for name in FILES:
        shutil.copy(PROJECT / name, copy / name)
    options = ["--no-deps", "--no-build-isolation", "--quiet", "-w", str(folder / "wheel")]
    inherited = {key: value for key, value in os.environ.items() if key != NATIVE}
    scripts = sysconfig.get_path("scripts")  # cmake and ninja lie there
    inherited["PATH"] = f"{scripts}{os.pathsep}{inherited.get('PATH', '')}"
    inherited["CMAKE_BUILD_PARALLEL_LEVEL"] = str(own_cores())
    command = ("-m", "pip", "wheel", *options, copy)
    return run_python(*command, variables=inherited | variables, seconds=900)


def install_in_empty_venv(folder: Path) -> Path:
    """Install the wheel of `folder/wheel` into a new venv; the folder of its programs."""
    (wheel,) = (folder / "wheel").glob("*.whl")
    place = folder / "venv"
    venv.create(place, with_pip=False)
    programs = place / ("Scripts" if sys.platform == "win32" else "bin")
    python = programs / "python"
    options = ["--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)],
        check=True,
        timeout=BUSY_SECONDS,
    )
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    borrowed = Path(own.stdout.strip()) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return programs


def run_installed(
    programs: Path, program: str, *arguments: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program of the venv in `folder`, away from the checkout and without a display."""
    variables = without_display()
    variables.pop("PYTHONPATH", None)
    command = (programs / program, *arguments)
    return run_program(*command, folder=folder, variables=variables, seconds=BUSY_SECONDS)
