"""`metrics.jsonl`: one line a step, always finite JSON, buffered."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

FLUSH_SECONDS = 2.0


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

    The last row stays in memory until the next one, so that an evaluation after the step can still
    add its figures to it.
    """

    def __init__(self, path: Path, *, after_step: int = 0) -> None:
        """Continue after `after_step`: lines of later steps, or cut short, are removed."""
        self._path = path
        keep = _length_up_to(path, after_step) if path.exists() else 0
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(keep)
        self._file.seek(keep)
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
            self._file.seek(self._last_offset)
            self._file.truncate()
            self._last_offset = None

    def flush(self) -> None:
        """Write everything, the last row included, to the file."""
        self._flushed = time.monotonic()
        if self._rows:
            text, self._rows = "".join(self._rows), []
            self._file.write(text.encode("utf-8"))
        if self._last is not None and self._last_offset is None:
            offset = self._file.tell()
            self._file.write(_line(self._last).encode("utf-8"))
            self._last_offset = offset
        self._file.flush()

    def close(self) -> None:
        """Write everything and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def _settle_last(self) -> None:
        if self._last is not None and self._last_offset is None:
            self._rows.append(_line(self._last))
        self._last, self._last_offset = None, None


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(finite(row), allow_nan=False) + "\n"


def _length_up_to(path: Path, step: int) -> int:
    """Bytes of the leading lines whose step is at most `step`."""
    length = 0
    with path.open("rb") as handle:
        for raw in handle:
            try:
                row = json.loads(raw)
            except ValueError:
                break
            if not raw.endswith(b"\n") or not isinstance(row, dict) or row.get("step", 0) > step:
                break
            length += len(raw)
    return length
