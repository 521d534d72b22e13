"""`check`: findings for scripts and for people."""

import re
from pathlib import Path

from engine import cli
from tests.engine.cli.commands import SHORT, Capture, strict
from tests.engine.driving import write_tiny_scene


def test_check_prints_the_stable_json(scene: Path, capsys: Capture) -> None:
    assert cli.main(["check", str(scene), "--json"]) == 0
    report = strict(capsys.readouterr().out)
    assert list(report) == ["severity", "photos", "findings"]
    assert report["severity"] in ("ok", "warning")
    assert report["photos"] == {"used": 10, "skipped": 0}
    for finding in report["findings"]:
        assert list(finding) == ["code", "severity", "file", "message"]


def test_check_of_an_unusable_scene_leaves_with_1_and_json_alone(
    tmp_path: Path, capsys: Capture
) -> None:
    assert cli.main(["check", str(tmp_path), "--json"]) == 1
    text = capsys.readouterr()
    report = strict(text.out)
    assert report["severity"] == "error"
    assert str(tmp_path) in report["findings"][0]["message"]
    assert text.err == ""


def test_check_speaks_to_people_too(scene: Path, capsys: Capture) -> None:
    assert cli.main(["check", str(scene)]) == 0
    assert "10 photos are used, 0 left out." in capsys.readouterr().out


def test_photos_with_the_same_trouble_are_one_line_for_people_and_one_finding_each_for_scripts(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = write_tiny_scene(tmp_path / "scene", photos=16)
    for number in (1, 2, 4, 5):
        (folder / "images" / f"photo_{number:03d}.png").unlink()
    assert cli.main(["check", str(folder)]) == 0
    told = capsys.readouterr().out
    (line,) = [line for line in told.splitlines() if "photo_001.png" in line]
    assert line.startswith("warning: 4 photos that poses name do not exist: photo_001.png, ")
    assert "photo_004.png and 1 more." in line
    assert cli.main(["check", str(folder), "--json"]) == 0
    findings = strict(capsys.readouterr().out)["findings"]
    missing = [item["file"] for item in findings if item["code"] == "photo_missing"]
    assert missing == [f"photo_{number:03d}.png" for number in (1, 2, 4, 5)]


def test_a_scene_that_cannot_be_opened_is_told_once(tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["check", str(tmp_path)]) == 1
    text = capsys.readouterr()
    assert text.out == ""
    assert text.err.count("is an empty folder") == 1
    assert text.err.count(str(tmp_path)) == 1


def test_check_and_train_agree_on_a_broken_photo(tmp_path: Path, capsys: Capture) -> None:
    folder = write_tiny_scene(tmp_path / "scene", photos=12)
    photo = folder / "images" / "photo_003.png"
    photo.write_bytes(photo.read_bytes()[:-60])
    assert cli.main(["check", str(folder)]) == 0
    told = capsys.readouterr().out
    assert f"warning: {photo} cannot be decoded" in told
    assert "11 photos are used, 1 left out. The scene is usable, with warnings." in told
    assert cli.main(["train", str(folder), "--output", str(tmp_path / "r"), *SHORT]) == 0
    said = capsys.readouterr().err
    assert said.count(f"warning: {photo} cannot be decoded") == 1
    assert said.splitlines()[-1] == "The check of the scene found warnings; see above."


def test_the_photos_that_can_be_used_are_counted_even_when_all_is_well(
    scene: Path, capsys: Capture
) -> None:
    assert cli.main(["check", str(scene)]) == 0
    expected = "10 of 10 photos with a pose can be used: 8 to train on, 2 held out to measure on."
    assert expected in capsys.readouterr().out


def test_one_photo_is_not_spoken_of_as_several(tmp_path: Path, capsys: Capture) -> None:
    folder = write_tiny_scene(tmp_path / "scene", photos=1)
    assert cli.main(["check", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "1 photo is used, 0 left out." in told
    assert not re.search(r"\b1 (photos|are|poses)\b", told)
