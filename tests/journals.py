"""Reading what `engine.run.journal` wrote."""

import json
from pathlib import Path
from typing import Any


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The entries of a journal; a last line that is still being written is left out."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
