"""Whether poses, points and photos belong together, told before the first step.

Codes of findings are stable: scripts read them. All thresholds are here.
"""

import numpy as np
from jaxtyping import Bool, Float

from engine.dataset.geometry import camera_centers, extent_of
from engine.dataset.lenses import to_pixels
from engine.dataset.loading import Loading
from engine.dataset.photo_matching import MatchedPhoto
from engine.dataset.posed_files import PosedFile, PosedFiles
from engine.dataset.scene import Distortion, Finding, SceneFrame, Severity
from engine.wording import counted

_FEW_VIEWS = 8
_LARGE = 1e4  # file units; float32 then resolves about a thousandth of one
_MOST_POINTS = 20_000  # as many as are looked at, evenly drawn
_REPROJECTION_WARNING = 2.0  # pixels of the file, mean
_REPROJECTION_ERROR = 10.0  # or, where that is less, this share of the picture's width:
_REPROJECTION_ERROR_SHARE = 0.02
_SHARE_WARNING = 0.9
_SHARE_ERROR = 0.5


def check_geometry(
    posed: PosedFiles,
    matched: list[MatchedPhoto],
    split: list[bool],
    frame: SceneFrame,
    loading: Loading,
) -> list[Finding]:
    """Findings about the scene as a whole; cameras and points are in the frame of the files."""
    findings: list[Finding] = []
    centers = camera_centers([item.photo.camera for item in matched])
    training = centers[~np.array(split)]
    if any(item.has_alpha for item in matched):
        count = sum(item.has_alpha for item in matched)
        photos = counted(len(matched), "photo")
        message = f"Of {photos}, {count:,} with transparency; it is trained on."
        findings.append(Finding("alpha", "ok", "", message))
    if len(training) < _FEW_VIEWS:
        message = (
            f"Only {counted(len(training), 'photo')} to train on; expected at least {_FEW_VIEWS}. "
            "Views from elsewhere will look wrong, and an opacity reset may lose splats: switch it "
            "off."
        )
        findings.append(Finding("few_views", "warning", "", message))
    findings += _check_extent(training, posed)
    findings += _check_coordinates(centers, frame)
    if len(posed.points) == 0:
        where = "a cube" if posed.random_half_size else "what the cameras see"
        message = (
            f"{posed.source} has no sparse points; training starts from random points in "
            f"{where}, which takes longer and may leave haze. Give a point cloud if you have one."
        )
        findings.append(Finding("points_missing", "warning", "", message))
        return findings
    findings += _check_visibility(posed, matched, loading)
    findings += _check_reprojection(posed, matched, loading)
    return findings


def _check_extent(training: Float[np.ndarray, "n 3"], posed: PosedFiles) -> list[Finding]:
    extent, from_points = extent_of(training, posed.points)
    if not from_points:
        return []
    message = (
        f"The cameras stand at one place; sizes are measured by the spread of the points instead "
        f"({extent:.3g}). Depth can only be guessed from there."
    )
    return [Finding("extent_from_points", "warning", "", message)]


def _check_coordinates(centers: Float[np.ndarray, "n 3"], frame: SceneFrame) -> list[Finding]:
    findings: list[Finding] = []
    largest = float(np.abs(centers).max())
    if largest > _LARGE:
        message = (
            f"Coordinates are large (up to {largest:,.0f}), as of a map projection. Training is "
            "centred; an export in these coordinates is only as fine as float32, about "
            f"{largest * 2**-23:.2g} units."
        )
        findings.append(Finding("large_coordinates", "warning", "", message))
    if frame.scale != 1.0:
        message = (
            f"The cameras span {1 / frame.scale:.3g} units; training is scaled to 1 and exports "
            "are scaled back."
        )
        findings.append(Finding("scaled", "ok", "", message))
    return findings


