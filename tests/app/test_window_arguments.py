"""What the window's command line refuses before anything is opened."""

from pathlib import Path

import pytest

from app import application
from app.application import run_window


def test_a_word_that_is_neither_a_command_nor_a_path_is_refused_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_window(["frobnicate"]) == 2
    said = capsys.readouterr().err
    assert "frobnicate is neither a command nor something to open" in said
    assert "splatscope --help" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["trian", "demo", "--output", "x"], "did you mean splatscope train?"),
        (["DOCTR"], "did you mean splatscope doctor?"),
        (["dmeo", "--paused"], "did you mean splatscope demo?"),
        (["--presett", "classic"], "no argument --presett; did you mean --preset?"),
        (["--vesion"], "did you mean --version?"),
        (["demo", "--outptu", "x"], "no argument --outptu; see splatscope --help"),
    ],
)
def test_a_misspelt_word_gets_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    try:
        code = run_window(arguments)
    except SystemExit as left:
        code = int(left.code or 0)
    said = capsys.readouterr().err
    assert code == 2
    assert says in said
    assert said.count("\n") == 1


def test_what_lies_there_is_opened_though_a_command_resembles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trian").mkdir()
    monkeypatch.setattr(application, "load_preferences", _stop)
    with pytest.raises(_Stopped):  # it is taken for a scene: the window is about to be made
        run_window(["trian"])


@pytest.mark.parametrize("name", ["README.md", "run.toml", "splats.ply"])
def test_a_file_that_is_no_scene_is_refused_before_a_window_opens(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    monkeypatch.setattr(application, "load_preferences", _stop)
    (tmp_path / name).write_text("words")
    assert run_window([str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert f"splatscope: {tmp_path / name} is " in said
    assert "not a scene; expected a COLMAP model" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["transforms.json", "transforms_train.json"])
def test_the_file_of_a_scene_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(application, "load_preferences", _stop)
    (tmp_path / name).write_text("{}")
    with pytest.raises(_Stopped):  # what is in it, the window tells
        run_window([str(tmp_path / name)])


class _Stopped(Exception):
    pass


def _stop() -> None:
    raise _Stopped
