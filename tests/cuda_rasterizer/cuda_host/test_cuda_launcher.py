"""Compiling and launching, with a compiler and a driver that only record what they are asked."""

import ctypes
import importlib
import threading
from typing import Any

import pytest
import torch

from cuda_rasterizer import RasterizerError, debug
from cuda_rasterizer.cuda import availability, driver, nvrtc, sources
from cuda_rasterizer.cuda.driver import Driver
from cuda_rasterizer.cuda.launcher import CudaLauncher, made_at_once
from cuda_rasterizer.cuda.nvrtc import CompilationError, Compiler
from tests.child_process import BUSY_SECONDS
from tests.cuda_rasterizer.cuda_host.fake_cuda import FakeDriver, FakeNvrtc

TEXT = """
#include "dialect.h"
KERNEL(first, DrawParams, 256) { p; }
KERNEL(second, DrawParams<float>, draw_threads) {}
"""


class DrawParams(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int64), ("scale", ctypes.c_double))


class OtherParams(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int64),)


@pytest.fixture(autouse=True)
def _two_kernels(monkeypatch):
    """As if these were all our sources."""
    monkeypatch.setattr(sources, "modules", lambda: {"draw": TEXT})
    header = "constexpr int side = 16;\nconstexpr int draw_threads = side * 8;\n"
    monkeypatch.setattr(sources, "headers", lambda: {"dialect.h": header})
    for found in (sources.kernels, sources.constants):
        found.cache_clear()
    yield
    for found in (sources.kernels, sources.constants):
        found.cache_clear()


@pytest.fixture
def fake_driver():
    return FakeDriver()


@pytest.fixture
def fake_nvrtc():
    return FakeNvrtc()


@pytest.fixture
def launcher(fake_driver, fake_nvrtc, tmp_path):
    return CudaLauncher(Driver(fake_driver, 0), Compiler(fake_nvrtc), lambda: 1234, tmp_path)


def test_kernels_and_constants_are_found_in_the_sources():
    first, second = sources.kernels().values()
    assert (first.name, first.module, first.parameters, first.max_threads) == (
        *("first", "draw", "DrawParams"),
        256,
    )
    assert second.max_threads == 128


def test_a_kernel_with_a_limit_that_nobody_knows_is_refused(monkeypatch):
    monkeypatch.setattr(sources, "modules", lambda: {"draw": "KERNEL(k, DrawParams, many) {}"})
    with pytest.raises(RasterizerError, match=r"kernel k in draw.cu is limited to many threads"):
        sources.kernels()


def test_one_name_for_two_kernels_is_refused(monkeypatch):
    text = "KERNEL(k, DrawParams, 32) {}"
    monkeypatch.setattr(sources, "modules", lambda: {"draw": text, "other": text})
    with pytest.raises(RasterizerError, match=r"kernel k stands in draw.cu and in other.cu"):
        sources.kernels()


def test_the_structure_goes_by_value_on_the_current_stream(launcher, fake_driver):
    params = DrawParams(count=7, scale=0.5)
    launcher.launch("first", params, grid=3, block=64, shared_bytes=100)
    (launch,) = fake_driver.launches
    assert launch == {
        "function": "first",
        "grid": 3,
        "block": 64,
        "shared": 100,
        "stream": 1234,
        "structure": ctypes.addressof(params),
    }
    assert fake_driver.waited == 0
    assert fake_driver.pushed == 0


def test_a_thread_without_our_context_gets_it_for_the_call_and_its_own_back(launcher, fake_driver):
    fake_driver.context = 0
    launcher.launch("first", DrawParams(), grid=1, block=32)
    assert fake_driver.launches
    assert fake_driver.context == 0
    assert fake_driver.pushed == 0


@pytest.mark.parametrize(
    ("kernel", "params", "grid", "block", "message"),
    [
        ("third", DrawParams(), 1, 32, "no kernel 'third'"),
        ("first", OtherParams(), 1, 32, "launched with OtherParams, 32 threads; expected Draw"),
        ("second", DrawParams(), 1, 256, "256 threads; expected DrawParams, 1 to 128 threads"),
        ("first", DrawParams(), 1, 33, "in multiples of 32"),
        ("first", DrawParams(), 0, 32, "over 0 blocks"),
        ("first", DrawParams(), 2**31, 32, "over 2147483648 blocks"),
    ],
)
def test_a_launch_that_does_not_fit_its_kernel_is_refused(
    launcher, fake_driver, kernel, params, grid, block, message
):
    with pytest.raises(RasterizerError, match=message):
        launcher.launch(kernel, params, grid=grid, block=block)
    assert not fake_driver.launches


def test_much_shared_memory_is_asked_for_once(launcher, fake_driver):
    for _ in range(2):
        launcher.launch("first", DrawParams(), grid=1, block=32, shared_bytes=40_000)
    assert fake_driver.allowed == []
    for _ in range(2):
        launcher.launch("first", DrawParams(), grid=1, block=32, shared_bytes=60_000)
    assert fake_driver.allowed == [60_000]
    with pytest.raises(RasterizerError, match="asks for 200000 bytes of shared memory"):
        launcher.launch("first", DrawParams(), grid=1, block=32, shared_bytes=200_000)


