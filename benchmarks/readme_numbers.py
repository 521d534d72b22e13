"""The numbers of the README's table: held-out PSNR on the demo and on real scenes.

    python -m benchmarks.readme_numbers steps [--steps 2000] [--json FILE]
    python -m benchmarks.readme_numbers minute [--json FILE]
    python -m benchmarks.readme_numbers long [--scenes lego_400,fox] [--quick] [--json FILE]

`steps` trains every real scene for the same number of steps; `minute` trains the demo, fox and
banana for 60 seconds of wall time, counted from the start of the command. Each run is a
`splatscope train` of its own, so that start-up and loading count as a user meets them.

`long` trains each scene once with two cores, by the preset of machines without a GPU, and scores
the same run after 2, 5 and 10 minutes of training and after 7,000 steps (or after 15 minutes, where
it has not come so far). Start-up and evaluation do not count there. The poses of LLFF's fern, which
the program does not read, are written as a transforms.json first.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.llff_scene import write_transforms
from benchmarks.long_run import QUICK, LongRun, Marks
from engine.presets import load_preset
from engine.usual_preset import usual_preset

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SPLATSCOPE_DATA", ROOT.parent / "shared" / "data"))


@dataclasses.dataclass(frozen=True)
class Case:
    """A scene, what is special about it, and the flags it is trained with."""

    name: str
    scene: str
    kind: str
    flags: tuple[str, ...] = ()


STEP_CASES = (
    Case("banana", "banana", "COLMAP bin, SIMPLE_RADIAL", ("--resolution", "4")),
    Case("banana (text)", "banana/sparse_txt/0", "COLMAP txt, distorted", ("--resolution", "4")),
    Case("beer", "beer", "COLMAP bin, 71 cameras", ("--resolution", "4")),
    Case("banana (nerfstudio)", "banana/undistorted/transforms.json", "nerfstudio transforms",
         ("--resolution", "4")),
    Case("fox", "fox", "instant-ngp transforms", ("--resolution", "4")),
    Case("lego_400", "lego_400", "Blender, random start", ("--background", "white")),
)  # fmt: skip
MINUTE_CASES = (
    Case("demo", "demo", "built in", ("--preset", "demo")),
    *(
        Case(
            f"{scene} ({preset})", scene, "quarter size", ("--preset", preset, "--resolution", "4")
        )
        for scene in ("fox", "banana")
        for preset in ("classic", "cpu-fast")
    ),
)

LONG_CASES = (
    Case("lego_400", "lego_400", "400 x 400, random start", ("--background", "white")),
    Case("fox", "fox", "quarter size", ("--resolution", "4")),
    Case("fern", "fern", "504 x 378, an eighth"),
    Case("banana", "banana", "quarter size", ("--resolution", "4")),
)
CASES = {"steps": STEP_CASES, "minute": MINUTE_CASES, "long": LONG_CASES}


def splatscope(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a user would; its output is kept, its exit code is the caller's."""
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def scene_path(case: Case) -> str:
    """What to give the program as SCENE."""
    return case.scene if case.scene == "demo" else str(DATA / case.scene)


def last_metrics(output: Path) -> dict[str, float]:
    """The last line of a run's metrics, and the last PSNR measured in it."""
    lines = (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, float]] = [json.loads(line) for line in lines]
    scored = [row["psnr"] for row in rows if row.get("psnr") is not None]
    return rows[-1] | {"psnr": scored[-1] if scored else float("nan")}


def train_steps(case: Case, steps: int, folder: Path) -> dict[str, object]:
    """Train for `steps` steps and measure."""
    output = folder / case.name.replace(" ", "-")
    flags = ("--preset", "classic", "--iterations", str(steps), "--evaluation-interval", "0")
    start = time.monotonic()
    done = splatscope("train", scene_path(case), "--output", str(output), *flags, *case.flags)
    if done.returncode:
        raise SystemExit(f"{case.name} failed with {done.returncode}: {done.stderr[-800:]}")
    row = last_metrics(output)
    return {
        "scene": case.name, "kind": case.kind, "steps": row["step"], "psnr": row["psnr"],
        "splats": row["splats"], "training_s": row["seconds"],
        "wall_s": time.monotonic() - start,
    }  # fmt: skip


