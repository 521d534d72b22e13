"""`eval` and `render`: a finished model against a scene."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import cli
from tests.engine.cli.commands import Capture, failing, strict
from tests.engine.dataset.scene_files import make_views, transforms, write_photos
from tests.engine.driving import write_tiny_scene


def test_eval_prints_the_stable_json(run: Path, scene: Path, capsys: Capture) -> None:
    assert cli.main(["eval", str(run), str(scene), "--json"]) == 0
    result = strict(capsys.readouterr().out)
    assert list(result) == ["psnr", "ssim", "splats", "images"]
    assert [list(image) for image in result["images"]] == [["name", "psnr", "ssim"]] * 2
    assert result["splats"] == 40
    last = strict((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert result["psnr"] == last["psnr"]
    assert result["ssim"] == last["held_out_ssim"]


def test_eval_of_the_splat_file_agrees_with_the_run(
    run: Path, scene: Path, capsys: Capture
) -> None:
    assert cli.main(["eval", str(run), str(scene), "--json"]) == 0
    of_run = strict(capsys.readouterr().out)
    ply = run / "exports" / "step-000006.ply"
    assert cli.main(["eval", str(ply), str(scene), "--json"]) == 0
    of_file = strict(capsys.readouterr().out)
    # the file holds float32 in the files' frame, a few units from the origin
    assert of_file["psnr"] == pytest.approx(of_run["psnr"], abs=1e-3)
    checkpoint = run / "checkpoints" / "step-000006.safetensors"
    assert cli.main(["eval", str(checkpoint), str(scene), "--json"]) == 0
    assert strict(capsys.readouterr().out) == of_run


def test_eval_speaks_to_people_too(run: Path, scene: Path, capsys: Capture) -> None:
    assert cli.main(["eval", str(run), str(scene)]) == 0
    text = capsys.readouterr().out
    assert "photo_000.png: PSNR" in text
    assert "40 splats, 2 held-out photos" in text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "nothing.ply", "There is no"),
        (lambda folder: folder, "is not a run folder"),
        (lambda folder: _cloud(folder), "is a point cloud, not splats"),
    ],
)
def test_eval_of_what_is_no_model_fails_with_a_sentence(
    make: Any, says: str, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert says in failing(capsys, ["eval", str(make(tmp_path)), str(scene), "--json"], 1)


def _cloud(folder: Path) -> Path:
    path = folder / "input.ply"
    path.write_text(
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
        "property float z\nend_header\n0 0 0\n"
    )
    return path


def test_eval_without_held_out_photos_says_so(run: Path, scene: Path, capsys: Capture) -> None:
    arguments = ["eval", str(run), str(scene), "--test-every", "0", "--json"]
    assert "is held out" in failing(capsys, arguments, 1)


def test_render_draws_held_out_views_or_all(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert cli.main(["render", str(run), str(scene), "--output", str(tmp_path / "a")]) == 0
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["photo_000.png", "photo_008.png"]
    with Image.open(tmp_path / "a" / "photo_000.png") as picture:
        assert picture.size == (32, 24)
        assert picture.mode == "RGB"
        assert len(np.unique(np.asarray(picture))) > 3
    assert cli.main(["render", str(run), str(scene), "--output", str(tmp_path / "b"), "--all"]) == 0
    assert len(list((tmp_path / "b").iterdir())) == 10
    assert capsys.readouterr().out.splitlines() == [
        f"2 pictures are in {tmp_path / 'a'}.",
        f"10 pictures are in {tmp_path / 'b'}.",
    ]


def test_render_says_what_it_replaces(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["render", str(run), str(scene), "--output", str(tmp_path)]
    assert cli.main(arguments) == 0
    before = (tmp_path / "photo_000.png").read_bytes()
    (tmp_path / "photo_000.png").write_text("mine")
    (tmp_path / "photo_008.png").unlink()
    capsys.readouterr()
    assert cli.main(arguments) == 0
    said = capsys.readouterr().out
    assert said == f"2 pictures are in {tmp_path}; 1 of them in the place of an earlier one.\n"
    assert (tmp_path / "photo_000.png").read_bytes() == before
    assert cli.main([*arguments, "--json"]) == 0
    assert strict(capsys.readouterr().out)["replaced"] == 2


def test_render_prints_as_json_which_file_is_whose_view(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["render", str(run), str(scene), "--output", str(tmp_path / "a"), "--json"]
    assert cli.main(arguments) == 0
    told = strict(capsys.readouterr().out)
    assert [image["name"] for image in told["images"]] == ["photo_000.png", "photo_008.png"]
    assert all(Path(image["path"]).is_file() for image in told["images"])
    assert told["splats"] > 0


def test_render_into_a_file_fails_with_its_name(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "f").write_text("")
    said = failing(capsys, ["render", str(run), str(scene), "--output", str(tmp_path / "f")], 1)
    assert f"{tmp_path / 'f'} is a file; expected a folder" in said


@pytest.mark.parametrize(
    "model", ["", "checkpoints/step-000006.safetensors", "exports/step-000006.ply"]
)
def test_a_model_of_another_scene_is_told_beside_the_scores(
    model: str, run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    other = write_tiny_scene(tmp_path / "other", photos=9, seed=1)
    assert cli.main(["eval", str(run / model), str(other), "--json"]) == 0
    text = capsys.readouterr()
    strict(text.out)
    assert f"{scene}, and {other} is another scene" in text.err
    assert cli.main(["eval", str(run / model), str(scene), "--json", "--test-every", "4"]) == 0
    assert capsys.readouterr().err == ""


def test_a_moved_scene_is_no_other_scene(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    moved = shutil.copytree(scene, tmp_path / "moved")
    assert cli.main(["eval", str(run), str(moved), "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_broken_held_out_photos_are_told(
    run: Path, scene: Path, tmp_path: Path, capsys: Capture
) -> None:
    copy = Path(shutil.copytree(scene, tmp_path / "copy"))
    photo = copy / "images" / "photo_008.png"
    photo.write_bytes(photo.read_bytes()[:-60])
    assert cli.main(["eval", str(run), str(copy)]) == 0
    text = capsys.readouterr()
    assert f"warning: {photo} cannot be decoded" in text.err
    assert "1 held-out photo: PSNR" in text.out


def test_pictures_never_leave_their_folder(run: Path, tmp_path: Path, capsys: Capture) -> None:
    views = make_views(9)
    write_photos(tmp_path / "images", views)
    (tmp_path / "scene").mkdir()
    content: Any = transforms(views)
    for number, frame in enumerate(content["frames"]):
        place = tmp_path if number % 2 else Path("..")
        frame["file_path"] = str(place / frame["file_path"])
    (tmp_path / "scene" / "transforms.json").write_text(json.dumps(content))
    before = {path: path.read_bytes() for path in (tmp_path / "images").iterdir()}
    arguments = ["render", str(run), str(tmp_path / "scene"), "--all"]
    assert cli.main([*arguments, "--output", str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out").rglob("*.png"))) == 9
    assert {path: path.read_bytes() for path in (tmp_path / "images").iterdir()} == before


def test_pictures_are_never_put_among_the_photos(
    run: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = write_tiny_scene(tmp_path / "scene")
    before = (folder / "images" / "photo_000.png").read_bytes()
    arguments = ["render", str(run), str(folder), "--output", str(folder / "images")]
    assert f"{folder / 'images'} holds photos of the scene" in failing(capsys, arguments, 1)
    assert len(list((folder / "images").iterdir())) == 8
    assert (folder / "images" / "photo_000.png").read_bytes() == before
