"""`splatscope doctor`: what works on this machine, and why what does not work does not."""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

import cuda_rasterizer
from engine.cli import print_json
from engine.cli_flags import EXIT_FAILURE
from engine.device import choose_backend, put_into_force
from engine.run.run_folder import user_runs_folder
from engine.settings import Settings
from engine.versions import program_version

_PACKAGES = ("torch", "numpy", "pillow", "safetensors", "PySide6_Essentials", "pyqtgraph")


def doctor(arguments: argparse.Namespace) -> int:
    """Print the report; 1 when nothing can be trained here or no run can be kept."""
    report = doctor_report()
    if arguments.json:
        print_json(report)
    else:
        for line in report_lines(report):
            print(line)  # noqa: T201
    if report["runs"]["problem"] is None:
        return 0
    print(f"splatscope: {report['runs']['problem']}", file=sys.stderr)  # noqa: T201
    return EXIT_FAILURE


def doctor_report() -> dict[str, Any]:
    """Everything that a bug report should tell, as plain JSON; names no file of the user's."""
    chosen = choose_backend(Settings())
    put_into_force(Settings())
    return {
        "version": program_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "torch_cpu": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "backend": chosen,
        "device": cuda_rasterizer.describe(chosen),
        "backends": cuda_rasterizer.backend_status(),
        "window": {
            "qt": importlib.util.find_spec("PySide6") is not None,
            "display": os.environ.get("DISPLAY"),
            "wayland_display": os.environ.get("WAYLAND_DISPLAY"),
        },
        "runs": _runs(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _runs() -> dict[str, Any]:
    """Whether runs can be kept in the user's folder, and how much room there is."""
    folder = user_runs_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    writable = os.access(existing, os.W_OK)
    problem = None if writable else f"{existing} cannot be written; name a run folder by --output."
    return {
        "folder": _without_home(folder),
        "free_gib": round(shutil.disk_usage(existing).free / 2**30, 1),
        "problem": problem,
    }


def _without_home(path: Path) -> str:
    try:
        return "~/" + path.relative_to(Path.home()).as_posix()
    except ValueError:
        return str(path)


def report_lines(report: dict[str, Any]) -> list[str]:
    """The report for people."""
    packages = ", ".join(f"{k} {v or '(not installed)'}" for k, v in report["packages"].items())
    lines = [
        f"splatscope {report['version']} on Python {report['python']}, {report['system']}",
        f"Packages: {packages}",
        f"Cores: {report['cores']}; torch uses {report['torch_cpu']}",
        f"GPU: {report['gpu'] or 'none that torch can use'}",
        f"Backend: {report['backend']} ({report['device']})",
    ]
    lines += [
        f"  {name}: {'works' if reason is None else reason}"
        for name, reason in report["backends"].items()
    ]
    window = report["window"]
    shown = window["display"] or window["wayland_display"] or "none"
    lines.append(f"Window: Qt {'found' if window['qt'] else 'not installed'}, display {shown}")
    runs = report["runs"]
    lines.append(f"Runs: {runs['folder']}, {runs['free_gib']} GiB free")
    return lines
