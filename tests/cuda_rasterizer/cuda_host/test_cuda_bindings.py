"""The real cuda-bindings and the real NVRTC, over a driver library that writes launches down."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.child_process import BUSY_SECONDS

pytestmark = pytest.mark.nvrtc

FOLDER = Path(__file__).parent
PROJECT = FOLDER.parents[2]
PROGRAM = """
import sys
from pathlib import Path
from cuda_rasterizer import RasterizerError
from cuda_rasterizer.cuda.driver import load_driver
from cuda_rasterizer.cuda.launcher import CudaLauncher
from cuda_rasterizer.cuda.nvrtc import load_compiler
from cuda_rasterizer.native_structs import Rgba8Params

driver = load_driver(0)
launcher = CudaLauncher(driver, load_compiler(), lambda: 1234, Path(sys.argv[1]))
params = Rgba8Params(color=0x123456789A, rgba=0x77, pixels=5000)
launcher.launch("to_rgba8", params, grid=5, block=256, shared_bytes=64)
print(driver.version, launcher.target, launcher.attributes("to_rgba8").registers)
print(bytes(params).hex())
try:
    driver.load_module(b"no image at all")
except RasterizerError as error:
    print(error)
"""


@pytest.fixture
def stub(tmp_path) -> Path:
    """A folder with the library under the name of the driver's."""
    compiler = os.environ.get("CXX", "g++")
    library = tmp_path / "driver" / "libcuda.so.1"
    library.parent.mkdir()
    flags = ["-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    source = str(FOLDER / "stub_driver.cpp")
    subprocess.run([compiler, *flags, source, "-o", str(library)], check=True)
    return library.parent


def test_a_launch_reaches_the_driver_with_its_structure_by_value(stub, tmp_path):
    pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    log = tmp_path / "launches"
    size = 24  # of Rgba8Params
    variables = {
        "LD_LIBRARY_PATH": str(stub),
        "STUB_DRIVER_LOG": str(log),
        "STUB_DRIVER_BYTES": str(size),
        "PYTHONPATH": str(PROJECT),
    }
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "cache")],
        env=os.environ | variables,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=BUSY_SECONDS,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    found, structure, refusal = said.stdout.splitlines()
    # the stub gives the number of the attribute that was asked for; 4 stands for registers
    assert found == "13.2 sm_90 4"
    assert "CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid" in refusal
    *launch, bytes_there = log.read_text().split()
    assert " ".join(launch) == "to_rgba8 5 1 1 256 1 1 64 1234 0 1"
    assert len(structure) == 2 * size
    assert bytes_there == structure
