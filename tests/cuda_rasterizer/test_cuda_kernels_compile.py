"""NVRTC makes machine code of every CUDA source, for every architecture, without a GPU or a driver.

What each kernel needs is printed at the end of the session, and no kernel may spill registers to
memory: each is hot, and a spill costs more than any trick saves. Where nvcc lies about, it compiles
the same files.
"""

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from cuda_rasterizer.cuda import nvrtc, sources
from cuda_rasterizer.cuda.cubin_cache import cache_key
from cuda_rasterizer.cuda.layout_header import LAYOUT_HEADER
from cuda_rasterizer.cuda.structures import CUDA_STRUCTURES
from tests.cores import own_cores

HAS_NVRTC = sys.platform == "linux" and platform.machine() == "x86_64"  # as pyproject.toml has it
pytestmark = [
    pytest.mark.nvrtc,
    pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is installed on 64-bit Linux PCs alone"),
    pytest.mark.slow,
    pytest.mark.timeout(1200),  # whichever test comes first waits for all the compilations
]

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
OPTIONS = (*nvrtc.OPTIONS, "--ptxas-options=-v")
_ENTRY = re.compile(
    r"Compiling entry function '(?P<kernel>\w+)' for 'sm_(?P<architecture>\d+)[af]?'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers"
    r"(?:.*?(?P<shared>\d+) bytes smem)?",
)


@dataclass(frozen=True)
class Needs:
    """What the assembler says that one kernel needs on one architecture, in bytes but registers."""

    kernel: str
    architecture: int
    registers: int
    stack: int
    spilled: int
    shared: int


def needs_in(log: str) -> list[Needs]:
    """Of every kernel that `log`, the assembler's words with -v, tells of."""
    one_line = log.replace("\n", " ").replace("Compiling entry", "\nCompiling entry")
    return [
        Needs(
            found["kernel"],
            *(int(found[name]) for name in ("architecture", "registers", "stack")),
            spilled=int(found["stores"]) + int(found["loads"]),
            shared=int(found["shared"] or 0),
        )
        for found in _ENTRY.finditer(one_line)
    ]


def _table(needs: list[Needs]) -> list[str]:
    """A line a kernel: registers on each architecture, then stack and shared memory at most."""
    architectures = sorted({need.architecture for need in needs})
    lines = ["registers            " + "".join(f"{'sm_' + str(a):>8}" for a in architectures)]
    for kernel in sorted({need.kernel for need in needs}):
        own = {need.architecture: need for need in needs if need.kernel == kernel}
        registers = "".join(f"{own[a].registers:>8}" for a in architectures)
        stack = max(need.stack for need in own.values())
        spilled = max(need.spilled for need in own.values())
        shared = max(need.shared for need in own.values())
        lines.append(f"{kernel:30}{registers}   stack {stack}, spilled {spilled}, shared {shared}")
    return lines


def once(
    cache: pytest.Cache, module: str, target: str, compiler: str, compiled: Callable[[], str]
) -> str:
    """What the compiler said of a module, now or when it was last given these very texts."""
    texts = {module: sources.modules()[module]}
    name = f"cuda_kernels/{cache_key(texts, sources.headers(), target, compiler, OPTIONS)}"
    said: str | None = cache.get(name, None)
    if said is None:
        said = compiled()
        cache.set(name, said)
    return said


@pytest.fixture(scope="session")
def needs(kernel_report: list[str], pytestconfig: pytest.Config) -> list[Needs]:
    """Of every kernel on every architecture that this NVRTC knows; 80 s of processor time."""
    compiler = nvrtc.load_compiler()
    known = [number for number in ARCHITECTURES if number in compiler.architectures]

    def compile_one(pair: tuple[str, int]) -> list[Needs]:
        module, architecture = pair
        target = f"sm_{architecture}"

        def compiled() -> str:
            made = compiler.compile(module, sources.modules()[module], target, OPTIONS)
            assert made.image.startswith(b"\x7fELF")
            return made.log

        return needs_in(once(pytestconfig.cache, module, target, compiler.version, compiled))

    pairs = [(module, number) for number in known for module in sources.modules()]
    with ThreadPoolExecutor(own_cores()) as pool:
        found = [need for part in pool.map(compile_one, pairs) for need in part]
    kernel_report += [f"NVRTC {compiler.version}", *_table(found)]
    return found


def test_every_kernel_compiles_for_every_architecture(needs):
    known = nvrtc.load_compiler().architectures
    assert set(ARCHITECTURES) & set(known) >= {75, 80, 90}
    found = {(need.kernel, need.architecture) for need in needs}
    wanted = {(kernel, a) for kernel in sources.kernels() for a in ARCHITECTURES if a in known}
    assert found == wanted


def test_no_kernel_spills(needs):
    assert not [need for need in needs if need.spilled]


def test_every_kernel_fits_the_shared_memory_that_needs_no_asking(needs):
    assert max(need.shared for need in needs) <= 48 * 1024


def test_a_structure_that_differs_from_its_twin_stops_the_compilation_and_names_the_field():
    compiler = nvrtc.load_compiler()
    compiler.compile("layouts", '#include "dialect.h"\n', "sm_80")
    header = sources.headers()[LAYOUT_HEADER]
    for structure in CUDA_STRUCTURES:
        assert f"{structure.__name__} has " in header
    moved = re.sub(r"(AdamGroupParams<float>, step_size\) == )\d+", r"\g<1>8", header)
    assert moved != header
    with pytest.raises(nvrtc.CompilationError, match=r"AdamGroupParams\.step_size lies at"):
        compiler.compile("layouts", moved, "sm_80")


def test_a_kernel_that_spills_is_told_apart():
    """The words that the tests above rely on are still those of this assembler."""
    source = """
#include "dialect.h"
struct Numbers { float* values; };
KERNEL(hungry, Numbers, 1024) {
    float kept[200];
#pragma unroll
    for (int i = 0; i < 200; ++i) kept[i] = p.values[i * 1024 + splatscope::thread_index()];
    splatscope::sync_block();
#pragma unroll
    for (int i = 0; i < 200; ++i) p.values[i * 1024 + splatscope::thread_index()] = kept[199 - i];
}
"""
    log = nvrtc.load_compiler().compile("hungry", source, "sm_80", OPTIONS).log
    (need,) = needs_in(log)
    assert need.kernel == "hungry"
    assert need.spilled > 0


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here; NVRTC is what counts")
def test_nvcc_compiles_the_same_files(tmp_path, pytestconfig):
    architecture = 90  # one is enough to hear nvcc's own front end; NVRTC has proved the others
    header = tmp_path / LAYOUT_HEADER
    header.write_text(sources.headers()[LAYOUT_HEADER])
    include = [f"-I{sources.FOLDER}", f"-I{sources.INCLUDE_FOLDER}", "-include", str(header)]
    options = ["-std=c++17", "-fmad=false", f"-arch=sm_{architecture}", "-Werror=all-warnings"]
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True)

    def compile_one(module: str) -> str:
        output = str(tmp_path / f"{module}.cubin")
        command = ["nvcc", *options, *include, "-cubin", "-o", output]
        command.append(str(sources.FOLDER / f"{module}.cu"))

        def compiled() -> str:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            return result.stderr if result.returncode else "compiled"

        return once(pytestconfig.cache, module, f"sm_{architecture}", version.stdout, compiled)

    with ThreadPoolExecutor(own_cores()) as pool:
        for said in pool.map(compile_one, sources.modules()):
            assert said == "compiled"
