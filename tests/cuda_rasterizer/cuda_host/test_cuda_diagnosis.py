"""What `doctor` finds out about CUDA, where there is a GPU, a broken one, or none."""

import types

import pytest
import torch

from cuda_rasterizer import RasterizerError, native
from cuda_rasterizer.cuda import diagnosis, sources
from cuda_rasterizer.cuda.driver import Driver
from cuda_rasterizer.cuda.launcher import CudaLauncher
from cuda_rasterizer.cuda.launches import use_launcher
from cuda_rasterizer.cuda.nvrtc import Compiler, NvrtcUnavailableError
from tests.cuda_rasterizer.cuda_host.fake_cuda import FakeDriver, FakeNvrtc
from tests.cuda_rasterizer.cuda_host.scripted_launcher import ScriptedLauncher


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """As if there were one, whose compiler and driver do nothing; draws as the CPU does."""
    fake = types.SimpleNamespace(name="GeForce", major=8, minor=9, total_memory=24 * 2**30)
    driver, compiler = Driver(FakeDriver(), 0), Compiler(FakeNvrtc())
    launcher = CudaLauncher(driver, compiler, lambda: 0, tmp_path)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: fake)
    monkeypatch.setattr(diagnosis, "load_driver", lambda ordinal: driver)
    monkeypatch.setattr(diagnosis, "launcher_of_gpu", lambda ordinal: launcher)
    monkeypatch.setattr(diagnosis.nvrtc, "load_compiler", lambda: compiler)
    reasons = {"cpu": None, "cuda": None, "reference": None}
    monkeypatch.setattr(diagnosis, "backend_status", lambda: reasons)
    draw = diagnosis._trial
    cpu = torch.device("cpu")
    monkeypatch.setattr(diagnosis, "_trial", lambda backend, device: draw("reference", cpu))
    return reasons


@pytest.mark.usefixtures("gpu")
def test_a_gpu_is_named_with_all_that_was_found_and_tried():
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, of: int) -> None:
        told.append((what, done, of))

    found = diagnosis.diagnose(tell)
    assert found.problem is None
    assert found.gpus == (diagnosis.Gpu("GeForce", "sm_89", 24.0),)
    assert (found.torch_cuda, found.driver, found.nvrtc) == ("13.0", "13.2", "13.0")
    count = len(sources.modules())
    assert found.architecture == "sm_89"
    assert found.kernels.startswith(f"{count} of {count} compiled in ")
    assert len(told) == count + 1
    assert "equal backend 'cpu' within 0e+00" in found.trial
    again = diagnosis.diagnose(tell)
    assert again.kernels.startswith(f"all {count} from the cache")
    assert len(told) == count + 1


@pytest.mark.usefixtures("gpu")
def test_pictures_that_differ_are_the_problem(monkeypatch):
    drawn = iter(([torch.zeros(4)], [torch.ones(4)]))
    monkeypatch.setattr(diagnosis, "_trial", lambda backend, device: next(drawn))
    found = diagnosis.diagnose()
    assert "differ from backend 'cpu' by 1.0e+00" in found.problem
    assert found.trial is None
    assert found.kernels is not None


@pytest.mark.usefixtures("gpu")
def test_numbers_that_are_not_finite_are_the_problem(monkeypatch):
    drawn = iter(([torch.full((4,), float("nan"))], [torch.ones(4)]))
    monkeypatch.setattr(diagnosis, "_trial", lambda backend, device: next(drawn))
    assert "differ from backend" in diagnosis.diagnose().problem


def test_what_is_missing_is_the_problem_and_the_rest_is_told_all_the_same(gpu, monkeypatch):
    def refuse():
        raise NvrtcUnavailableError("NVRTC does not load")

    gpu["cuda"] = "NVRTC does not load"
    monkeypatch.setattr(diagnosis.nvrtc, "load_compiler", refuse)
    found = diagnosis.diagnose()
    assert found.problem == "NVRTC does not load"
    assert found.nvrtc is None
    assert found.gpus
    assert found.driver == "13.2"


@pytest.mark.usefixtures("gpu")
def test_a_driver_that_fails_is_no_end_of_the_report(monkeypatch):
    def refuse(ordinal):
        raise RasterizerError("cuInit failed")

    monkeypatch.setattr(diagnosis, "load_driver", refuse)
    assert diagnosis.diagnose().driver is None


def test_without_a_gpu_there_is_a_reason_and_nothing_else(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = diagnosis.diagnose()
    assert found.gpus == ()
    assert found.driver is None
    assert found.problem


@pytest.mark.skipif(not native.library_path().is_file(), reason="needs the CPU kernels")
def test_kernels_that_do_nothing_do_not_pass_the_trial():
    with use_launcher(ScriptedLauncher()):
        assert "differ from backend 'cpu'" in diagnosis.diagnose().problem
