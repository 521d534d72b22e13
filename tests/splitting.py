"""How workers share the suite: `pytest -n 2`, which is what `make test` does.

The tests of a file stay with one worker, because they share windows, engines and runs. The files
that reach every branch of the CUDA kernels stay together, because each process counts its own.
What takes long is begun first, so that the workers end at about the same time.
"""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.cuda_emulator.fixtures import COUNTING

LONG = ("slow", "gl")
"""Markers of what takes long, the longest first."""


class WholeFiles(LoadScopeScheduling):
    """Hands out files, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "the branches of the kernels" if Path(file).stem in COUNTING else file


@pytest.hookimpl(optionalhook=True)  # unknown with `-p no:xdist`
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> WholeFiles | None:
    """Take the place of `--dist load`, which is what `-n` means."""
    if config.option.dist != "load":
        return None
    config.option.loadscopereorder = False
    return WholeFiles(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files with long tests first where workers share the suite."""
    if not hasattr(config, "workerinput"):
        return
    ranks: dict[Path, int] = {}
    for item in items:
        rank = next((n for n, name in enumerate(LONG) if item.get_closest_marker(name)), len(LONG))
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])
