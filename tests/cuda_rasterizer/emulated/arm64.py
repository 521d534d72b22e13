"""64-bit ARM: the library cross-compiled, run under qemu."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.child_process import BUSY_SECONDS
from tests.cuda_rasterizer.emulated.machine import FOLDER, ROOT, Machine, require, run

BUILD = ROOT / "build" / "emulated_arm64"  # build/arm64 may remember where the toolchain file was
COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")


class Pipes:
    """`replay` as a process here, through its standard input and output."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout

    def send(self, content: bytes) -> None:
        """As `Wire.send`."""
        self._input.write(content)
        self._input.flush()

    def receive(self, size: int) -> bytes:
        """As `Wire.receive`."""
        return self._output.read(size)

    def close(self) -> int:
        """Ends the process; its exit code."""
        self._input.close()
        code = self.process.wait(timeout=BUSY_SECONDS)
        self._output.close()
        return code


@contextmanager
def start() -> Iterator[Machine]:
    """Compiles what is not up to date and starts it; skips where a tool is missing."""
    require(COMPILER, EMULATOR[0], "cmake", "ninja", command="make test-arm64")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={FOLDER / 'arm64.cmake'}"
    run("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", toolchain)
    run("cmake", "--build", BUILD)
    warnings = ("-Wall", "-Wextra", "-Werror")
    run(COMPILER, "-std=c++17", "-O2", *warnings, FOLDER / "replay.cpp", "-o", BUILD / "replay")
    pipes = Pipes(*EMULATOR, str(BUILD / "replay"), str(BUILD / "libsplatscope_cpu.so"))
    try:
        yield Machine(pipes)
    finally:
        code = pipes.close()
    assert code == 0, f"the emulated machine ended with {code}"
