"""PLY files for tests."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from engine.ply import write_ply_in_phases


def write_ply(path: Path, elements: Mapping[str, np.ndarray]) -> None:
    """Write structured arrays (n,) by name, in one go."""
    with path.open("wb") as file:
        for _ in write_ply_in_phases(file, elements):
            pass
