"""Real scenes of every format, small in pixels, from the command line to the files of a run."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine import cli
from engine.export.splat_files import read_splats

pytestmark = pytest.mark.slow
SCENES = {
    "COLMAP bin": "banana",
    "COLMAP txt with distortion": "banana/sparse_txt/0",
    "71 cameras": "beer",
    "nerfstudio transforms": "banana/undistorted/transforms.json",
    "instant-ngp transforms": "fox",
    "Blender": "lego_400",
}
STEPS = 60
FLAGS = ["--resolution", "8", "--random-points", "4000", "--background", "white"]
FLAGS += ["--preset", "classic"]


@pytest.mark.parametrize("name", SCENES)
def test_a_real_scene_of_each_format_learns_from_the_command_line(
    data_folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "run"
    arguments = ["train", str(data_folder / SCENES[name]), "--output", str(output), *FLAGS]
    assert cli.main([*arguments, "--iterations", str(STEPS)]) == 0
    assert "Held-out PSNR" in capsys.readouterr().out

    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows]
    assert len(losses) == STEPS
    # Each step sees another photo, so compare means of many; all six fall by more than a fifth.
    assert np.mean(losses[-20:]) < 0.85 * np.mean(losses[:10])
    assert rows[-1]["psnr"] > 8.0  # an untrained picture of these scenes scores below
    assert list((output / "checkpoints").glob("*.safetensors"))
    [export] = (output / "exports").glob("*.ply")
    assert len(read_splats(export).splats) == rows[-1]["splats"]
