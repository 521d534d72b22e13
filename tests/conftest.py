"""Fixtures that several test folders share."""

import os
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["tests.cuda_emulator.fixtures", "tests.splitting"]

# the same examples each time and no limit to any of them: others may keep the machine busy
hypothesis.settings.register_profile(
    "shared machine",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real scenes; tests that need it are skipped where it is absent."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("SPLATSCOPE_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real scenes at {folder}; set SPLATSCOPE_DATA to their folder")
    return folder
