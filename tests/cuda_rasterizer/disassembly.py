"""Reads machine code of x86-64: which functions need more than its first generation has (SSE2)."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# Patterns of mnemonics by the extension that brought them. `tzcnt` is none: where it is missing its
# bytes are `rep bsf`, which gives the same of every number but 0, and compilers use it for that.
_YOUNGER_BY_EXTENSION = {
    "AVX, FMA, AVX-512": (r"(?!ver[rw]\b)v\w+", r"k(?:mov|and|or|x|not|add|test|shift|unpck)\w+"),
    "SSE3": (
        *(r"addsubp[sd]", r"h(?:add|sub)p[sd]", r"lddqu", r"mov(?:ddup|s[hl]dup)", r"fisttp\w*"),
        r"monitor|mwait",
    ),
    "SSSE3": (
        *(r"pabs[bwd]", r"palignr", r"ph(?:add|sub)(?:d|s?w)", r"pmaddubsw", r"pmulhrsw"),
        r"pshufb|psign[bwd]",
    ),
    "SSE4.1": (
        *(r"p?blend\w+", r"dpp[sd]", r"(?:extract|insert)ps", r"movntdqa", r"mpsadbw", r"packusdw"),
        *(r"p(?:cmpeqq|hminposuw|muldq|mulld|test)", r"p(?:extr|insr)[bdq]"),
        *(r"p(?:min|max)(?:s[bd]|u[dw])", r"pmov[sz]x\w+", r"round[ps][sd]"),
    ),
    "SSE4.2": (r"crc32\w?", r"pcmp[ei]str[im]\w?", r"pcmpgtq", r"popcnt\w?"),
    "BMI": (
        *(r"lzcnt\w?", r"andn[lq]?", r"bextr\w?", r"bls(?:i|r|msk)\w?", r"bzhi\w?", r"mulx\w?"),
        *(r"p(?:dep|ext)[lq]?", r"rorx\w?", r"s(?:ar|hl|hr)x\w?"),
    ),
    "others": (
        r"ad[co]x\w?",
        r"movbe\w?",
        r"cmpxchg16b",
        r"(?:aes|pclmul|sha\d)\w+",
        r"rd(?:rand|seed)",
    ),
}
_YOUNGER = re.compile("|".join(p for patterns in _YOUNGER_BY_EXTENSION.values() for p in patterns))
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_PREFIX = r"(?:(?:rep\w*|lock|bnd|notrack|data16|addr32|[c-gs]s)\s+)*"
_INSTRUCTION = re.compile(rf"^\s+[0-9a-f]+:\t{_PREFIX}(\w+)(?:.*<([^>+@]+)[>+@])?")


@dataclass
class Function:
    """What is remembered of one function."""

    instructions: int = 0
    younger: set[str] = field(default_factory=set)
    """Mnemonics that a machine with SSE2 alone does not know."""
    named: set[str] = field(default_factory=set)
    """Other functions and data that its instructions name: those it calls, among others."""


def functions_of(binary: Path) -> dict[str, Function]:
    """Every function of an x86-64 object or library by its symbol, local ones too.

    The calling test is skipped where there is no objdump, but with SPLATSCOPE_REQUIRE_NATIVE set
    it fails.
    """
    listing = _output("objdump", "--disassemble", "--no-show-raw-insn", str(binary))
    functions: dict[str, Function] = {}
    current = Function()
    for line in listing.splitlines():
        if heading := _FUNCTION.match(line):
            current = functions.setdefault(heading[1], Function())
        elif found := _INSTRUCTION.match(line):
            current.instructions += 1
            if _YOUNGER.fullmatch(found[1]):
                current.younger.add(found[1])
            if found[2]:
                current.named.add(found[2])
    return functions


def defined_symbols(binary: Path) -> list[str]:
    """What an object defines and others may see."""
    lines = _output("nm", "--defined-only", "--extern-only", str(binary)).splitlines()
    return [line.split()[-1] for line in lines]


def _output(program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        # `make test` promises it with the compiler, whose package brings binutils along.
        give_up = pytest.fail if os.environ.get("SPLATSCOPE_REQUIRE_NATIVE") else pytest.skip
        give_up(f"there is no {program} (of binutils) to read machine code with")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
