"""PLY files, read and written by property name: ascii and both byte orders, any scalar type.

What the properties mean (seed cloud, splats) is the caller's business. Elements with list
properties, such as faces, are passed over: nothing here needs them.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.errors import EngineError
from engine.plain_files import require_plain_file

_TYPES = {
    "char": "i1",
    "int8": "i1",
    "uchar": "u1",
    "uint8": "u1",
    "short": "i2",
    "int16": "i2",
    "ushort": "u2",
    "uint16": "u2",
    "int": "i4",
    "int32": "i4",
    "uint": "u4",
    "uint32": "u4",
    "float": "f4",
    "float32": "f4",
    "double": "f8",
    "float64": "f8",
}
_NAMES = {
    "i1": "char",
    "u1": "uchar",
    "i2": "short",
    "u2": "ushort",
    "i4": "int",
    "u4": "uint",
    "f4": "float",
    "f8": "double",
}
_BYTE_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_MAX_HEADER_LINES = 10_000
_MAX_HEADER_LINE = 8_192


class PlyError(EngineError):
    """A PLY file is damaged, cut short or not a PLY file."""


@dataclasses.dataclass(frozen=True)
class PlyProperty:
    """One property; `count_type` is set for a list and is the type of its length."""

    name: str
    type: str  # numpy's code without byte order, such as "f4"
    count_type: str | None = None


@dataclasses.dataclass(frozen=True)
class PlyElement:
    """One element of the header, such as "vertex", with its properties in file order."""

    name: str
    count: int
    properties: tuple[PlyProperty, ...]

    @property
    def has_lists(self) -> bool:
        """Whether any property is a list, so that rows differ in length."""
        return any(item.count_type is not None for item in self.properties)

    @property
    def property_names(self) -> tuple[str, ...]:
        """The names of the properties in file order."""
        return tuple(item.name for item in self.properties)

    def dtype(self, byte_order: str = "=") -> np.dtype[np.void]:
        """The structured type of a row without lists."""
        return np.dtype([(item.name, byte_order + item.type) for item in self.properties])


@dataclasses.dataclass(frozen=True)
class PlyHeader:
    """What a PLY file says it holds."""

    format: str  # "ascii", "binary_little_endian" or "binary_big_endian"
    elements: tuple[PlyElement, ...]
    size: int  # bytes up to the data
    lines: int  # lines up to the data

    def element(self, name: str) -> PlyElement | None:
        """The element of that name, if there is one."""
        return next((item for item in self.elements if item.name == name), None)


def read_ply_header(path: Path) -> PlyHeader:
    """The header alone; raises PlyError when it is no PLY header or the file cannot be read."""
    with _opened(path) as handle:
        return _parse_header(path, handle)


def read_ply(path: Path) -> dict[str, np.ndarray]:
    """Every element without list properties as a structured array in native byte order.

    Values are as the file has them, NaN and infinity included. Raises PlyError with the path,
    the place and what was expected.
    """
    with _opened(path) as handle:
        header = _parse_header(path, handle)
        wanted = [item for item in header.elements if not item.has_lists]
        last = header.elements.index(wanted[-1]) if wanted else -1
        reader = _read_ascii if header.format == "ascii" else _read_binary
        return reader(path, handle, header, header.elements[: last + 1])


def write_ply_in_phases(
    target: BinaryIO, elements: Mapping[str, np.ndarray], chunk: int = 1_000_000
) -> Iterator[int]:
    """Write structured arrays (n,) as binary little-endian elements, in the order given.

    Yields the rows of the element so far after every `chunk` of them. Writing is not atomic:
    whoever wants that hands in an open temporary file.
    """
    lines = ["ply", "format binary_little_endian 1.0"]
    for name, rows in elements.items():
        lines.append(f"element {name} {len(rows)}")
        lines += [f"property {_type_name(rows, field)} {field}" for field in _field_names(rows)]
    lines.append("end_header\n")
    target.write("\n".join(lines).encode("utf-8"))
    for rows in elements.values():
        little = np.dtype(
            [(field, rows.dtype[field].newbyteorder("<")) for field in _field_names(rows)]
        )
        for start in range(0, len(rows), chunk):
            part = np.ascontiguousarray(rows[start : start + chunk], dtype=little)
            target.write(part.view(np.uint8).data)
            yield start + len(part)


def _field_names(rows: np.ndarray) -> tuple[str, ...]:
    if rows.dtype.names is None or rows.ndim != 1:
        raise ValueError(f"a PLY element is a structured array (n,), not {rows.dtype} {rows.shape}")
    return rows.dtype.names


def _type_name(rows: np.ndarray, field: str) -> str:
    code = rows.dtype[field].str[1:]
    if code not in _NAMES:
        raise ValueError(f"PLY has no type for {rows.dtype[field]} of property {field}")
    return _NAMES[code]


def _opened(path: Path) -> BinaryIO:
    try:
        require_plain_file(path)
        return path.open("rb")
    except OSError as error:
        raise PlyError(f"{path} cannot be read: {error.strerror or error}.", path=path) from error


def _parse_header(path: Path, handle: BinaryIO) -> PlyHeader:
    if handle.readline(8).strip() != b"ply":
        raise PlyError(
            f"{path} is not a PLY file: its first line is not 'ply'. Expected a point cloud or "
            "splats in PLY format.",
            path=path,
        )
    file_format = ""
    elements: list[tuple[str, int, list[PlyProperty]]] = []
    for number in range(2, _MAX_HEADER_LINES):
        raw = handle.readline(_MAX_HEADER_LINE)
        if not raw.endswith(b"\n"):
            raise PlyError(
                f"{path} ends or turns binary in line {number} of its header; expected "
                "'end_header'. The file is cut short or damaged; copy or export it again.",
                path=path,
            )
        text = raw.decode("utf-8", errors="replace").strip()
        words = text.split()
        if words == ["end_header"]:
            return PlyHeader(
                format=_known_format(path, file_format),
                elements=tuple(PlyElement(name, n, tuple(items)) for name, n, items in elements),
                size=handle.tell(),
                lines=number,
            )
        match words:
            case [] | ["comment" | "obj_info", *_]:
                pass
            case ["format", name, *_]:
                file_format = name
            case ["element", name, count] if count.isdecimal():
                elements.append((name, int(count), []))
            case ["property", "list", count_type, kind, name] if (
                elements and count_type in _TYPES and kind in _TYPES
            ):
                elements[-1][2].append(PlyProperty(name, _TYPES[kind], _TYPES[count_type]))
            case ["property", kind, name] if elements and kind in _TYPES:
                _refuse_repeated(path, elements[-1][2], name)
                elements[-1][2].append(PlyProperty(name, _TYPES[kind]))
            case _:
                raise PlyError(
                    f"{path}, header line {number}: found {text[:80]!r}; expected 'element NAME "
                    "COUNT', 'property TYPE NAME' with a PLY type, or 'end_header'.",
                    path=path,
                    value=text,
                )
    raise PlyError(f"{path} has no 'end_header' in its first {_MAX_HEADER_LINES} lines.", path=path)


def _refuse_repeated(path: Path, properties: list[PlyProperty], name: str) -> None:
    if any(item.name == name for item in properties):
        raise PlyError(f"{path} declares the property {name!r} twice in one element.", path=path)


def _known_format(path: Path, name: str) -> str:
    if name not in _BYTE_ORDERS:
        raise PlyError(
            f"{path} has the PLY format {name!r}; expected ascii, binary_little_endian or "
            "binary_big_endian.",
            path=path,
            value=name,
        )
    return name


def _read_ascii(
    path: Path, handle: BinaryIO, header: PlyHeader, elements: Sequence[PlyElement]
) -> dict[str, np.ndarray]:
    result: dict[str, np.ndarray] = {}
    line = header.lines
    for element in elements:
        rows: list[bytes] = []  # blank lines among them, so that lines can be named
        first_line, found = line + 1, 0
        while found < element.count:
            raw = handle.readline()
            line += 1
            if not raw:
                raise _cut_short(path, element, found)
            rows.append(raw)
            found += not raw.isspace()
        if not element.has_lists:
            result[element.name] = _parse_rows(path, element, rows, first_line)
    return result


def _parse_rows(path: Path, element: PlyElement, rows: list[bytes], first_line: int) -> np.ndarray:
    parsed = np.empty(element.count, dtype=element.dtype())
    if not rows or not element.properties:
        return parsed
    try:
        values = np.loadtxt(rows, dtype=np.float64, ndmin=2, comments=None)
        fits = values.shape[1] == len(element.properties)
    except ValueError:
        fits = False
    if not fits:
        raise _bad_row(path, element, rows, first_line)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN in an integer column, 1e39 in float32
        for column, name in enumerate(element.property_names):
            parsed[name] = values[:, column]
    return parsed


def _bad_row(path: Path, element: PlyElement, rows: list[bytes], first_line: int) -> PlyError:
    expected = len(element.properties)
    for offset, row in enumerate(rows):
        words = row.split()
        if not words:
            continue
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) != expected:
            found = row.decode("utf-8", errors="replace").strip()[:80]
            return PlyError(
                f"{path}, line {first_line + offset}: found {found!r}; expected {expected} numbers "
                f"({', '.join(element.property_names)}).",
                path=path,
                value=found,
            )
    return PlyError(f"{path}: the rows of element {element.name!r} cannot be read.", path=path)


def _read_binary(
    path: Path, handle: BinaryIO, header: PlyHeader, elements: Sequence[PlyElement]
) -> dict[str, np.ndarray]:
    order = _BYTE_ORDERS[header.format]
    file_size = path.stat().st_size
    result: dict[str, np.ndarray] = {}
    for element in elements:
        if element.has_lists:
            _skip_lists(path, handle, element, order)
            continue
        dtype = element.dtype(order)
        available = (file_size - handle.tell()) // dtype.itemsize if dtype.itemsize else 0
        if available < element.count and dtype.itemsize:
            raise _cut_short(path, element, available)
        rows = np.fromfile(handle, dtype=dtype, count=element.count)
        result[element.name] = rows.astype(element.dtype(), copy=False)
    return result


def _skip_lists(path: Path, handle: BinaryIO, element: PlyElement, order: str) -> None:
    for row in range(element.count):
        for item in element.properties:
            size = np.dtype(item.type).itemsize
            if item.count_type is not None:
                count_type = np.dtype(order + item.count_type)
                raw = handle.read(count_type.itemsize)
                if len(raw) < count_type.itemsize:
                    raise _cut_short(path, element, row)
                length = int(np.frombuffer(raw, dtype=count_type)[0])
                if length < 0:
                    raise PlyError(
                        f"{path}: row {row} of the element {element.name!r} has a list of {length} "
                        "values. The file is damaged; copy or export it again.",
                        path=path,
                        value=length,
                    )
                size *= length
            handle.seek(size, 1)


def _cut_short(path: Path, element: PlyElement, found: int) -> PlyError:
    return PlyError(
        f"{path} is cut short: its header announces {element.count} rows of {element.name!r}, the "
        f"file has {found}. Copy or export it again.",
        path=path,
        value=found,
    )
