"""`splatscope check`: the findings for a scene."""

import argparse
from typing import Any

from engine.cli import fail, print_json
from engine.cli_flags import EXIT_FAILURE, given_values
from engine.cli_progress import Progress
from engine.dataset.check import check_scene
from engine.dataset.findings import finding_line, grouped
from engine.dataset.scene import Finding
from engine.scene_names import scene_path
from engine.settings import Settings
from engine.wording import counted, printable

_VERDICTS = {"ok": "fine", "warning": "usable, with warnings", "error": "not fine"}


def check(arguments: argparse.Namespace) -> int:
    """Print the findings; the exit code tells whether one is an error.

    As JSON every file has a finding of its own; for people those that are alike are one line.
    """
    settings = Settings().updated(given_values(arguments))
    with Progress() as progress:
        report = check_scene(scene_path(arguments.scene), settings, progress.reading)
    findings = [Finding(**item) for item in report["findings"]]
    if arguments.json:
        print_json(report)
    elif findings[0].code == "scene_unusable":
        return fail(findings[0].message, debug=False)
    else:
        _print_text(findings, report)
    return EXIT_FAILURE if report["severity"] == "error" else 0


def _print_text(findings: list[Finding], report: dict[str, Any]) -> None:
    for finding in grouped(findings):
        print(printable(finding_line(finding)))  # noqa: T201
    used, skipped = report["photos"]["used"], report["photos"]["skipped"]
    print(  # noqa: T201
        f"{counted(used, 'photo')} {'is' if used == 1 else 'are'} used, {skipped:,} left out. "
        f"The scene is {_VERDICTS[report['severity']]}."
    )
