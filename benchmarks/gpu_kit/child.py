"""Other programs, with a limit on their time."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_KEPT_LINES = 12


def run(
    command: Sequence[str], limit_s: float, variables: Mapping[str, str] | None = None
) -> tuple[int | None, str]:
    """Exit code (None: not done in time) and the end of what it said; from the project's folder.

    `variables` are added to those of the environment.
    """
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **(variables or {})},
            capture_output=True,
            text=True,
            timeout=max(limit_s, 0),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"not done in {limit_s:.0f} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, "\n".join(lines[-_KEPT_LINES:])
