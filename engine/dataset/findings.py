"""The codes of findings, and what people are told of many alike.

Findings are made where they are noticed: `layout`, `photo_matching`, `transforms_json`,
`point_cloud`, `checks`. There is one for each file, which is what scripts want; `grouped` makes
one line of those with the same code.
"""

import dataclasses
from collections.abc import Iterable

from engine.dataset.scene import Finding, Photo, Scene, Severity
from engine.wording import counted, listed

FINDING_CODES: dict[str, str] = {
    "alpha": "Photos have transparency.",
    "distortion_invalid": "A lens is missing or makes no sense; its photos are left out.",
    "entry_invalid": "An entry of a pose file cannot be read; its photo is left out.",
    "extent_from_points": "All cameras stand at one place.",
    "few_usable_views": "Most views see no sparse point.",
    "few_views": "There are fewer than eight photos to train on.",
    "large_coordinates": "The scene lies far from its origin.",
    "little_area_kept": "Undistorting loses more than half of a photo.",
    "masks_unused": "There are masks, which are not used: photos are trained on in full.",
    "matched_base_name": "Photos were found by their base name in another folder.",
    "matched_folded": "Photos were found with other upper or lower case or accents.",
    "matched_stem": "Photos were found with another extension.",
    "model_chosen": "There are several COLMAP models; the largest is used.",
    "model_smaller": "The COLMAP model that was given is not the largest beside it.",
    "model_unreadable": "One of several COLMAP models cannot be read.",
    "nothing_held_out": "No photo is held out, for none would be left to train on.",
    "observations_invalid": "The 2-D points of a photo cannot be read; the check goes without.",
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
    "points_unreadable": "The sparse points are no plain file; they are left out.",
    "pose_invalid": "A pose is missing or no rigid transform; its photo is left out.",
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
    "usable_views": "How many photos are used, to train on and to measure on.",
    "view_without_points": "A view sees no sparse point.",
}

_WITHOUT_POSE = "photo_without_pose"
_LOST_VIEWS = (
    "distortion_invalid",
    "entry_invalid",
    "photo_missing",
    "photo_size_mismatch",
    "photo_twice",
    "photo_unreadable",
    "pose_invalid",
)
_COUNTS = ("photos_rotated", "photos_undistorted", "usable_views")
_ORDER: tuple[Severity, ...] = ("ok", "warning", "error")

# What many findings of one code are called together; `{first}` is the message of the first.
_TOGETHER = {
    "distortion_invalid": "{photos} have no lens that makes sense and are left out: {names}. "
    "The first: {first}",
    "entry_invalid": "The entries of {photos} in the pose file cannot be read; they are left out: "
    "{names}. The first: {first}",
    "little_area_kept": "Undistorting loses more than half of {photos}: {names}. The first: "
    "{first}",
    "observations_invalid": "The 2-D points of {photos} cannot be read; the check goes without: "
    "{names}. The first: {first}",
    "photo_missing": "{photos} that poses name do not exist: {names}. Their poses are left out. "
    "Put the photos back if they should be used.",
    "photo_size_mismatch": "{photos} do not have the shape of their cameras and are left out: "
    "{names}. The first: {first}",
    "photo_twice": "{photos} are named by two poses each, of which the second is left out: "
    "{names}. Give every photo a name of its own.",
    "photo_unreadable": "{photos} cannot be decoded and are left out: {names}. The first: {first}",
    "photo_without_pose": "{photos} have no pose and are not used: {names}. The program that made "
    "the poses could not place them.",
    "pose_invalid": "{photos} have no pose that can be used and are left out: {names}. The first: "
    "{first}",
    "view_without_points": "{photos} see none of the sparse points; their poses are probably "
    "wrong: {names}.",
}


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """Findings for people: one for many files with the same trouble, the gravest last."""
    alike: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.severity, finding.code), []).append(finding)
    result: list[Finding] = []
    for (severity, code), items in alike.items():
        if len(items) == 1 or code not in _TOGETHER:
            result += items
            continue
        message = _TOGETHER[code].format(
            photos=counted(len(items), "photo"),
            names=listed([item.file for item in items]),
            first=items[0].message,
        )
        result.append(Finding(code, severity, "", message))
    return sorted(result, key=lambda item: _rank(item.severity))


def finding_line(finding: Finding) -> str:
    """One line for a terminal; the file comes first unless the message names it."""
    is_named = not finding.file or finding.file in finding.message
    place = "" if is_named else f"{finding.file}: "
    return f"{finding.severity + ':':9}{place}{finding.message}"


def worst_severity(findings: Iterable[Finding]) -> Severity:
    """The gravest among the findings, ok without any."""
    return _ORDER[max((_rank(item.severity) for item in findings), default=0)]


def _rank(severity: Severity) -> int:
    return _ORDER.index(severity)


def skipped_files(findings: Iterable[Finding]) -> set[str]:
    """The photos that are not used, for whatever reason."""
    return {item.file for item in findings if item.code in (*_LOST_VIEWS, _WITHOUT_POSE)}


def only_name(names: list[str]) -> str:
    """The file of a finding about these photos: none where it is about several."""
    return names[0] if len(names) == 1 else ""


def counted_photos(names: list[str]) -> str:
    """The beginning of what is told of them: "1 photo was", "12 photos were"."""
    return f"{counted(len(names), 'photo')} {'was' if len(names) == 1 else 'were'}"


def with_photo_counts(scene: Scene) -> Scene:
    """The scene with those findings up to date that count the photos it uses."""
    others = tuple(item for item in scene.findings if item.code not in _COUNTS)
    prepared = _prepared(scene.photos)
    return dataclasses.replace(scene, findings=(*others, *prepared, _usable(scene, others)))


def _prepared(photos: Iterable[Photo]) -> list[Finding]:
    """What is done to photos before anyone trains on them."""
    rotated: list[str] = []
    bent: dict[str, list[str]] = {}  # by the camera model
    for photo in photos:
        if photo.rotate_by_exif:
            rotated.append(photo.name)
        if photo.distortion is not None:
            bent.setdefault(photo.distortion.model, []).append(photo.name)
    findings = []
    if rotated:
        message = (
            f"{counted_photos(rotated)} turned by the EXIF orientation, because that is what fits "
            "the camera's width and height."
        )
        findings.append(Finding("photos_rotated", "ok", only_name(rotated), message))
    for model, names in bent.items():
        message = f"{counted_photos(names)} undistorted in memory (camera model {model})."
        findings.append(Finding("photos_undistorted", "ok", "", message))
    return findings


def _usable(scene: Scene, others: Iterable[Finding]) -> Finding:
    used = len(scene.photos)
    posed = used + len({item.file for item in others if item.code in _LOST_VIEWS})
    held_out = len(scene.held_out)
    message = (
        f"{used:,} of {counted(posed, 'photo')} with a pose can be used: {used - held_out:,} to "
        f"train on, {held_out:,} held out to measure on."
    )
    severity: Severity = "ok" if 2 * used >= posed else "warning"
    return Finding("usable_views", severity, "", message)
