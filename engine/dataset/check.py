"""The check of a scene as a report that scripts and people read; its codes are in `findings`."""

from pathlib import Path
from typing import Any

from engine.dataset.findings import skipped_files, worst_severity
from engine.dataset.load import load_scene
from engine.dataset.loading import Progress
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Finding, Scene
from engine.errors import SceneError
from engine.settings import Settings


def check_report(scene: Scene) -> dict[str, Any]:
    """The findings of a scene in the shape that `splatscope check --json` prints."""
    return _report(scene.findings, len(scene.photos))


def check_scene(path: Path, settings: Settings, progress: Progress | None = None) -> dict[str, Any]:
    """Open a scene, decode every photo and report; a scene that cannot be opened is a finding.

    Raises SettingError as `load_scene` does.
    """
    try:
        scene = load_scene(path, settings, progress)
        store = PhotoStore(scene, settings)
        scene = store.load_all(progress)
        store.close()
    except SceneError as error:
        file = str(error.path) if error.path else str(path)
        return _report((Finding("scene_unusable", "error", file, str(error)),), 0)
    return check_report(scene)


def _report(findings: tuple[Finding, ...], used: int) -> dict[str, Any]:
    return {
        "severity": worst_severity(findings),
        "photos": {"used": used, "skipped": len(skipped_files(findings))},
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
