"""Seed clouds in PLY files: points with colours, to start splats from."""

from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from engine.dataset.scene import LARGEST_COORDINATE, Finding
from engine.errors import SceneError
from engine.ply import PlyHeader, read_ply, read_ply_header

_COLOR_NAMES = (
    ("red", "green", "blue"),
    ("r", "g", "b"),
    ("diffuse_red", "diffuse_green", "diffuse_blue"),
)
_GREY = 128  # for a cloud without colours


def holds_splats(header: PlyHeader) -> bool:
    """Whether a PLY file is a splat file, not a point cloud: it has scales and opacities."""
    vertex = header.element("vertex")
    names = set(vertex.property_names) if vertex else set()
    return {"scale_0", "rot_0", "opacity"} <= names or "packed_position" in names


def read_point_cloud(
    path: Path,
) -> tuple[Float[np.ndarray, "n 3"], UInt8[np.ndarray, "n 3"], tuple[Finding, ...]]:
    """Positions in float64, colours and findings (points dropped, colours missing).

    Points that are not finite are dropped and counted. Raises SceneError when the file holds
    splats, has no x, y, z, or no finite point; PlyError when it cannot be read.
    """
    _require_points(path, read_ply_header(path))
    rows = read_ply(path)["vertex"]
    with np.errstate(invalid="ignore"):  # a signalling NaN
        positions = np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=1)
    findings: list[Finding] = []
    colors = _colors(path, rows, findings)
    finite = np.asarray((np.abs(positions) < LARGEST_COORDINATE).all(axis=1))
    dropped = int(len(finite) - finite.sum())
    if len(finite) and not finite.any():
        raise SceneError(
            f"{path}: none of its {len(finite)} points has finite coordinates of a sensible "
            f"size, below {LARGEST_COORDINATE:g}. Export it again.",
            path=path,
        )
    if dropped:
        message = (
            f"{path.name}: {dropped} of {len(finite)} points have coordinates that are not finite "
            f"or {LARGEST_COORDINATE:g} and more, and were dropped."
        )
        findings.append(Finding("seed_points_dropped", "warning", path.name, message))
    return positions[finite], colors[finite], tuple(findings)


def _require_points(path: Path, header: PlyHeader) -> None:
    vertex = header.element("vertex")
    names = vertex.property_names if vertex else ()
    if holds_splats(header):
        raise SceneError(
            f"{path} holds splats, not a point cloud: it has scales, rotations and opacities. "
            "Expected x, y, z and colours.",
            path=path,
        )
    if not {"x", "y", "z"} <= set(names):
        raise SceneError(
            f"{path} has no point cloud: its vertices have {', '.join(names) or 'no properties'}; "
            "expected x, y, z and, if there are any, red, green, blue.",
            path=path,
        )
    if vertex is not None and vertex.has_lists:
        raise SceneError(
            f"{path}: its vertices have lists ({', '.join(names)}), which are not read here. "
            "Export the point cloud with x, y, z and colours alone.",
            path=path,
        )


def _colors(path: Path, rows: np.ndarray, findings: list[Finding]) -> UInt8[np.ndarray, "n 3"]:
    names = rows.dtype.names or ()
    for triple in _COLOR_NAMES:
        if set(triple) <= set(names):
            values = np.stack([rows[name] for name in triple], axis=1)
            return _as_bytes(values)
    message = f"{path.name} has no colours; its points start grey."
    findings.append(Finding("seed_colors_missing", "warning", path.name, message))
    return np.full((len(rows), 3), _GREY, dtype=np.uint8)


def _as_bytes(values: np.ndarray) -> UInt8[np.ndarray, "n 3"]:
    if values.dtype == np.uint8:
        return values
    full = 65535.0 if values.dtype == np.uint16 else 255.0
    scaled = np.nan_to_num(values.astype(np.float64), nan=0.5)
    if values.dtype.kind == "f" and (len(scaled) == 0 or scaled.max() <= 1.0):
        full = 1.0
    return np.asarray(np.clip(np.rint(scaled * (255.0 / full)), 0, 255).astype(np.uint8))
