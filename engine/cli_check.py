"""`splatscope check`: the findings for a scene."""

import argparse
import sys

from engine.cli import print_json
from engine.cli_flags import EXIT_FAILURE, given_values
from engine.dataset.check import check_scene
from engine.scene_names import scene_path
from engine.settings import Settings


def check(arguments: argparse.Namespace) -> int:
    """Print the findings; the exit code tells whether one is an error."""
    settings = Settings().updated(given_values(arguments))
    report = check_scene(scene_path(arguments.scene), settings)
    if arguments.json:
        print_json(report)
    else:
        _print_text(report["findings"], report["photos"], report["severity"])
    if report["severity"] != "error":
        return 0
    worst = next(item for item in report["findings"] if item["severity"] == "error")
    print(f"splatscope: {worst['message']}", file=sys.stderr)  # noqa: T201
    return EXIT_FAILURE


def _print_text(findings: list[dict[str, str]], photos: dict[str, int], severity: str) -> None:
    for item in findings:
        place = f"{item['file']}: " if item["file"] else ""
        print(f"{item['severity']:8}{place}{item['message']}")  # noqa: T201
    print(  # noqa: T201
        f"{photos['used']} photos are used, {photos['skipped']} are left out. "
        f"The scene is {_VERDICTS[severity]}."
    )


_VERDICTS = {"ok": "fine", "warning": "usable, with warnings", "error": "not fine"}
