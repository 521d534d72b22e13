"""`make install` does nothing when nothing changed, and something when a source did."""

import os
import shutil
from pathlib import Path

import pytest

from tests.child_process import run_program

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A checkout whose stamps say that everything is installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "CMakeLists.txt"):
        shutil.copy2(ROOT / name, tmp_path / name)
    for name in ("scripts", "cuda_rasterizer"):
        unwanted = shutil.ignore_patterns("__pycache__", "native_lib", "make_demo_scene")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unwanted)
    (tmp_path / ".venv").mkdir()
    for stamp in ("packages.stamp", "kernels.stamp"):
        (tmp_path / ".venv" / stamp).touch()
    return tmp_path


def is_up_to_date(folder: Path) -> bool:
    asked = run_program("make", "--question", "install", folder=folder)
    assert asked.returncode in (0, 1), asked.stderr
    return asked.returncode == 0


def change(path: Path) -> None:
    later = path.stat().st_mtime + 1e6
    os.utime(path, (later, later))


def test_it_does_nothing_when_nothing_changed(installed):
    assert is_up_to_date(installed)


@pytest.mark.parametrize(
    "name",
    [
        "pyproject.toml",
        "constraints.txt",
        "CMakeLists.txt",
        "cuda_rasterizer/cpu/blend.cpp",
        "cuda_rasterizer/include/gaussian_math.h",
    ],
)
def test_it_acts_when_a_source_changed(installed, name):
    change(installed / name)
    assert not is_up_to_date(installed)
