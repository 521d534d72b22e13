"""No machine runs into instructions that it lacks: the built library, taken apart.

The classic fault is an inline function of the C++ library: compiled with -mavx2 for one set of
kernels and without for another, it is one symbol to the linker, which keeps whichever copy comes
first.
"""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_rasterizer import native
from tests.cuda_rasterizer.disassembly import Function, defined_symbols, functions_of

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="reads the machine code of x86-64, alone in having sets to choose from, as Linux has it",
)

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("project", "project_backward", "bin_count", "bin_fill", "blend", "blend_backward")
KERNELS += ("l1_ssim", "adam", "add_screen_gradients", "to_rgba8")
_NAMESPACE = re.compile(r"10splatscope(?:8(baseline)|4(avx2)|6(avx512))")


def sets_named(symbol: str) -> set[str]:
    """The instruction sets whose namespace occurs in a mangled name."""
    return {name for found in _NAMESPACE.finditer(symbol) for name in found.groups() if name}


def astray(functions: dict[str, Function]) -> dict[str, set[str]]:
    """Functions that need a younger machine though nothing keeps an old one from them."""
    return {
        symbol: function.younger
        for symbol, function in functions.items()
        if function.younger and not sets_named(symbol) & {"avx2", "avx512"}
    }


@pytest.fixture(scope="module")
def library() -> dict[str, Function]:
    """All functions of the built kernels, by symbol."""
    if not native.library_path().is_file():
        pytest.skip("the CPU kernels are not built")
    functions = functions_of(native.library_path())
    if not any(sets_named(symbol) for symbol in functions):
        pytest.skip(f"the names in {native.library_path()} are stripped, as in a wheel")
    return functions


def test_every_set_has_every_kernel_in_its_own_namespace(library):
    for name in ("baseline", "avx2", "avx512"):
        for kernel in KERNELS:
            mangled = f"_ZN10splatscope{len(name)}{name}{len(kernel)}{kernel}I"
            assert any(symbol.startswith(mangled) for symbol in library), (name, kernel)


def test_only_functions_of_avx2_and_avx512_need_more_than_sse2(library):
    assert not astray(library)
    # The finder is not blind: both of the others are full of it.
    for name in ("avx2", "avx512"):
        wide = [f for symbol, f in library.items() if name in sets_named(symbol) and f.younger]
        assert sum(len(function.younger) for function in wide) > 100


def test_no_function_of_one_set_names_one_of_another(library):
    for symbol, function in library.items():
        for name in sets_named(symbol):
            strangers = {other for other in function.named if sets_named(other) - {name}}
            assert not strangers, symbol


@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512"])
def test_an_object_of_a_set_defines_nothing_that_another_could_be_linked_to(name):
    folder = ROOT / "build" / "native" / "CMakeFiles" / f"splatscope_{name}.dir"
    objects = sorted(folder.rglob("*.o"))
    if not objects:
        pytest.skip(f"the kernels were built elsewhere than in {folder}")
    for path in objects:
        symbols = defined_symbols(path)
        assert symbols, path
        assert not [symbol for symbol in symbols if sets_named(symbol) != {name}], path


# A kernel's file, and in it a template of the C++ library, which is the same symbol in every set.
KERNEL_FILE = """
#include <numeric>
namespace splatscope { namespace %s {
float sum_of_squares(float* values, long count) {
    for (long i = 0; i < count; ++i) values[i] *= values[i];
    return std::accumulate(values, values + count, 0.0f);
}
} }
"""


def compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        pytest.skip("there is no g++ to make an object with")
    return found


def compiled(folder: Path, name: str, *flags: str) -> Path:
    """An object with a function in the namespace `name`, and what it takes of the C++ library."""
    source, binary = folder / f"{name}.cpp", folder / f"{name}.o"
    source.write_text(KERNEL_FILE % name, encoding="utf-8")
    command = [compiler(), "-O3", "-fno-inline", *flags, "-c", str(source), "-o", str(binary)]
    subprocess.run(command, check=True)
    return binary


def test_the_finder_finds_a_shared_function_that_was_compiled_for_avx2(tmp_path):
    faulty = compiled(tmp_path, "avx2", "-mavx2", "-mfma")
    assert [symbol.startswith("_ZSt10accumulate") for symbol in astray(functions_of(faulty))] == [
        True
    ]
    assert any(not sets_named(symbol) for symbol in defined_symbols(faulty))


def test_the_finder_finds_younger_instructions_in_the_baseline(tmp_path):
    assert not astray(functions_of(compiled(tmp_path, "baseline")))
    younger = astray(functions_of(compiled(tmp_path, "baseline", "-mavx2")))
    assert any("baseline" in sets_named(symbol) for symbol in younger)


OF_ANY_MACHINE = (
    "addps %xmm1,%xmm0; rep bsf %eax,%eax; sqrtpd %xmm1,%xmm0; lock incl (%rax); verr %ax"
)
YOUNGER = (
    "haddps %xmm1,%xmm0; movddup %xmm1,%xmm0; fisttpll (%rax); lddqu (%rax),%xmm0",
    "pshufb %xmm1,%xmm0; palignr $1,%xmm1,%xmm0; phaddsw %xmm1,%xmm0; psignb %xmm1,%xmm0",
    "blendvps %xmm0,%xmm1,%xmm2; pmulld %xmm1,%xmm0; roundss $1,%xmm1,%xmm0; ptest %xmm1,%xmm0",
    "pminsd %xmm1,%xmm0; pextrd $1,%xmm0,%eax; pmovsxbd %xmm1,%xmm0; insertps $1,%xmm1,%xmm0",
    "crc32b %al,%eax; pcmpgtq %xmm1,%xmm0; popcnt (%rax),%eax; pcmpistri $1,%xmm1,%xmm0",
    "lzcnt %eax,%eax; blsr %eax,%ecx; andn %rax,%rax,%rax; bzhi %eax,%eax,%eax",
    "shlx %rax,%rcx,%rdx; pext %eax,%eax,%eax",
    "vaddps %xmm1,%xmm0,%xmm0; vzeroupper; vfmadd213ps %ymm0,%ymm1,%ymm2; kmovw %eax,%k1",
    "lock cmpxchg16b (%rax); movbe (%rax),%eax; aesenc %xmm1,%xmm0; adox %eax,%ecx",
)


@pytest.mark.parametrize("instruction", [i for row in YOUNGER for i in row.split("; ")])
def test_the_finder_knows_a_younger_instruction(tmp_path, instruction):
    assert len(astray(functions_of(assembled(tmp_path, instruction)))) == 1


def test_the_finder_leaves_alone_what_every_machine_knows(tmp_path):
    """`rep bsf`, by which compilers search for the lowest bit, is shown as the younger `tzcnt`."""
    functions = functions_of(assembled(tmp_path, OF_ANY_MACHINE))
    assert sum(f.instructions for f in functions.values()) == len(OF_ANY_MACHINE.split("; "))
    assert not astray(functions)


def assembled(folder: Path, instructions: str) -> Path:
    """An object with one function, which is made of these instructions."""
    source, binary = folder / "one.s", folder / "one.o"
    source.write_text(f"one: {instructions}\n", encoding="utf-8")
    subprocess.run([compiler(), "-c", str(source), "-o", str(binary)], check=True)
    return binary
