"""Pictures of the real window, dark and light, training a scene on a virtual screen.

    python -m scripts.screenshot SCENE [--steps 800] [--size 1600x1000] [--output docs] [flags]

The program runs as a user would start it, with a home of its own; the picture is what the screen
shows, not what a widget would paint. Flags that are not known here go to the program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.gui.private_display import PrivateDisplay

ROOT = Path(__file__).resolve().parent.parent
THEMES = ("dark", "light")
PATIENCE_SECONDS = 900.0
SETTLE_SECONDS = 3.0  # for the picture at rest, the plots and the thumbnails
GRAB = """
import sys
from PySide6.QtGui import QGuiApplication
application = QGuiApplication([])
picture = application.primaryScreen().grabWindow(0)
sys.exit(0 if picture.save(sys.argv[1]) else 1)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Take one picture a theme; the exit code."""
    parser = argparse.ArgumentParser(description="Take pictures of the window.")
    parser.add_argument("scene", help="a scene folder, or demo")
    parser.add_argument("--steps", type=int, default=800, help="when to take the picture")
    parser.add_argument("--size", default="1600x1000", help="of the screen, which the window fills")
    parser.add_argument("--scale", default="1", help="display scale, such as 2")
    parser.add_argument("--output", type=Path, default=ROOT / "docs")
    options, flags = parser.parse_known_args(arguments)
    if options.scene == "demo" and "--preset" not in flags:
        flags = ["--preset", "demo", *flags]
    width, height = (int(number) for number in options.size.split("x"))
    options.output.mkdir(parents=True, exist_ok=True)
    display = PrivateDisplay(width, height)
    try:
        for theme in THEMES:
            target = options.output / f"screenshot-{theme}.png"
            take_picture(options, flags, theme, display.environment(), target)
            print(target)
    finally:
        display.close()
    return 0


def take_picture(
    options: argparse.Namespace,
    flags: Sequence[str],
    theme: str,
    variables: dict[str, str],
    target: Path,
) -> None:
    """Run the program in a home of its own until it did the steps, and save what is shown."""
    with tempfile.TemporaryDirectory() as home:
        preferences = {"version": 1, "theme": theme, "maximized": True}
        (Path(home) / "preferences.json").write_text(json.dumps(preferences), encoding="utf-8")
        own = {
            "SPLATSCOPE_CONFIG_DIR": home,
            "SPLATSCOPE_LOG_DIR": home,
            "XDG_DATA_HOME": home,
            "QT_SCALE_FACTOR": options.scale,
        }
        program = subprocess.Popen(
            [sys.executable, "-m", "app", options.scene, *flags], cwd=ROOT, env=variables | own
        )
        try:
            _wait_for_steps(program, Path(home), options.steps)
            time.sleep(SETTLE_SECONDS)
            subprocess.run(
                [sys.executable, "-c", GRAB, str(target)], env=variables, check=True, timeout=60
            )
        finally:
            program.terminate()
            try:
                program.wait(30)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()


def _wait_for_steps(program: subprocess.Popen[bytes], home: Path, steps: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if program.poll() is not None:
            raise SystemExit(f"the program ended with code {program.returncode}")
        for metrics in home.rglob("metrics.jsonl"):
            if _steps_done(metrics) >= steps:
                return
        time.sleep(0.5)
    raise SystemExit(f"{steps} steps were not done within {PATIENCE_SECONDS:.0f} s")


def _steps_done(metrics: Path) -> int:
    with metrics.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        whole = file.read().splitlines()[1:-1]  # the first and the last may be cut
    return int(json.loads(whole[-1])["step"]) if whole else 0


if __name__ == "__main__":
    sys.exit(main())