def test_every_module_is_compiled_once_with_progress_and_then_comes_from_the_cache(
    launcher, fake_driver, fake_nvrtc, tmp_path
):
    told: list[tuple[str, int, int]] = []

    def tell(*news: Any) -> None:
        told.append(news)

    assert launcher.cached_modules() == 0
    launcher.prepare(tell)
    compiled = [("compiling the kernels for sm_89", 0, 1), ("compiled draw for sm_89", 1, 1)]
    assert told == compiled
    assert fake_driver.loaded == [TEXT.encode()]
    again = CudaLauncher(Driver(fake_driver, 0), Compiler(fake_nvrtc), lambda: 0, tmp_path)
    assert again.cached_modules() == 1
    again.prepare(tell)
    assert told == compiled
    assert len(fake_nvrtc.compiled) == 1
    assert fake_driver.loaded == [TEXT.encode()] * 2


def test_with_the_debug_switch_tools_find_the_lines_of_the_sources(
    fake_driver, fake_nvrtc, tmp_path, monkeypatch
):
    made = Driver(fake_driver, 0), Compiler(fake_nvrtc), lambda: 0, tmp_path
    CudaLauncher(*made).prepare()
    monkeypatch.setattr(debug, "_is_on", True)
    CudaLauncher(*made).prepare()
    plain, debugged = (options for _, options in fake_nvrtc.compiled)
    assert debugged == [*plain, b"-lineinfo"]


def test_whoever_hears_of_the_progress_may_break_off(launcher, fake_driver):
    def cancel(what: str, done: int, count: int) -> None:
        raise InterruptedError(what)

    with pytest.raises(InterruptedError, match="compiling the kernels for sm_89"):
        launcher.prepare(cancel)
    assert not fake_driver.loaded


def test_whoever_gives_up_waits_for_no_compiler_and_neither_does_the_end_of_the_program():
    go_on, is_compiling = threading.Event(), threading.Event()
    compiling: list[threading.Thread] = []

    def make(module: str) -> bytes:
        if module == "quick":
            is_compiling.wait(BUSY_SECONDS)
            return b"made"
        compiling.append(threading.current_thread())
        is_compiling.set()
        go_on.wait(BUSY_SECONDS)
        return b"late"

    made = made_at_once(make, ["slow", "quick"], 2)
    assert next(made) == ("quick", b"made")
    made.close()  # with the slow one still at it
    (thread,) = compiling
    assert thread.is_alive()
    assert thread.daemon
    go_on.set()
    thread.join(BUSY_SECONDS)


def test_the_compiler_gets_all_headers_and_the_options_that_keep_decisions_alike(
    launcher, fake_nvrtc
):
    launcher.prepare()
    ((name, options),) = fake_nvrtc.compiled
    assert name == "draw.cu"
    assert options[:3] == [b"--gpu-architecture=sm_89", b"-std=c++17", b"-fmad=false"]
    assert list(fake_nvrtc.headers) == ["dialect.h"]
    assert fake_nvrtc.alive == 0


def test_a_source_that_does_not_compile_is_told_with_the_compilers_log(launcher, fake_nvrtc):
    fake_nvrtc.broken = "draw.cu(3): error: identifier p is undefined"
    with pytest.raises(CompilationError, match=r"draw.cu does not compile for sm_89.*\n.*\(3\): e"):
        launcher.prepare()
    assert fake_nvrtc.alive == 0


@pytest.mark.parametrize(
    ("capability", "target"),
    [((8, 9), "sm_89"), ((8, 7), "sm_86"), ((9, 0), "sm_90"), ((12, 0), "compute_90")],
)
def test_a_gpu_newer_than_the_compiler_gets_what_it_can_run(capability, target):
    compiler = Compiler(FakeNvrtc())
    assert compiler.target_for(capability) == target
    assert compiler.compile("draw", TEXT, target).image == (
        b"ptx" if target.startswith("compute") else TEXT.encode()
    )


def test_a_gpu_that_is_too_old_is_refused_by_name():
    with pytest.raises(RasterizerError, match="the GPU is sm_61; the kernels need sm_75 or newer"):
        Compiler(FakeNvrtc()).target_for((6, 1))


def test_a_failed_launch_names_the_kernel_and_how_to_find_the_fault(launcher, fake_driver):
    fake_driver.fails["cuLaunchKernel"] = 700
    with pytest.raises(RasterizerError, match=r"kernel first \(grid 1.*ILLEGAL_ADDRESS.*DEBUG=1"):
        launcher.launch("first", DrawParams(), grid=1, block=32)


