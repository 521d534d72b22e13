"""Fixtures for the CUDA kernels on the emulator, for every test folder, and what they report."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.workermanage import WorkerController

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.launches import use_launcher
from cuda_rasterizer.cuda.layout_header import LAYOUT_HEADER
from tests.cuda_emulator import coverage
from tests.cuda_emulator.building import build
from tests.cuda_emulator.launcher import EmulatedLauncher, Order

REPORT = pytest.StashKey[list[str]]()
LIBRARY = pytest.StashKey[coverage.CountingLibrary]()


@pytest.fixture(scope="session")
def emulator_cache(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled kernels stay from one session to the next, if pytest keeps anything."""
    if not pytestconfig.pluginmanager.has_plugin("cacheprovider"):
        return tmp_path_factory.mktemp("cuda_emulator")
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


COVERING = {
    "test_adam_groups",
    "test_cuda_binning",
    "test_cuda_blending",
    "test_cuda_splat_kernels",
    "test_cuda_training_kernels",
    "test_fast_backends_equal_reference",
    "test_step_guard",
}
"""Files whose tests, all together, reach every branch of the kernels."""
COUNTING = COVERING | {"test_kernel_coverage"}
"""Files that one process runs, because the counts are of a process."""


@pytest.fixture
def whole_emulator_suite(request: pytest.FixtureRequest) -> None:
    """Skip where this session runs but a part of the tests that reach every branch."""
    config = request.config
    chosen = config.option.keyword or config.option.markexpr not in ("", "emulator")
    files = {item.path.stem for item in request.session.items}
    if chosen or not files >= COVERING or any("::" in argument for argument in config.args):
        pytest.skip("only a part of the emulator's tests runs in this session")
    if request.session.testsfailed:
        pytest.skip("other tests failed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the count of what was reached behind everything that reaches it."""
    items.sort(key=lambda item: "whole_emulator_suite" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def kernel_report(pytestconfig: pytest.Config) -> list[str]:
    """Lines added here are printed at the end of the session."""
    return pytestconfig.stash.setdefault(REPORT, [])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands a worker's lines over to the process that prints."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["kernel_report"] = config.stash.get(REPORT, [])


@pytest.hookimpl(optionalhook=True)  # unknown with `-p no:xdist`
def pytest_testnodedown(node: WorkerController) -> None:
    """Takes a worker's lines; one that died has none."""
    lines = getattr(node, "workeroutput", {}).get("kernel_report", [])
    node.config.stash.setdefault(REPORT, []).extend(lines)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what tests reported about the kernels; with -v also what this session left out."""
    config = terminalreporter.config
    lines = list(config.stash.get(REPORT, []))
    if LIBRARY in config.stash and config.get_verbosity() > 0:
        reached = config.stash[LIBRARY].gather([sources.FOLDER, sources.INCLUDE_FOLDER])
        lines += [f"not reached on the emulator: {place}" for place in reached.missing()]
    if lines:
        terminalreporter.section("CUDA kernels")
        for line in lines:
            terminalreporter.write_line(line)
