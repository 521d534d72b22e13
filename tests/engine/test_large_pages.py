"""Large tensors lie in large pages, lest every step takes thousands of page faults."""

from pathlib import Path

import pytest

from tests.child_process import run_python

SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
TENSOR_MIB = 64
FILL = f"""
import resource
import engine
import torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
torch.empty({TENSOR_MIB} << 20, dtype=torch.uint8).fill_(1)
print(faults() - before)
"""


@pytest.mark.skipif(
    not SWITCH.is_file() or "[never]" in SWITCH.read_text(encoding="ascii"),
    reason="this system has no large pages",
)
def test_a_large_tensor_is_filled_without_a_page_fault_for_every_four_kilobytes() -> None:
    filled = run_python("-c", FILL)
    assert filled.returncode == 0, filled.stderr
    # 16,384 in small pages, some dozens in large ones; half of it, as memory may be in pieces.
    assert int(filled.stdout) < TENSOR_MIB * 256 // 2
