"""Readings of a GPU by a driver that is not there."""

import sys
import types
from typing import Any

import pytest
import torch

from engine import gpu_readings
from engine.gpu_readings import GpuReading, GpuReadings

GPU = torch.device("cuda", 1)


class NVMLError(Exception):
    pass


class Driver(types.ModuleType):
    """Stands for `pynvml`, with one GPU; `broken` makes it fail."""

    NVMLError = NVMLError

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.broken = False
        self.asked: list[bytes] = []
        self.reads = 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise NVMLError("Driver/library version mismatch")

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes) -> str:
        self.asked.append(uuid)
        return "handle"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        if self.broken:
            raise NVMLError("GPU is lost")
        self.reads += 1
        return types.SimpleNamespace(used=3_000, total=8_000)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return types.SimpleNamespace(gpu=87, memory=20)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    module = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    properties = types.SimpleNamespace(uuid="12-34")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    return module


def test_memory_and_load_are_those_of_the_gpu_that_torch_uses(driver):
    assert GpuReadings(GPU).read() == GpuReading(3_000, 8_000, 0.87)
    assert driver.asked == [b"GPU-12-34"]


def test_the_driver_is_asked_once_a_second_at_most(driver, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(gpu_readings.time, "monotonic", lambda: now[0])
    readings = GpuReadings(GPU)
    readings.read()
    now[0] += 0.5
    assert readings.read() is not None
    assert driver.reads == 1
    now[0] += 0.6
    readings.read()
    assert driver.reads == 2


def test_a_run_on_the_cpu_has_no_readings():
    readings = GpuReadings(torch.device("cpu"))
    assert readings.read() is None
    assert "nothing runs on a GPU" in readings.why_not


def test_without_the_package_there_are_none_and_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    readings = GpuReadings(GPU)
    assert readings.read() is None
    assert readings.why_not == "nvidia-ml-py is not installed"


def test_a_driver_that_fails_ends_the_readings_and_nothing_else(driver):
    readings = GpuReadings(GPU)
    driver.broken = True
    assert readings.read() is None
    assert "GPU is lost" in readings.why_not
    assert GpuReadings(GPU).read() is None
