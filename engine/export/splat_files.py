"""Splats as PLY files: written in the full 3DGS layout, read by property name.

Files hold raw parameters (log-scales, opacity logits, SH coefficients) in the coordinates of the
scene's files; `f_rest_*` is channel-major: all coefficients of red, then green, then blue.
"""

import dataclasses
import math
from collections.abc import Generator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.dataset.scene import SceneFrame
from engine.errors import ExportError
from engine.export.model_file import require_splats
from engine.ply import PlyError, read_ply, write_ply_in_phases
from engine.run.atomic_file import atomic_file, disk_error, other_place
from engine.training.gaussians import SH_C0, Gaussians

REST_COEFFICIENTS = 15  # degrees 1 to 3
BYTES_A_SPLAT = 4 * (17 + 3 * REST_COEFFICIENTS)  # float32 properties of a row
FARTHEST = 1e18  # coordinates whose square is still a float32, with room for a matrix
LARGEST_LOG_SCALE = 40.0  # the same of sizes
CHUNK = 65_536  # splats prepared at a time: about 10 ms of work, and no second copy of the model


@dataclasses.dataclass(frozen=True)
class Written:
    """How many splats a file got and how many were left out as broken."""

    splats: int
    dropped: int


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
    """The splats of a file, their SH degree, and how many rows were left out as broken."""

    splats: Gaussians
    sh_degree: int
    dropped: int


def write_splats_in_phases(
    path: Path, splats: Gaussians, frame: SceneFrame
) -> Generator[int, None, Written]:
    """Write a PLY atomically, in the coordinates of the scene's files.

    Splats with a value that is not finite or with a zero quaternion are left out and counted.
    Yields the number of splats prepared so far, then of those written; they may not change
    meanwhile. Raises ExportError (disk full, no such folder); what stood at `path` then stays, as
    it does when the iterator is closed early.
    """
    names = _property_names()
    rows = np.empty(len(splats), dtype=[(name, "f4") for name in names])
    raw = {name: tensor.detach().cpu() for name, tensor in splats.items()}
    count = 0
    for start in range(0, len(splats), CHUNK):
        values = _as_columns({n: t[start : start + CHUNK] for n, t in raw.items()}, frame)
        good = values[_is_sound(values, values[:, -4:])]
        for column, name in enumerate(names):
            rows[name][count : count + len(good)] = good[:, column]
        count += len(good)
        yield start + len(values)
    try:
        with atomic_file(path) as handle:
            yield from write_ply_in_phases(handle, {"vertex": rows[:count]}, CHUNK)
    except OSError as error:
        raise ExportError(
            f"{disk_error(path, error)} {other_place(error)}; what stood there before is "
            "unchanged.",
            path=path,
        ) from error
    return Written(splats=count, dropped=len(rows) - count)


def _property_names() -> list[str]:
    return [
        *("x", "y", "z", "nx", "ny", "nz"),
        *(f"f_dc_{i}" for i in range(3)),
        *(f"f_rest_{i}" for i in range(3 * REST_COEFFICIENTS)),
        "opacity",
        *(f"scale_{i}" for i in range(3)),
        *(f"rot_{i}" for i in range(4)),
    ]


def _as_columns(raw: Mapping[str, Tensor], frame: SceneFrame) -> np.ndarray:
    count = len(raw["means"])
    return np.concatenate(
        [
            frame.to_file(raw["means"].numpy()).astype(np.float32),
            np.zeros((count, 3), np.float32),
            raw["sh_dc"].reshape(count, 3).numpy(),
            raw["sh_rest"].transpose(1, 2).reshape(count, 3 * REST_COEFFICIENTS).numpy(),
            raw["opacity_logits"].reshape(count, 1).numpy(),
            raw["log_scales"].numpy() - np.float32(math.log(frame.scale)),
            raw["rotations"].numpy(),
        ],
        axis=1,
    )


def _is_sound(values: np.ndarray, quaternions: np.ndarray) -> np.ndarray:
    finite = np.isfinite(values).all(axis=1)
    return np.asarray(finite & (quaternions != 0).any(axis=1))


