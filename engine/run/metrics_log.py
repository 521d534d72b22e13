"""`metrics.jsonl`: one line a step, always finite JSON, buffered."""

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.documents import UNREADABLE
from engine.run.atomic_file import atomic_file

FLUSH_SECONDS = 2.0
_NO_ROW = -1  # the step of a line that is no row


def finite(value: object) -> object:
    """`value` with every float that JSON cannot say (NaN, infinities) replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


class MetricsLog:
    """Appends rows to `path`; every method may raise OSError (a full disk).

    Rows that could not be written are kept and tried again; no part of one stays in the file.
    The last row stays in memory until the next one, so that an evaluation after the step can still
    add its figures to it.
    """

    def __init__(self, path: Path, *, after_step: float = 0) -> None:
        """Continue after `after_step`: lines of later steps, cut short or damaged, are removed.

        `damaged` is how many lines were no rows, but for a last one cut short by a crash. Whole
        rows of later steps are kept in a file beside it, `undone`.
        """
        self.damaged, self.undone = 0, None
        if path.exists():
            self.damaged, self.undone = _keep_rows_up_to(path, after_step)
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        self._length = path.stat().st_size  # of the whole lines; behind it nothing counts
        self._rows: list[str] = []
        self._last: dict[str, object] | None = None
        self._last_offset: int | None = None  # where the last row stands if it was written
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, row: Mapping[str, object]) -> None:
        """Add the row of one step; written within `FLUSH_SECONDS` while rows keep coming."""
        self._settle_last()
        self._last = dict(row)
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def amend(self, values: Mapping[str, object]) -> None:
        """Add `values` to the last row; nothing happens when no step was logged yet."""
        if self._last is None:
            return
        self._last.update(values)
        if self._last_offset is not None:
            self._length = self._last_offset
            self._last_offset = None

    def flush(self) -> None:
        """Write everything, the last row included, to the file."""
        self._flushed = time.monotonic()
        if self._rows:
            self._write("".join(self._rows))
            self._rows = []
        if self._last is not None and self._last_offset is None:
            offset = self._length
            self._write(_line(self._last))
            self._last_offset = offset

    def copied_to(self, path: Path) -> "MetricsLog":
        """A log in a new file that goes on from all rows there are, the file's and those in memory.

        The file of this one may be gone from its folder.
        """
        self._file.seek(0)
        path.write_bytes(self._file.read(self._length) or b"")
        copy = MetricsLog(path, after_step=math.inf)
        copy._rows, copy._last = list(self._rows), self._last
        copy._last_offset, copy.damaged = self._last_offset, self.damaged
        return copy

    def close(self) -> None:
        """Write everything and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def _write(self, lines: str) -> None:
        """Add whole lines, or nothing and OSError."""
        self._file.truncate(self._length)
        self._file.seek(self._length)
        rest = memoryview(lines.encode("utf-8"))
        size = len(rest)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(self._length)
            raise
        self._length += size

    def _settle_last(self) -> None:
        if self._last is not None and self._last_offset is None:
            self._rows.append(_line(self._last))
        self._last, self._last_offset = None, None


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(finite(row), allow_nan=False) + "\n"


@dataclasses.dataclass(frozen=True)
class UndoneRows:
    """Rows of steps that a resumed run does not have, and where they are kept."""

    path: Path
    first: int
    last: int


def _keep_rows_up_to(path: Path, step: float) -> tuple[int, UndoneRows | None]:
    """Leave only the whole rows up to `step` in the file; how many other lines were damaged."""
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        del lines[-1]
    steps = [_step_of(line) for line in lines]
    kept = [line for line, found in zip(lines, steps, strict=True) if 0 <= found <= step]
    later = [(found, line) for line, found in zip(lines, steps, strict=True) if found > step]
    undone = _put_aside(path, later) if later else None
    with atomic_file(path) as handle:
        handle.writelines(kept)
    return steps.count(_NO_ROW), undone


def _put_aside(path: Path, later: list[tuple[int, bytes]]) -> UndoneRows:
    first, last = min(later)[0], max(later)[0]
    name = f"{path.stem}-undone-{first:06d}-to-{last:06d}"
    aside, number = path.with_name(f"{name}{path.suffix}"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{name}-{number}{path.suffix}")
    with atomic_file(aside) as handle:
        handle.writelines(line for _, line in later)
    return UndoneRows(aside, first, last)


def _step_of(line: bytes) -> int:
    try:
        row = json.loads(line)
    except UNREADABLE:
        return _NO_ROW
    step = row.get("step") if isinstance(row, dict) else None
    return step if isinstance(step, int) and step >= 0 else _NO_ROW
