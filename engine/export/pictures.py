"""Rendered pictures as PNG files."""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from engine.errors import ExportError
from engine.run.atomic_file import atomic_file, disk_error, other_place


def write_png(path: Path, pixels: UInt8[np.ndarray, "h w 4"]) -> None:
    """Write an RGBA8 picture without its alpha, atomically, with its folder.

    Raises ExportError; what stood at `path` then stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as handle:
            Image.fromarray(pixels).convert("RGB").save(handle, format="PNG")
    except OSError as error:
        raise ExportError(
            f"{disk_error(path, error)} {other_place(error, 'folder')}.", path=path
        ) from error