def read_splats(path: Path) -> Loaded:
    """Read splats of SH degree 0 to 3 from any PLY, in the coordinates of the file.

    Properties are found by name in any order; others are skipped; colours may also be red, green,
    blue. Broken rows, and those that no float32 can draw, are left out and counted. ExportError for
    anything that is not splats.
    """
    try:
        elements = read_ply(path)
    except PlyError as error:
        raise ExportError(str(error), path=path, value=error.value) from error
    rows = elements.get("vertex")
    if rows is None or rows.dtype.names is None:
        raise ExportError(f"{path} has no element 'vertex'; expected splats.", path=path)
    names = set(rows.dtype.names)
    require_splats(path, names)
    rest, degree = _read_rest(path, rows, names)
    columns = {
        "means": _stack(rows, ["x", "y", "z"]),
        "log_scales": _stack(rows, [f"scale_{i}" for i in range(3)]),
        "opacity_logits": _stack(rows, ["opacity"])[:, 0],
        "sh_dc": _read_color(path, rows, names),
        "rotations": _stack(rows, [f"rot_{i}" for i in range(4)]),
    }
    flat = [value.reshape(len(rows), math.prod(value.shape[1:])) for value in columns.values()]
    good = _is_sound(np.concatenate([*flat, rest], axis=1), columns["rotations"])
    good &= (np.abs(columns["means"]) < FARTHEST).all(axis=1)
    good &= (columns["log_scales"] < LARGEST_LOG_SCALE).all(axis=1)
    kept = {name: value[good] for name, value in columns.items()}
    kept["sh_dc"] = kept["sh_dc"].reshape(-1, 1, 3)
    kept["sh_rest"] = _padded_rest(rest[good])
    splats = Gaussians({name: _tensor(value) for name, value in kept.items()})
    return Loaded(splats=splats, sh_degree=degree, dropped=len(rows) - len(splats))


def _stack(rows: np.ndarray, names: list[str], kind: type[np.floating] = np.float32) -> np.ndarray:
    with np.errstate(over="ignore"):  # doubles beyond float32 become infinite: a broken row
        return np.stack([np.asarray(rows[name], kind) for name in names], axis=1)


def _read_color(path: Path, rows: np.ndarray, names: set[str]) -> np.ndarray:
    """SH coefficients of degree 0 (n, 3), from f_dc or from red, green, blue."""
    base = [f"f_dc_{i}" for i in range(3)]
    if set(base) <= names:
        return _stack(rows, base)
    channels = ["red", "green", "blue"]
    if not set(channels) <= names:
        raise ExportError(
            f"{path} has no colours: expected f_dc_0 to f_dc_2, or red, green and blue.", path=path
        )
    color = _stack(rows, channels, np.float64)
    if np.issubdtype(rows.dtype["red"], np.integer):
        color /= np.iinfo(rows.dtype["red"]).max
    return ((color - 0.5) / SH_C0).astype(np.float32)


def _read_rest(path: Path, rows: np.ndarray, names: set[str]) -> tuple[np.ndarray, int]:
    """The f_rest columns (n, 0 | 9 | 24 | 45) in order, and the degree they make."""
    count = sum(name.startswith("f_rest_") for name in names)
    degrees = {0: 0, 9: 1, 24: 2, 45: 3}
    columns = [f"f_rest_{i}" for i in range(count)]
    if count not in degrees or not set(columns) <= names:
        raise ExportError(
            f"{path} has {count} f_rest properties; expected f_rest_0 upward, 0, 9, 24 or 45 of "
            "them (SH degree 0 to 3).",
            path=path,
            value=count,
        )
    rest = _stack(rows, columns) if columns else np.zeros((len(rows), 0), np.float32)
    return rest, degrees[count]


def _padded_rest(rest: np.ndarray) -> np.ndarray:
    """Channel-major columns as (n, 15, 3); the degrees that the file lacks are zero."""
    coefficients = rest.shape[1] // 3
    result = np.zeros((len(rest), REST_COEFFICIENTS, 3), np.float32)
    result[:, :coefficients] = rest.reshape(len(rest), 3, coefficients).transpose(0, 2, 1)
    return result


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
