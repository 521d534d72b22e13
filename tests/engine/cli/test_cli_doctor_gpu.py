"""`doctor` and `--backend cuda` on machines with a GPU, with a broken one, and without."""

import dataclasses

import pytest
import torch

import cuda_rasterizer
from cuda_rasterizer.cuda.diagnosis import CudaDiagnosis, Gpu
from engine import cli, doctor
from engine.gpu_readings import GpuReading
from tests.engine.cli.commands import Capture, failing, strict

WORKS = CudaDiagnosis(
    torch_cuda="13.0",
    driver="13.2",
    gpus=(Gpu("GeForce", "sm_89", 24.0),),
    nvrtc="13.0.88",
    architecture="sm_89",
    kernels="all 9 from the cache in 0.1 s",
    trial="a small picture and its gradients equal backend 'cpu' within 1e-07",
    problem=None,
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, CudaDiagnosis]:
    """What the diagnosis says, on a machine whose GPU works."""
    said = {"diagnosis": WORKS}
    status = {"reference": None, "cpu": None, "cuda": None}
    monkeypatch.setattr(doctor, "diagnose", lambda progress: said["diagnosis"])
    monkeypatch.setattr(doctor, "choose_backend", lambda settings: "reference")
    monkeypatch.setattr(cuda_rasterizer, "backend_status", lambda: status)
    monkeypatch.setattr(doctor, "GpuReadings", Readings)
    return said


class Readings:
    """Stands for a driver that tells memory and load."""

    why_not = ""

    def __init__(self, device: torch.device) -> None:
        assert device == torch.device("cuda", 0)

    def read(self) -> GpuReading | None:
        return GpuReading(3_000_000_000, 24_000_000_000, 0.87)


@pytest.mark.usefixtures("found")
def test_doctor_tells_every_part_of_a_gpu_that_works(capsys: Capture) -> None:
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "GPU 0: GeForce, sm_89, 24.0 GiB" in text
    assert "CUDA: torch 13.0, driver 13.2, NVRTC 13.0.88" in text
    assert "kernels for sm_89: all 9 from the cache in 0.1 s" in text
    assert "trial: a small picture and its gradients equal backend 'cpu'" in text
    assert "Readings of GPU 0: 3.0 GB of 24.0 GB in use, 87% busy" in text
    assert "problem" not in text
    assert cli.main(["doctor", "--json"]) == 0
    assert strict(capsys.readouterr().out)["cuda"]["gpus"][0]["name"] == "GeForce"


def test_doctor_leaves_with_1_when_a_gpu_that_should_work_does_not(
    capsys: Capture, found: dict[str, CudaDiagnosis]
) -> None:
    found["diagnosis"] = dataclasses.replace(WORKS, trial=None, problem="the pictures differ")
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr()
    assert "problem: the pictures differ" in said.out
    assert "splatscope: the pictures differ" in said.err


def test_doctor_says_what_is_missing_once(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, found: dict[str, CudaDiagnosis]
) -> None:
    reason = "cuda-bindings cannot be imported"
    status = {"reference": None, "cpu": None, "cuda": reason}
    monkeypatch.setattr(cuda_rasterizer, "backend_status", lambda: status)
    found["diagnosis"] = CudaDiagnosis(None, None, (), None, None, None, None, reason)
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert text.count(reason) == 1
    assert "GPU: none that torch can use" in text
    assert "CUDA: torch without it, driver not found, NVRTC not found" in text


def test_asking_for_cuda_without_one_says_why(capsys: Capture, tmp_path) -> None:
    reason = cuda_rasterizer.backend_status()["cuda"]
    if reason is None:
        pytest.skip("this machine has a GPU that works")
    flags = ["train", "demo", "--output", str(tmp_path / "run"), "--backend", "cuda"]
    said = failing(capsys, flags, 1)
    assert f"backend 'cuda' cannot be used here: {reason}" in said
