"""constraints.txt pins everything that an install brings, and nothing of this machine."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[-_.]+")


def normal(name: str) -> str:
    return NAME.sub("-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "one NAME==VERSION a line"
    return {normal(name): pinned for name, pinned in (line.split("==") for line in lines)}


def needed_by(requirements: list[str]) -> set[str]:
    """Names of what the requirements bring on this platform, all the way down."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = normal(requirement.name)
        marker = requirement.marker
        if name in found or (marker and not marker.evaluate({"extra": ""})):
            continue
        try:
            waiting += [Requirement(text) for text in metadata.requires(name) or []]
        except metadata.PackageNotFoundError:
            continue  # torch's GPU libraries, on a machine with its CPU build
        found.add(name)
    return found


def test_every_installed_dependency_is_pinned_at_its_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = pins()
    for name in sorted(needed_by(wanted) - {"setuptools", "pip"}):
        assert name in pinned, f"{name} {metadata.version(name)} is not in constraints.txt"
        assert metadata.version(name).split("+")[0] == pinned[name]