def _check_visibility(
    posed: PosedFiles, matched: list[MatchedPhoto], loading: Loading
) -> list[Finding]:
    """Which points some camera sees, and which cameras see any point."""
    stride = -(-len(posed.points) // _MOST_POINTS)
    points = posed.points[::stride]
    seen = np.zeros(len(points), dtype=bool)
    blind: list[str] = []
    for item in matched:
        loading.poll()
        visible = _is_visible(item, points)
        seen |= visible
        if not visible.any():
            blind.append(item.photo.name)
    findings: list[Finding] = []
    share = float(seen.mean())
    message = f"{share:.1%} of the sparse points lie in view of some camera"
    if share < _SHARE_WARNING:
        message += (
            "; expected nearly all. Points and poses are in different frames, an axis is flipped, "
            "or the poses are inverted (COLMAP's are world to camera, with w first)."
        )
        severity: Severity = "error" if share < _SHARE_ERROR else "warning"
        findings.append(Finding("points_out_of_view", severity, "", message))
    else:
        findings.append(Finding("points_in_view", "ok", "", message + "."))
    for name in blind:
        text = f"{name} sees none of the sparse points; its pose is probably wrong."
        findings.append(Finding("view_without_points", "warning", name, text))
    if 2 * len(blind) > len(matched):
        text = (
            f"Sparse points are in view of only {len(matched) - len(blind)} of "
            f"{counted(len(matched), 'photo')}; poses and points do not belong together."
        )
        findings.append(Finding("few_usable_views", "error", "", text))
    return findings


def _is_visible(item: MatchedPhoto, points: Float[np.ndarray, "n 3"]) -> Bool[np.ndarray, "n"]:
    camera = item.photo.camera
    pixels, depth = camera.project(points)
    inside = (pixels >= 0).all(axis=1) & (pixels <= [camera.width, camera.height]).all(axis=1)
    return np.asarray((depth > 0) & inside)


def reprojection_errors(
    posed: PosedFile, points: Float[np.ndarray, "n 3"]
) -> Float[np.ndarray, "m"]:
    """Distances in pixels between where points were seen and where the pose puts them.

    One for each observation, in the distorted picture at the size the pose file says; infinite
    for a point behind the camera. Empty without observations.
    """
    seen = posed.observations
    if seen is None or len(seen.points) == 0 or not isinstance(posed.lens, Distortion):
        return np.empty(0)
    pose = posed.world_to_camera
    local = points[seen.points] @ pose[:3, :3].T + pose[:3, 3]
    in_front = local[:, 2] > 0
    rays = local[:, :2] / np.where(in_front, local[:, 2], 1.0)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # rays that miss the lens altogether
        distances = np.linalg.norm(to_pixels(posed.lens, rays) - seen.pixels, axis=1)
    return np.asarray(np.where(in_front & np.isfinite(distances), distances, np.inf))


def _check_reprojection(
    posed: PosedFiles, matched: list[MatchedPhoto], loading: Loading
) -> list[Finding]:
    worst: list[tuple[float, str]] = []
    everything: list[np.ndarray] = []
    for item in matched:
        loading.poll()
        errors = reprojection_errors(item.posed, posed.points)
        if len(errors):
            everything.append(errors)
            worst.append((float(errors.mean()), item.photo.name))
    if not everything:
        return []
    mean = float(np.concatenate(everything).mean())
    if mean <= _REPROJECTION_WARNING:
        text = f"Sparse points fall on average {mean:.2f} pixels from where they were seen."
        return [Finding("reprojection", "ok", "", text)]
    behind = "" if np.isfinite(mean) else ", some even behind it"
    shown = f"{mean:.1f} pixels" if np.isfinite(mean) else "far"
    names = ", ".join(name for _, name in sorted(worst, reverse=True)[:3])
    text = (
        f"Sparse points fall on average {shown} from where they were seen{behind}; expected less "
        f"than {_REPROJECTION_WARNING:g}. Poses, lenses and points do not belong together (worst: "
        f"{names}): poses inverted, quaternion order wrong, or a camera model of another run."
    )
    width = max(
        item.posed.lens.width for item in matched if isinstance(item.posed.lens, Distortion)
    )
    limit = min(_REPROJECTION_ERROR, _REPROJECTION_ERROR_SHARE * width)
    severity: Severity = "error" if mean > limit else "warning"
    return [Finding("reprojection_large", severity, "", text)]
