"""What the driver says of a GPU: memory and load, by nvidia-ml-py where that is installed.

The package is optional; without it, or without a driver, there are no readings and nothing fails.
"""

import dataclasses
import importlib
import time
from types import ModuleType

import torch

PACKAGE = "nvidia-ml-py"
FRESH_SECONDS = 1.0  # a reading is good for so long: the driver's own are no fresher


@dataclasses.dataclass(frozen=True)
class GpuReading:
    """One look at a GPU: memory of all programs together, and how busy it was lately."""

    used_bytes: int
    total_bytes: int
    utilisation: float  # 0 to 1


class GpuReadings:
    """Readings of the GPU that torch calls `device`; `why_not` says why there are none."""

    def __init__(self, device: torch.device) -> None:
        self.why_not = ""
        self._nvml: ModuleType | None = None
        self._last: GpuReading | None = None
        self._read_at = float("-inf")
        if device.type != "cuda":
            self.why_not = "nothing runs on a GPU"
            return
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            self.why_not = f"{PACKAGE} is not installed"
            return
        try:
            nvml.nvmlInit()
            self._handle = nvml.nvmlDeviceGetHandleByUUID(_uuid(device).encode())
        except nvml.NVMLError as error:
            self.why_not = f"the driver gives no readings: {error}"
            return
        self._nvml = nvml

    def read(self) -> GpuReading | None:
        """The state of at most a second ago, or None where it is not to be had."""
        nvml, now = self._nvml, time.monotonic()
        if nvml is None or now - self._read_at < FRESH_SECONDS:
            return self._last
        self._read_at = now
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(self._handle)
            rates = nvml.nvmlDeviceGetUtilizationRates(self._handle)
        except nvml.NVMLError as error:
            self.why_not = f"the driver gives no readings: {error}"
            self._nvml = self._last = None
            return None
        self._last = GpuReading(int(memory.used), int(memory.total), rates.gpu / 100)
        return self._last


def _uuid(device: torch.device) -> str:
    """The name by which the driver knows it; torch's numbers may be others than the driver's."""
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    return uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
