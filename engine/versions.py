"""Versions of the program and of what its results depend on."""

import importlib.metadata
import tomllib
from pathlib import Path

_RECORDED_PACKAGES = ("torch", "numpy", "safetensors")


def program_version() -> str:
    """The version of this program; that of the checkout when it is not installed."""
    try:
        return importlib.metadata.version("splatscope")
    except importlib.metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parent.parent / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def recorded_versions() -> dict[str, str]:
    """What a repeat of a run needs to know: the program, its libraries, torch's CPU paths."""
    import torch

    found = {name: importlib.metadata.version(name) for name in _RECORDED_PACKAGES}
    cpu = torch.backends.cpu.get_cpu_capability()
    return {"splatscope": program_version(), **found, "torch_cpu": cpu}
