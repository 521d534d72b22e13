"""A header that asserts, in whatever compiles a kernel, where Python thinks every parameter lies.

It is compiled together with each .cu file, so that a structure which differs from its ctypes twin
stops the compilation and names the field.
"""

import ctypes
import re
from collections.abc import Iterable, Mapping

from cuda_rasterizer.errors import RasterizerError

LAYOUT_HEADER = "parameter_layout.h"
# NVRTC 12 has no offsetof of any name, but what its own would be made of.
_OFFSET = """\
#if defined(__CUDACC_RTC__)
#define SPLATSCOPE_OFFSET(Type, field) __INTADDR__(&(((Type*)0)->field))
#else
#define SPLATSCOPE_OFFSET(Type, field) __builtin_offsetof(Type, field)
#endif"""
_STRUCTURE = re.compile(r"^(template <typename Real>\n)?struct (\w+) \{", re.MULTILINE)


def layout_header(structures: Iterable[type[ctypes.Structure]], headers: Mapping[str, str]) -> str:
    """The text of the header.

    Args:
        structures: the ctypes twins, named as in C++.
        headers: text by name; those that declare one of the structures are included.

    Raises:
        RasterizerError: no header declares a structure.
    """
    types: dict[str, str] = {}
    declared_in: dict[str, str] = {}
    for header, text in headers.items():
        for template, name in _STRUCTURE.findall(text):
            types[name] = f"splatscope::{name}<float>" if template else f"splatscope::{name}"
            declared_in[name] = header
    lines: list[str] = []
    included: set[str] = set()
    for structure in structures:
        name = structure.__name__
        if name not in types:
            raise RasterizerError(f"no header declares {name}, which Python passes to kernels")
        included.add(declared_in[name])
        lines += _assertions(structure, types[name])
    includes = [f'#include "{header}"' for header in ("dialect.h", *sorted(included))]
    return "\n".join(["#pragma once", *includes, _OFFSET, *lines, ""])


def _assertions(structure: type[ctypes.Structure], type_name: str) -> list[str]:
    name, size = structure.__name__, ctypes.sizeof(structure)
    lines = [f'static_assert(sizeof({type_name}) == {size}, "{name} has {size} bytes in Python");']
    for field, *_ in structure._fields_:
        offset = getattr(structure, field).offset
        lines.append(
            f"static_assert(SPLATSCOPE_OFFSET({type_name}, {field}) == {offset}, "
            f'"{name}.{field} lies at {offset} in Python");'
        )
    return lines
