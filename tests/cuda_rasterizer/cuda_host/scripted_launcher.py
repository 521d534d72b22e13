"""A launcher that runs nothing, but for the counts that the host reads: for tests of host code."""

import ctypes
from typing import Any

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.launcher import check_launch


class ScriptedLauncher:
    """Takes tensors of the CPU; every picture has `instances` instances."""

    device_type = "cpu"

    def __init__(self, instances: int = 0) -> None:
        self.instances = instances
        self.launches: list[tuple[str, dict[str, Any], int]] = []

    def launch(
        self, kernel: str, params: ctypes.Structure, *, grid: int, block: int, shared_bytes: int = 0
    ) -> None:
        check_launch(sources.kernels()[kernel], params, grid, block)
        fields = {name: getattr(params, name) for name, *_ in params._fields_}
        self.launches.append((kernel, fields, grid))
        if kernel == "scan_block_sums":
            ctypes.c_int64.from_address(fields["total"]).value = self.instances

    def names(self) -> list[str]:
        """Kernels in the order of their launches."""
        return [name for name, _, _ in self.launches]

    def fields(self, kernel: str) -> list[dict[str, Any]]:
        """Parameters of every launch of one kernel."""
        return [fields for name, fields, _ in self.launches if name == kernel]
