"""Which lines and branches of the kernels ran on the emulator, as gcov counts them."""

import ctypes
import dataclasses
import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


class CountingLibrary:
    """A library built with coverage, whose counts go to a folder of this process alone."""

    def __init__(self, library: Path, folder: Path) -> None:
        # Read by the library when it writes: where its counts go instead of beside its objects.
        os.environ["GCOV_PREFIX"] = str(folder)
        os.environ["GCOV_PREFIX_STRIP"] = str(len(library.resolve().parent.parts) - 1)
        self.loaded = ctypes.CDLL(str(library))
        self._objects = library.parent
        self._folder = folder

    def gather(self, source_folders: Iterable[Path]) -> "Coverage":
        """What ran so far of the sources and headers in these folders."""
        self.loaded.emulator_write_counts()
        coverage = Coverage()
        wanted = {folder.resolve() for folder in source_folders}
        for counts in sorted(self._folder.glob("*.gcda")):
            shutil.copy(self._objects / counts.with_suffix(".gcno").name, self._folder)
            command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", counts.name]
            result = subprocess.run(command, cwd=self._folder, capture_output=True, check=True)
            for file in json.loads(result.stdout)["files"]:
                path = Path(file["file"])
                if path.resolve().parent in wanted:
                    coverage.add(path.name, file["lines"])
        return coverage


@dataclasses.dataclass
class Coverage:
    """Counts summed over every instance of a function and every file that includes it.

    Attributes:
        lines: executions by (file, line).
        branches: by (file, line), how often each way out of that line's decisions was taken.
    """

    lines: dict[tuple[str, int], int] = dataclasses.field(default_factory=lambda: defaultdict(int))
    branches: dict[tuple[str, int], list[int]] = dataclasses.field(default_factory=dict)

    def add(self, file: str, lines: Iterable[dict]) -> None:
        """Adds gcov's lines of one file, once for each instance of a function."""
        for line in lines:
            place = file, line["line_number"]
            self.lines[place] += line["count"]
            found = [branch["count"] for branch in line["branches"] if not branch["throw"]]
            known = self.branches.setdefault(place, [0] * len(found))
            if len(found) > len(known):
                known += [0] * (len(found) - len(known))
            for index, count in enumerate(found):
                known[index] += count

    def missing(self) -> list[str]:
        """Lines that never ran, and those of whose decisions one way out was never taken."""
        found = [f"{file}:{line}" for (file, line), count in self.lines.items() if count == 0]
        for (file, line), counts in self.branches.items():
            if self.lines[file, line] and not all(counts):
                found.append(f"{file}:{line} (branches {counts})")
        return sorted(found)

    def table(self) -> list[str]:
        """A line a file: how much of it was reached."""
        rows = []
        for file in sorted({file for file, _ in self.lines}):
            lines = [count for (name, _), count in self.lines.items() if name == file]
            ways = [
                c for (name, _), counts in self.branches.items() if name == file for c in counts
            ]
            rows.append(
                f"{file:22} {sum(map(bool, lines)):4} of {len(lines):4} lines, "
                f"{sum(map(bool, ways)):4} of {len(ways):4} branches"
            )
        return rows
