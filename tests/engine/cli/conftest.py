"""A scene and a finished run that the tests of all commands share; nobody changes them."""

from pathlib import Path

import pytest

from engine import cli
from tests.engine.cli.commands import SHORT
from tests.engine.driving import write_tiny_scene


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"), photos=10)


@pytest.fixture(scope="session")
def run(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six steps."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    code = cli.main(["train", str(scene), "--output", str(folder), *SHORT, "--sh-interval", "3"])
    assert code == 0
    return folder
