"""`splatscope doctor`: what works on this machine, and why what does not work does not."""

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import cuda_rasterizer
from cuda_rasterizer.cuda.diagnosis import diagnose
from engine.cli import print_json
from engine.cli_flags import EXIT_FAILURE
from engine.device import choose_backend, put_into_force
from engine.gpu_readings import GpuReadings
from engine.run.run_folder import user_runs_folder
from engine.settings import Settings
from engine.versions import program_version
from engine.wording import memory

_PACKAGES = (
    *("torch", "numpy", "pillow", "safetensors", "PySide6_Essentials"),
    "cuda-bindings",
)


def doctor(arguments: argparse.Namespace) -> int:
    """Print the report; 1 when no run can be kept, or a GPU that should work does not."""
    report = doctor_report(_tell_progress)
    if arguments.json:
        print_json(report)
    else:
        for line in report_lines(report):
            print(line)  # noqa: T201
    problems = [report["runs"]["problem"]]
    if report["backends"]["cuda"] is None:
        problems.append(report["cuda"]["problem"])
    for problem in filter(None, problems):
        _tell(problem)
    return EXIT_FAILURE if any(problems) else 0


def _tell(sentence: str) -> None:
    print(f"splatscope: {sentence}", file=sys.stderr)  # noqa: T201


def _tell_progress(what: str, done: int, count: int) -> None:
    _tell(f"{what} ({done} of {count})")


def doctor_report(progress: Callable[[str, int, int], None] | None = None) -> dict[str, Any]:
    """Everything that a bug report should tell, as plain JSON; names no file of the user's.

    Where there is a GPU its kernels are compiled, and `progress` is told so.
    """
    chosen = choose_backend(Settings())
    put_into_force(Settings())
    cuda = dataclasses.asdict(diagnose(progress))
    return {
        "version": program_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "torch_cpu": torch.backends.cpu.get_cpu_capability(),
        "backend": chosen,
        "device": cuda_rasterizer.describe(chosen),
        "backends": cuda_rasterizer.backend_status(),
        "cuda": cuda,
        "gpu_readings": [_readings(index) for index in range(len(cuda["gpus"]))],
        "window": {
            "qt": importlib.util.find_spec("PySide6") is not None,
            "display": os.environ.get("DISPLAY"),
            "wayland_display": os.environ.get("WAYLAND_DISPLAY"),
        },
        "runs": _runs(),
    }


def _readings(index: int) -> str:
    """What the window will show of a GPU, or why it cannot."""
    readings = GpuReadings(torch.device("cuda", index))
    found = readings.read()
    if found is None:
        return readings.why_not
    used = f"{memory(found.used_bytes)} of {memory(found.total_bytes)}"
    return f"{used} in use, {found.utilisation:.0%} busy"


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
        f"Backend: {report['backend']} ({report['device']})",
    ]
    lines += [
        f"  {name}: {'works' if reason is None else reason}"
        for name, reason in report["backends"].items()
    ]
    lines += _cuda_lines(report["cuda"], report["backends"]["cuda"])
    lines += [f"Readings of GPU {i}: {text}" for i, text in enumerate(report["gpu_readings"])]
    window = report["window"]
    shown = window["display"] or window["wayland_display"] or "none"
    lines.append(f"Window: Qt {'found' if window['qt'] else 'not installed'}, display {shown}")
    runs = report["runs"]
    lines.append(f"Runs: {runs['folder']}, {runs['free_gib']} GiB free")
    return lines


def _cuda_lines(cuda: dict[str, Any], reason: str | None) -> list[str]:
    """What CUDA needs, part by part, and what is wrong beside the `reason` already told."""
    lines = [
        f"GPU {index}: {gpu['name']}, {gpu['architecture']}, {gpu['memory_gib']} GiB"
        for index, gpu in enumerate(cuda["gpus"])
    ]
    lines = lines or ["GPU: none that torch can use"]
    lines.append(
        f"CUDA: torch {_or(cuda['torch_cuda'], 'without it')}, driver {_or(cuda['driver'])}, "
        f"NVRTC {_or(cuda['nvrtc'])}"
    )
    if cuda["kernels"] is not None:
        target = f" for {cuda['architecture']}" if cuda["architecture"] else ""
        lines.append(f"  kernels{target}: {cuda['kernels']}")
    if cuda["trial"] is not None:
        lines.append(f"  trial: {cuda['trial']}")
    if cuda["problem"] not in (None, reason):
        lines.append(f"  problem: {cuda['problem']}")
    return lines


def _or(found: str | None, otherwise: str = "not found") -> str:
    return otherwise if found is None else found
