"""Fixtures of the rasteriser tests: one torch thread, and each backend that can be had."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_torch_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _require(backend: str) -> None:
    """Skip without `backend`; fail instead where SPLATSCOPE_REQUIRE_NATIVE promises it."""
    status = importlib.import_module("cuda_rasterizer").backend_status()
    reason = status.get(backend, "unknown backend")
    if reason is None:
        return
    if os.environ.get("SPLATSCOPE_REQUIRE_NATIVE"):
        pytest.fail(f"SPLATSCOPE_REQUIRE_NATIVE is set but backend {backend} is absent: {reason}")
    pytest.skip(f"backend {backend} is absent: {reason}")


CUDA = pytest.param("cuda", marks=pytest.mark.emulator)


def _ready(request: pytest.FixtureRequest) -> str:
    """The backend that the fixture's parameter names; CUDA on the emulator."""
    name = str(request.param)
    if name == "cuda":
        request.getfixturevalue("emulated")
    else:
        _require(name)
    return name


@pytest.fixture(params=["reference", "cpu", CUDA])
def backend(request: pytest.FixtureRequest) -> str:
    """Name of a backend to render with; the test runs once for each."""
    return _ready(request)


@pytest.fixture(params=["cpu", CUDA])
def kernels(request: pytest.FixtureRequest) -> str:
    """Name of a backend of our own kernels; the test runs once for each."""
    return _ready(request)


@pytest.fixture
def fast_backend() -> str:
    """Name of the native CPU backend."""
    _require("cpu")
    return "cpu"


@pytest.fixture
def threads_as_before(fast_backend: str) -> Iterator[None]:
    """Behind the test the native CPU backend has as many threads as before it."""
    rasterizer = importlib.import_module("cuda_rasterizer")
    before = rasterizer.native.thread_count()
    yield
    rasterizer.set_threads(before)


INSTRUCTION_SETS = ("baseline", "avx2", "avx512")


@contextmanager
def only_where_had(name: str) -> Iterator[None]:
    """An instruction set for the time being; the test is skipped where the machine lacks it."""
    native = importlib.import_module("cuda_rasterizer.native")
    before = native.instruction_set()
    try:
        native.use_instruction_set(name)
    except native.RasterizerError:
        pytest.skip(f"this machine has no {name}")
    try:
        yield
    finally:
        native.use_instruction_set(before)


@pytest.fixture(params=INSTRUCTION_SETS)
def each_instruction_set(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test runs once with each instruction set of the CPU kernels."""
    with only_where_had(request.param):
        yield
