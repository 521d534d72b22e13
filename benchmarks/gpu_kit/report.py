"""What the kit found, printed and written section by section, so that nothing found is lost."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Report:
    """Prints to standard output and keeps a JSON file up to date."""

    def __init__(self, path: Path | None, limit_s: float) -> None:
        """`limit_s`: seconds from now after which nothing new should begin."""
        self._path = path
        self._end = time.monotonic() + limit_s
        self._results: dict[str, Any] = {}
        self.failures: list[str] = []

    def remaining_s(self) -> float:
        """Seconds until the limit; negative behind it."""
        return self._end - time.monotonic()

    def say(self, text: str = "") -> None:
        """One line, at once."""
        print(text, flush=True)

    def fail(self, text: str) -> None:
        """Something is wrong with the kernels; the kit goes on and ends with an exit code."""
        self.failures.append(text)
        self.say(f"FAILED: {text}")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """The first column to the left, the others to the right."""
        columns = list(zip(headings, *rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        for row in (headings, *rows):
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            self.say("  ".join([row[0].ljust(widths[0]), *cells[1:]]))

    def keep(self, section: str, data: Any) -> None:
        """Add a section to the file, which is whole at any moment."""
        self._results[section] = data
        self._results["failures"] = self.failures
        if self._path is None:
            return
        text = json.dumps(self._results, indent=2) + "\n"
        unfinished = self._path.with_suffix(".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self._path)