def test_the_debug_switch_waits_for_every_launch_and_blames_the_right_one(
    launcher, fake_driver, monkeypatch
):
    monkeypatch.setattr(debug, "_is_on", True)
    launcher.launch("first", DrawParams(), grid=1, block=32)
    assert fake_driver.waited == 1
    fake_driver.fails["cuStreamSynchronize"] = 700
    with pytest.raises(RasterizerError, match=r"kernel second .*cuStreamSynchronize failed"):
        launcher.launch("second", DrawParams(), grid=1, block=32)


def test_memory_that_runs_out_is_torchs_own_error(launcher, fake_driver):
    fake_driver.fails["cuModuleLoadData"] = 2
    with pytest.raises(torch.OutOfMemoryError, match="cuModuleLoadData"):
        launcher.prepare()


def test_attributes_and_occupancy_are_those_of_the_driver(launcher, fake_driver):
    found = launcher.attributes("first")
    assert (found.registers, found.spilled_bytes, found.static_shared_bytes) == (40, 0, 1024)
    assert launcher.resident_blocks("first", 256) == 30
    assert Driver(fake_driver, 0).version == "13.2"


# Why the backend cannot be used: one reason each, with its fix.


@pytest.fixture
def reason():
    """A fresh answer."""
    caches = (
        *(availability._reason_of_torch, availability._reason_of_gpu),
        *(nvrtc.load_compiler, driver.load_driver),
    )
    for cache in caches:
        cache.cache_clear()
    yield availability.unavailable_reason
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def gpu_that_torch_sees(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


@pytest.fixture
def bindings(monkeypatch):
    """What importing a part of cuda-bindings gives; an exception is raised."""
    parts = {"cuda.bindings.nvrtc": FakeNvrtc(), "cuda.bindings.driver": FakeDriver()}
    true_import = importlib.import_module

    def import_part(name: str, package: str | None = None):
        part = parts.get(name)
        if part is None:
            return true_import(name, package)
        if isinstance(part, Exception):
            raise part
        return part

    monkeypatch.setattr(importlib, "import_module", import_part)
    return parts


def test_a_torch_without_cuda_is_the_reason(reason, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "is built without CUDA; install a build" in reason()


def test_no_driver_is_the_reason_in_torchs_own_words(reason, monkeypatch):
    def refuse() -> None:
        raise RuntimeError("Found no NVIDIA driver on your system.\nPlease check")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", refuse)
    assert reason() == (
        "torch finds no GPU that it can use: Found no NVIDIA driver on your system."
    )


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_absent_bindings_are_the_reason(reason, bindings):
    bindings["cuda.bindings.nvrtc"] = ModuleNotFoundError("No module named 'cuda'")
    assert "No module named 'cuda'" in reason()
    assert "pip install 'splatscope[cuda]'" in reason()


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_an_absent_nvrtc_is_the_reason(reason, bindings, monkeypatch):
    def refuse():
        raise RuntimeError("Failure finding libnvrtc.so")

    monkeypatch.setattr(bindings["cuda.bindings.nvrtc"], "nvrtcVersion", refuse)
    assert (
        "NVRTC does not load (Failure finding libnvrtc.so); install nvidia-cuda-nvrtc" in reason()
    )


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_an_absent_driver_library_is_the_reason(reason, bindings, monkeypatch):
    def refuse(flags):
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    monkeypatch.setattr(bindings["cuda.bindings.driver"], "cuInit", refuse)
    assert "the NVIDIA driver does not load (Failed to dlopen libcuda.so.1)" in reason()


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_an_old_gpu_is_the_reason(reason, bindings):
    bindings["cuda.bindings.driver"] = FakeDriver(capability=(6, 1))
    assert "the GPU is sm_61" in reason()


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_a_driver_older_than_the_compiler_is_the_reason(reason, bindings, monkeypatch):
    old = bindings["cuda.bindings.driver"]
    monkeypatch.setattr(old, "cuDriverGetVersion", lambda: (0, 12040))
    assert reason() == (
        "the driver knows CUDA 12.4 and NVRTC is 13.0; update the driver, or install "
        "cuda-bindings and NVRTC of major version 12"
    )


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_each_gpu_is_judged_by_itself(reason, bindings):
    fake = bindings["cuda.bindings.driver"]
    fake.device_of_ordinal[0] = {**fake.device, "major": 6, "minor": 1}
    assert "the GPU is sm_61" in reason()
    assert reason(1) is None


@pytest.mark.usefixtures("gpu_that_torch_sees")
def test_memory_that_is_short_at_the_moment_is_no_lasting_reason(reason, bindings):
    bindings["cuda.bindings.driver"].fails["cuDevicePrimaryCtxRetain"] = 2
    assert "OUT_OF_MEMORY" in reason()
    bindings["cuda.bindings.driver"].fails.clear()
    assert reason() is None


@pytest.mark.usefixtures("gpu_that_torch_sees", "bindings")
def test_with_everything_there_is_no_reason(reason):
    assert reason() is None
