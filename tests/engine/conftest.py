"""A tiny scene, and an engine to open it with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.driving import Driver, running_engine, write_tiny_scene


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 photos of 32x24 pixels round 40 points; nobody writes there."""
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def driver() -> Iterator[Driver]:
    """A running engine without a scene."""
    with running_engine() as driver:
        yield driver