def train_minute(case: Case, folder: Path, seconds: float = 60.0) -> dict[str, object]:
    """Interrupt training `seconds` after the command's start (it saves), then measure."""
    output = folder / f"{case.name.replace(' ', '-')}-minute"
    command = [sys.executable, "-m", "app", "train", scene_path(case), "--output", str(output)]
    start = time.monotonic()
    process = subprocess.Popen(
        [*command, *case.flags], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(2)  # Ctrl+C: save and exit 130
        process.communicate()
    wall = time.monotonic() - start
    measured = splatscope("eval", str(output), scene_path(case), "--json")
    if measured.returncode:
        raise SystemExit(f"{case.name}: eval failed: {measured.stderr[-800:]}")
    scores = json.loads(measured.stdout)
    row = last_metrics(output)
    return {
        "scene": case.name, "kind": case.kind, "steps": row["step"], "psnr": scores["psnr"],
        "splats": scores["splats"], "training_s": row["seconds"], "wall_s": wall,
    }  # fmt: skip


def train_long(case: Case, folder: Path, marks: Marks) -> list[dict[str, object]]:
    """One run in this process, a row for every time at which it was scored."""
    preset = usual_preset("cpu").name
    given = zip(case.flags[::2], case.flags[1::2], strict=True)
    settings = load_preset(preset).updated(
        {flag.removeprefix("--"): value for flag, value in given}
    )
    scene = Path(scene_path(case))
    if (scene / "poses_bounds.npy").is_file():
        scene = write_transforms(scene, Path(tempfile.mkdtemp(dir=folder)))
    run = LongRun(scene, settings, folder / case.name, marks)
    return [
        {"scene": case.name, "kind": f"{case.kind}, {preset}", **dataclasses.asdict(score)}
        for score in run.scores()
    ]


def print_long_table(rows: list[dict[str, object]]) -> None:
    """As `print_table`, of the rows of `train_long`."""
    print("| scene | format | after | steps | splats | held-out PSNR | SSIM | training |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['scene']} | {row['kind']} | {row['mark']} | {row['steps']:,} "
            f"| {row['splats']:,} | {row['psnr']:.2f} dB | {row['ssim']:.4f} "
            f"| {row['seconds']:.0f} s |"
        )


def print_table(rows: list[dict[str, object]]) -> None:
    """A Markdown table, ready for the README."""
    print("| scene | format | steps | held-out PSNR | splats | training | wall |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['scene']} | {row['kind']} | {row['steps']:,} | {row['psnr']:.2f} dB "
            f"| {row['splats']:,} | {row['training_s']:.0f} s | {row['wall_s']:.0f} s |"
        )


def chosen(cases: Sequence[Case], scenes: str | None) -> list[Case]:
    """Those whose name contains one of the names between commas; all where nothing is given."""
    wanted = (scenes or "").split(",")
    found = [case for case in cases if any(part in case.name for part in wanted)]
    if not found:
        names = ", ".join(case.name for case in cases)
        raise SystemExit(f"--scenes {scenes} names none of {names}")
    return found


def main() -> None:
    """Run one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=tuple(CASES))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--scenes", help="only scenes whose name contains one of these, by commas")
    parser.add_argument(
        "--quick", action="store_true", help="seconds of `long`, to see that it runs"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cases = chosen(CASES[arguments.table], arguments.scenes)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="splatscope-numbers-") as folder:
        for case in cases:
            if arguments.table == "steps":
                found = [train_steps(case, arguments.steps, Path(folder))]
            elif arguments.table == "minute":
                found = [train_minute(case, Path(folder))]
            else:
                found = train_long(case, Path(folder), QUICK if arguments.quick else Marks())
            rows += found
            print(f"{case.name}: {found}", file=sys.stderr)
    (print_long_table if arguments.table == "long" else print_table)(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
