"""`make demo` where no window can be opened: it says why, trains all the same, and leaves results.

Each case runs the real program in a process of its own, because Qt's answer to a dead display or a
missing library is to abort the process that asked.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import PySide6
import pytest

from tests.child_process import PROJECT, run_program, run_python, without_display

pytestmark = pytest.mark.slow
DEAD_DISPLAY = ":987"


def run_demo(folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    flags = ["--iterations", "3", "--output", str(folder), "--evaluation-interval", "0"]
    return run_python("-m", "app.demo", *flags, variables=variables)


def assert_it_trained(folder: Path, result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stderr
    last = result.stdout.strip().splitlines()[-1]
    assert re.search(r"PSNR \d+\.\d\d dB", last), f"the last line should be the PSNR: {last!r}"
    assert "Training" in result.stderr, "there should be a progress bar"
    assert len(list((folder / "exports").glob("*.ply"))) == 1
    assert len(list((folder / "checkpoints").glob("*.safetensors"))) >= 1
    assert len(list((folder / "views").glob("*.png"))) >= 2


def test_without_a_display_the_demo_says_so_and_trains(tmp_path):
    result = run_demo(tmp_path / "run", without_display())
    assert "No display is set" in result.stderr
    assert "without a window" in result.stderr
    assert_it_trained(tmp_path / "run", result)


def test_on_a_dead_display_the_demo_names_it_and_trains(tmp_path):
    result = run_demo(tmp_path / "run", without_display(DISPLAY=DEAD_DISPLAY))
    assert f"The display {DEAD_DISPLAY} cannot be reached" in result.stderr
    assert_it_trained(tmp_path / "run", result)


@pytest.mark.skipif(sys.platform != "linux", reason="xcb is the X11 plugin of Linux")
def test_with_a_missing_xcb_library_the_demo_names_it_and_trains(tmp_path):
    # A copy of Qt's xcb library that asks for a libxcb-cursor which no system has.
    (real,) = Path(PySide6.__file__).parent.rglob("libQt6XcbQpa.so.6")
    wanting = real.read_bytes().replace(b"libxcb-cursor.so.0", b"libxcb-absent.so.0")
    assert wanting != real.read_bytes(), "Qt's xcb library no longer asks for libxcb-cursor"
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / real.name).write_bytes(wanting)
    variables = without_display(
        DISPLAY=os.environ.get("DISPLAY", DEAD_DISPLAY),
        LD_LIBRARY_PATH=str(tmp_path / "libraries"),
    )
    result = run_demo(tmp_path / "run", variables)
    assert "needs the system library libxcb-absent.so.0, which is missing" in result.stderr
    assert_it_trained(tmp_path / "run", result)


def test_install_says_what_it_is_at_before_each_group_of_packages(tmp_path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(PROJECT / "scripts" / "install.sh", tmp_path / "scripts")
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\ncase "$2" in\n'
        'venv) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;\n'
        'pip) echo "pip: $*" ;;\nesac\n'
    )
    python.chmod(0o755)
    result = run_program(
        "scripts/install.sh", folder=tmp_path, variables=without_display(PYTHON=str(python))
    )
    assert result.returncode == 0, result.stderr
    _, *lines = result.stdout.splitlines()
    said, done = lines[::2], lines[1::2]
    assert all(line.startswith("Installing ") for line in said)
    assert all(line.startswith("pip: -m pip install --quiet") for line in done)
    assert ["torch" in line for line in done] == [False, True, False, False]
    assert done[-1].endswith("-e .[dev]")


def test_without_the_venv_module_install_names_the_package(tmp_path):
    for name in ("scripts/install.sh", "constraints.txt", "pyproject.toml", "Makefile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    python = tmp_path / "python-without-venv"
    python.write_text(
        '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1 ;; esac\n' + f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    result = run_program(
        *("make", "demo"), folder=tmp_path, variables=without_display(PYTHON=str(python))
    )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert result.returncode != 0
    assert f"sudo apt install python{version}-venv" in result.stderr
    assert not (tmp_path / ".venv").exists()
