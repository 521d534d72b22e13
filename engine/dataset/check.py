"""The check of a scene as a report that scripts and people read.

Findings are made where they are noticed: `layout`, `photo_matching`, `transforms_json`,
`point_cloud`, `checks`. Here they are put together. The codes are listed in `FINDING_CODES`.
"""

from pathlib import Path
from typing import Any

from engine.dataset.load import load_scene
from engine.dataset.loading import Cancelled, Progress
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Finding, Scene, Severity
from engine.errors import LoadingCancelled, SceneError
from engine.settings import Settings

FINDING_CODES: dict[str, str] = {
    "alpha": "Photos have transparency.",
    "distortion_invalid": "A lens makes no sense; its photos are left out.",
    "extent_from_points": "All cameras stand at one place.",
    "few_usable_views": "Most views see no sparse point.",
    "few_views": "There are fewer than eight photos to train on.",
    "large_coordinates": "The scene lies far from its origin.",
    "little_area_kept": "Undistorting loses more than half of a photo.",
    "masks_unused": "There are masks, in a folder or beside the photos, which are not used.",
    "matched_base_name": "Photos were found by their base name in another folder.",
    "matched_folded": "Photos were found with other upper or lower case or accents.",
    "matched_stem": "Photos were found with another extension.",
    "model_chosen": "There are several COLMAP models; the largest is used.",
    "model_smaller": "The COLMAP model that was given is not the largest beside it.",
    "model_unreadable": "One of several COLMAP models cannot be read.",
    "nothing_held_out": "No photo is held out, for none would be left to train on.",
    "photo_missing": "A pose names a photo that does not exist.",
    "photo_size_mismatch": "A photo does not have the shape of its camera; it is left out.",
    "photo_twice": "Two poses lead to one photo.",
    "photo_unreadable": "A photo cannot be decoded; it is left out.",
    "photo_without_pose": "A photo has no pose; it is not used.",
    "photos_rotated": "Photos are turned by their EXIF orientation.",
    "photos_scaled": "Photos have another size than their cameras; the cameras are scaled.",
    "photos_undistorted": "Photos are undistorted in memory.",
    "points_dropped": "Sparse points are not finite.",
    "points_in_view": "How many sparse points some camera sees.",
    "points_missing": "There are no sparse points; random ones are used.",
    "points_out_of_view": "Many sparse points are seen by no camera.",
    "pose_invalid": "A pose is no rigid transform; its photo is left out.",
    "reprojection": "How well sparse points fall on where they were seen.",
    "reprojection_large": "Sparse points fall far from where they were seen.",
    "scaled": "The scene is very small or large and is scaled for training.",
    "scene_above": "The folder of photos was given; the scene around it is opened.",
    "scene_unusable": "The scene cannot be opened at all.",
    "seed_cloud_found": "A point cloud beside the poses is used.",
    "seed_cloud_missing": "A point cloud that is named does not exist.",
    "seed_cloud_unreadable": "A point cloud cannot be used.",
    "seed_colors_missing": "A point cloud has no colours.",
    "seed_points_dropped": "A point cloud has points that are not finite.",
    "two_formats": "Two formats lie side by side; COLMAP is used.",
    "view_without_points": "A view sees no sparse point.",
}
_SKIPPING = (
    "distortion_invalid",
    "photo_missing",
    "photo_size_mismatch",
    "photo_twice",
    "photo_unreadable",
    "photo_without_pose",
    "pose_invalid",
)
_ORDER: tuple[Severity, ...] = ("ok", "warning", "error")


def check_report(scene: Scene) -> dict[str, Any]:
    """The findings of a scene in the shape that `splatscope check --json` prints."""
    return _report(scene.findings, len(scene.photos))


def check_scene(
    path: Path,
    settings: Settings,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> dict[str, Any]:
    """Open a scene, decode every photo and report; a scene that cannot be opened is a finding.

    Raises LoadingCancelled only.
    """
    try:
        scene = load_scene(path, settings, progress, cancelled)
        store = PhotoStore(scene, settings)
        scene = store.load_all(progress, cancelled)
        store.close()
    except LoadingCancelled:
        raise
    except SceneError as error:
        file = str(error.path) if error.path else str(path)
        return _report((Finding("scene_unusable", "error", file, str(error)),), 0)
    return check_report(scene)


def _report(findings: tuple[Finding, ...], used: int) -> dict[str, Any]:
    worst = max((_ORDER.index(item.severity) for item in findings), default=0)
    skipped = {item.file for item in findings if item.code in _SKIPPING}
    return {
        "severity": _ORDER[worst],
        "photos": {"used": used, "skipped": len(skipped)},
        "findings": [
            {
                "code": item.code,
                "severity": item.severity,
                "file": item.file,
                "message": item.message,
            }
            for item in findings
        ],
    }
