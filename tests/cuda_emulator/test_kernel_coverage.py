"""Every line of the kernels and every way out of their decisions is taken on the emulator.

Runs behind all other tests of the session, and only where the whole of the emulator's tests ran.
"""

import pytest

from cuda_rasterizer.cuda import sources

# Decisions of which one outcome, and no more, cannot be had, by their text, and why.
UNREACHABLE = {
    "if (none_of(found)) return found;": (
        "backward skips what forward culled, and both take the same decision"
    ),
    "!(determinant > minimum_determinant) || !is_finite_number(determinant);": (
        "projection culls what would make it infinite, and NaN is found by the first half"
    ),
}


FOLDERS = [sources.FOLDER, sources.INCLUDE_FOLDER]


def text_of(file: str, line: int) -> str:
    path = next(folder / file for folder in FOLDERS if (folder / file).is_file())
    return path.read_text(encoding="utf-8").splitlines()[line - 1].strip()


@pytest.mark.emulator
@pytest.mark.usefixtures("whole_emulator_suite")
def test_every_line_and_branch_of_the_kernels_was_reached(emulated_library, kernel_report):
    reached = emulated_library.gather(FOLDERS)
    kernel_report += ["reached on the emulator:", *reached.table()]
    modules = {path.name for path in sources.FOLDER.glob("*.cu")}
    assert modules <= {file for file, _ in reached.lines}
    assert not [place for place, count in reached.lines.items() if count == 0]
    open_ways = {
        f"{file}:{line}: {text_of(file, line)}": ways
        for (file, line), ways in reached.branches.items()
        if not all(ways)
    }
    excused = {place: ways for place, ways in open_ways.items() if is_excused(place, ways)}
    assert open_ways == excused, "by decision, how often each way out was taken"
    assert len(excused) == len(UNREACHABLE), "an excuse is given for what was reached"


def is_excused(place: str, ways: list[int]) -> bool:
    """Whether one way out of the decision is known to be impossible, and only one was not taken."""
    return place.split(": ", 1)[1] in UNREACHABLE and ways.count(0) == 1
