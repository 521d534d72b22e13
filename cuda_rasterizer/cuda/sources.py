"""The CUDA sources as text: which kernels they hold, and the constants they share with Python.

One module is compiled from each .cu file. A kernel is declared once, by its `KERNEL(name, Params,
max_threads)` line, and found by that line; the same holds for constants in the headers.
"""

import functools
import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

from cuda_rasterizer.cuda.layout_header import LAYOUT_HEADER, layout_header
from cuda_rasterizer.cuda.structures import CUDA_STRUCTURES
from cuda_rasterizer.errors import RasterizerError

FOLDER = Path(__file__).parent
INCLUDE_FOLDER = FOLDER.parent / "include"

_KERNEL = re.compile(r"^KERNEL\(\s*(\w+)\s*,\s*(\w+)(?:<float>)?\s*,\s*(\w+)\s*\)", re.MULTILINE)
_CONSTANT = re.compile(r"^constexpr (?:int|int32_t|int64_t) (\w+) = ([\w *]+);", re.MULTILINE)


@dataclass(frozen=True)
class KernelSource:
    """Where a kernel stands, and what its launch must obey."""

    name: str
    module: str
    parameters: str
    max_threads: int


@functools.cache
def headers() -> dict[str, str]:
    """Text of every header, by the name under which it is included; the layouts are one of them."""
    paths = sorted([*FOLDER.glob("*.h"), *INCLUDE_FOLDER.glob("*.h")])
    found = {path.name: path.read_text(encoding="utf-8") for path in paths}
    return {**found, LAYOUT_HEADER: layout_header(CUDA_STRUCTURES, found)}


@functools.cache
def modules() -> dict[str, str]:
    """Text of every .cu file, by its name without the suffix."""
    paths = sorted(FOLDER.glob("*.cu"))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


@functools.cache
def constants() -> dict[str, int]:
    """Whole-numbered constants of the headers that are a number or a product of such."""
    found: dict[str, int] = {}
    for text in headers().values():
        found |= _constants_in(text, found)
    return found


def _constants_in(text: str, known: dict[str, int]) -> dict[str, int]:
    """Those of one file; it may use the `known` ones."""
    found: dict[str, int] = {}
    for name, expression in _CONSTANT.findall(text):
        factors = [part.strip() for part in expression.split("*")]
        values = {**known, **found, **{f: int(f) for f in factors if f.isdigit()}}
        if all(factor in values for factor in factors):
            found[name] = prod(values[factor] for factor in factors)
    return found


@functools.cache
def kernels() -> dict[str, KernelSource]:
    """Every kernel by name.

    Raises:
        RasterizerError: two kernels share a name, or a limit of threads is not a known constant.
    """
    found: dict[str, KernelSource] = {}
    for module, text in modules().items():
        limits = constants() | _constants_in(text, constants())
        for name, parameters, limit in _KERNEL.findall(text):
            if name in found:
                raise RasterizerError(
                    f"kernel {name} stands in {found[name].module}.cu and in {module}.cu"
                )
            if not limit.isdigit() and limit not in limits:
                raise RasterizerError(
                    f"kernel {name} in {module}.cu is limited to {limit} threads; expected a "
                    "number or a constant of this file or of the headers"
                )
            threads = int(limit) if limit.isdigit() else limits[limit]
            found[name] = KernelSource(name, module, parameters, threads)
    return found
