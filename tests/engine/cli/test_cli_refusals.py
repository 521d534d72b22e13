"""What is refused: quickly where torch is not needed for it, and with the reason alone."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine import cli
from engine.run.run_folder import RunFacts, RunFolder
from engine.settings import Settings
from tests.child_process import run_python
from tests.engine.cli.commands import Capture, failing
from tests.engine.ply_files import write_ply

_SAYS_WHAT_WAS_IMPORTED = """
import contextlib, json, sys
from app.__main__ import run
codes = []
for arguments in json.loads(sys.argv[1]):
    try:
        codes.append(run(arguments))
    except SystemExit as left:
        codes.append(left.code)
print(json.dumps([codes, "torch" in sys.modules]))
"""


SPLAT = (
    *("x", "y", "z", "opacity", "f_dc_0", "f_dc_1", "f_dc_2"),
    *("scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"),
)


def vertices(*names: str) -> np.ndarray:
    return np.zeros(3, dtype=[(name, "f4") for name in names])


def test_what_can_be_refused_without_torch_is_refused_before_it_is_imported(
    tmp_path: Path,
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    photo, cloud = tmp_path / "a.jpg", tmp_path / "cloud.ply"
    photo.write_bytes(b"a picture")
    write_ply(cloud, {"vertex": vertices("x", "y", "z")})
    splats = tmp_path / "splats.ply"
    write_ply(splats, {"vertex": vertices(*SPLAT)})
    old = RunFolder(tmp_path / "old")
    old.create()
    old.write_facts(Settings(), RunFacts("../gone", "gone", "cpu", "CPU", {}))
    used = tmp_path / "used"
    used.mkdir()
    (used / "notes.txt").write_text("mine")
    train = ["train", "demo", "--output", str(tmp_path / "new")]
    refused = [
        ([*train, "--iterations", "0"], 2, "iterations is 0"),
        ([*train, "--iteration", "5"], 2, "--iterations"),
        ([*train, "--preset", "clasic"], 2, "Did you mean classic"),
        ([*train[2:], "--iterations", "5"], 2, "--output"),
        (["train", *train[2:]], 2, "name a scene"),
        (["train", "nowhere", *train[2:]], 1, "nowhere does not exist"),
        (["train", "demo", "--output", str(used)], 1, "already holds files"),
        (["train", "--output", str(used), "--resume"], 1, "not a run folder"),
        (["eval", "some.ply", "nowhere"], 1, "nowhere does not exist"),
        (["eval", "some.ply", "demo", "--threads", "-1"], 2, "threads is -1"),
        (["render", "some.ply", "nowhere", *train[2:]], 1, "nowhere does not exist"),
        (["render", "some.ply", "demo", *train[2:], "--gpu", "x"], 2, "gpu is 'x'"),
        (["check", "nowhere"], 1, "nowhere does not exist"),
        (["check", "demo", "--resolution", "-3"], 2, "resolution is -3"),
        (["check", "demo", "--resolution", "3"], 2, "a width of at least 16 pixels"),
        (["check", str(empty)], 1, "is an empty folder"),
        (["check", str(used)], 1, "is not a scene: found notes.txt"),
        (["check", str(cloud)], 1, "is a point cloud, not a scene"),
        (["train", str(photo), *train[2:]], 1, "is a single file, not a scene"),
        (["eval", "some.ply", str(empty)], 1, "is an empty folder"),
        (["eval", "some.ply", "demo"], 1, "There is no some.ply"),
        (["eval", str(used), "demo"], 1, "is not a run folder"),
        (["eval", str(photo), "demo"], 1, "a.jpg is not a PLY file"),
        (["render", str(cloud), "demo", *train[2:]], 1, "is a point cloud, not splats"),
        (["render", str(empty), "demo", *train[2:]], 1, "is not a run folder"),
        (["render", str(splats), "demo", "--output", str(photo)], 1, "expected a folder for the"),
        (["eval", str(old.path), "demo"], 1, "has no checkpoint"),
        (["train", "--output", str(old.path), "--resume"], 1, "gone does not exist"),
        (["doctor", "--jsn"], 2, "did you mean --json"),
    ]
    arguments = json.dumps([arguments for arguments, _, _ in refused])
    done = run_python("-c", _SAYS_WHAT_WAS_IMPORTED, arguments)
    codes, has_torch = json.loads(done.stdout)
    said = done.stderr.splitlines()
    assert codes == [code for _, code, _ in refused]
    assert len(said) == len(refused), done.stderr
    for line, (_, _, words) in zip(said, refused, strict=True):
        assert words in line
    assert not has_torch
    assert not (tmp_path / "new").exists()


def test_a_missing_scene_is_still_a_finding_in_json(capsys: Capture) -> None:
    assert cli.main(["check", "nowhere", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [item["code"] for item in report["findings"]] == ["scene_unusable"]


@pytest.mark.parametrize("scene", ["demo", "nowhere", "empty"])
def test_a_refusal_comes_without_a_word_on_presets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, scene: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    # No machine has so many GPUs, so that this is refused with and without one.
    arguments = ["train", scene, "--output", "out", "--backend", "cuda", "--gpu", "15"]
    assert cli.main(arguments) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    line = said.strip()
    assert line.startswith("splatscope: ")
    assert "reset" not in line
    assert not (tmp_path / "out").exists()


def test_a_value_out_of_range_leaves_with_2_whatever_else_is_wrong(capsys: Capture) -> None:
    arguments = ["train", "nowhere", "--output", "out", "--opacity-lr", "7"]
    assert "opacity_lr is 7" in failing(capsys, arguments, 2)
