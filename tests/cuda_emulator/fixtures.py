"""Fixtures for the CUDA kernels on the emulator, for every test folder, and what they report."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.launches import use_launcher
from cuda_rasterizer.cuda.layout_header import LAYOUT_HEADER
from tests.cuda_emulator import coverage
from tests.cuda_emulator.building import build
from tests.cuda_emulator.launcher import EmulatedLauncher, Order

REPORT = pytest.StashKey[list[str]]()
LIBRARY = pytest.StashKey[coverage.CountingLibrary]()


@pytest.fixture(scope="session")
def emulator_cache(pytestconfig: pytest.Config) -> Path:
    """Where compiled kernels stay from one session to the next."""
    cache = pytestconfig.cache
    assert cache is not None
    return Path(cache.mkdir("cuda_emulator"))


@pytest.fixture(scope="session")
def emulated_library(
    emulator_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
) -> coverage.CountingLibrary:
    """Every .cu file of the package, compiled with g++ for the emulator; counts what it runs."""
    library = build(
        sorted(sources.FOLDER.glob("*.cu")),
        [sources.FOLDER, sources.INCLUDE_FOLDER],
        emulator_cache,
        first_header=sources.headers()[LAYOUT_HEADER],
        coverage=True,
    )
    counting = coverage.CountingLibrary(library, tmp_path_factory.mktemp("counts"))
    pytestconfig.stash[LIBRARY] = counting
    return counting


@pytest.fixture
def emulated(
    emulated_library: coverage.CountingLibrary, request: pytest.FixtureRequest
) -> Iterator[EmulatedLauncher]:
    """Has backend "cuda" run on the CPU, blocks and warps in an order drawn from the test's name.

    So the whole suite runs shuffled, and each test at every repeat alike; `ordered` changes it.
    """
    launcher = EmulatedLauncher(emulated_library.loaded)
    name = request.node.nodeid.encode()
    with use_launcher(launcher), launcher.ordered(Order(seed=zlib.crc32(name))):
        yield launcher


@pytest.fixture(scope="session")
def kernel_report(pytestconfig: pytest.Config) -> list[str]:
    """Lines added here are printed at the end of the session."""
    return pytestconfig.stash.setdefault(REPORT, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what tests reported about the kernels, and what of them ran on the emulator."""
    stash = terminalreporter.config.stash
    lines = list(stash.get(REPORT, []))
    if LIBRARY in stash:
        reached = stash[LIBRARY].gather([sources.FOLDER, sources.INCLUDE_FOLDER])
        lines += ["reached on the emulator in this session", *reached.table()]
        if terminalreporter.config.get_verbosity() >= 0:
            lines += [f"not reached: {place}" for place in reached.missing()]
    if lines:
        terminalreporter.section("CUDA kernels")
        for line in lines:
            terminalreporter.write_line(line)
