"""Arguments of the command line: what is refused, and with which words."""

import argparse
import re
from pathlib import Path

import pytest

import app.__main__ as program
from app.application import window_parser
from engine import cli
from engine.cli_flags import Parser
from engine.foreign_names import FOREIGN_NAMES, meant_name
from engine.settings import all_settings
from tests.engine.cli.commands import Capture, failing


def test_a_typo_gets_the_nearest_flag(capsys: Capture) -> None:
    said = failing(capsys, ["train", "x", "--output", "y", "--itterations", "5"], 2)
    assert "--itterations; did you mean --iterations?" in said


@pytest.mark.parametrize("flag", ["--outptu", "--outptu=y", "-output", "--outp", "--outp=y"])
def test_a_misspelt_flag_is_told_rather_than_the_missing_one(capsys: Capture, flag: str) -> None:
    said = failing(capsys, ["train", "x", flag, "y"], 2)
    assert f"{flag.split('=')[0]}; did you mean --output?" in said


def test_a_misspelt_flag_is_told_in_any_language_of_the_library(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    translated = {"the following arguments are required: %s": "es fehlen: %s"}
    monkeypatch.setattr(argparse, "_", lambda text: translated.get(text, text))
    assert "es fehlen: --output" in failing(capsys, ["train", "x"], 2)
    assert "did you mean --output?" in failing(capsys, ["train", "x", "--outptu", "y"], 2)


@pytest.mark.parametrize(
    ("foreign", "own"),
    [
        ("--densify-from", "--densify-start"),
        ("--densify_from_iter", "--densify-start"),
        ("--densify-until-iter=9", "--densify-stop"),
        ("--lambda_dssim", "--ssim-weight"),
        ("--position_lr_init", "--position-lr-start"),
        ("--cap-max", "--max-splats"),
        ("--shN_lr", "--sh-rest-lr"),
        ("--model_path", "--output"),
    ],
)
def test_a_flag_of_another_program_gets_the_one_that_means_it(
    capsys: Capture, foreign: str, own: str
) -> None:
    said = failing(capsys, ["train", "x", "--output", "y", foreign, "1"], 2)
    assert f"there is no argument {foreign.split('=')[0]}; did you mean {own}?" in said


def test_every_name_of_another_program_leads_to_a_flag_and_is_none_itself() -> None:
    flags = {
        name.removeprefix("--").replace("-", "_") for name in (info.flag for info in all_settings())
    }
    flags.add("output")
    assert set(FOREIGN_NAMES.values()) <= flags
    assert not set(FOREIGN_NAMES) & flags
    for foreign, own in FOREIGN_NAMES.items():
        assert meant_name(foreign, flags) == own
    for own in flags:
        assert meant_name(own, flags) == own


def test_a_preset_with_a_name_of_another_program_gets_ours(capsys: Capture, tmp_path: Path) -> None:
    preset = tmp_path / "theirs.toml"
    preset.write_text("densify_from_iter = 600\n")
    arguments = ["train", "x", "--output", str(tmp_path / "y"), "--preset", str(preset)]
    assert "Did you mean densify_start?" in failing(capsys, arguments, 2)


def test_a_negative_value_is_not_taken_for_a_misspelt_flag(capsys: Capture) -> None:
    assert "--output" in failing(capsys, ["train", "x", "--seed", "-1"], 2)


def test_a_misspelt_flag_does_not_hide_what_stopped_the_reading(capsys: Capture) -> None:
    said = failing(capsys, ["train", "x", "--outptu", "y", "--preset"], 2)
    assert "--preset: expected one argument" in said


def test_help_says_after_a_refusal_too_what_is_required(capsys: Capture) -> None:
    parser = Parser(prog="paint")
    parser.add_argument("--output", required=True)
    with pytest.raises(SystemExit):
        parser.parse_args(["--outptu", "y"])
    capsys.readouterr()
    assert "[-h] --output OUTPUT" in parser.format_usage()


def test_a_misspelt_demo_is_told(capsys: Capture, tmp_path: Path) -> None:
    said = failing(capsys, ["train", "dmeo", "--output", str(tmp_path / "y")], 1)
    assert "Did you mean demo, the built-in scene?" in said


@pytest.mark.parametrize("given", [["--iter", "5"], ["--iter=5"]])
def test_abbreviations_are_not_taken(capsys: Capture, given: list[str]) -> None:
    said = failing(capsys, ["train", "x", "--output", "y", *given], 2)
    assert "there is no argument --iter;" in said


def test_a_value_may_follow_its_flag_behind_an_equals_sign(capsys: Capture) -> None:
    said = failing(capsys, ["train", "x", "--output=y", "--iterations=0"], 2)
    assert "iterations is 0; expected" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "x"], "--output"),
        (["train", "--output", "y"], "name a scene"),
        (["train", "x", "--output", "y", "--opacity-lr", "7"], "opacity_lr is 7; expected 0 to"),
        (["train", "x", "--output", "y", "--seed", "many"], "seed is 'many'; expected a number"),
        (["train", "x", "--output", "y", "--seed", "9" * 23], "99,999,999,999,999,999,999,999;"),
        (["train", "x", "--output", ""], "--output: it is empty"),
        (["train", "", "--output", "y"], "SCENE: it is empty"),
        (["check", ""], "SCENE: it is empty"),
        (["eval", "", "demo"], "RUN_OR_PLY: it is empty"),
        (["train", "x", "--output", "y", "--backend", "gpu"], "one of auto, cpu, cuda, reference"),
        (["train", "x", "--output", "y", "--preset", "clasic"], "Did you mean classic?"),
        (["frobnicate"], "frobnicate"),
        (["check", "demo", "--resolution", "3"], "resolution is 3; expected 1, 2, 4 or 8"),
        ([], "name one of"),
    ],
)
def test_bad_arguments_leave_with_2(capsys: Capture, arguments: list[str], says: str) -> None:
    assert says in failing(capsys, arguments, 2)


def test_a_preset_with_a_typo_names_the_nearest_setting(capsys: Capture, tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text("opacity_rl = 0.05\n")
    arguments = ["train", "x", "--output", str(tmp_path / "y"), "--preset", str(preset)]
    assert "Did you mean opacity_lr?" in failing(capsys, arguments, 2)


def test_every_setting_is_a_flag_with_its_meaning(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for info in all_settings():
        assert info.flag in text
        assert info.meaning.split(".")[0][:20] in text
    assert "0 to 1; default 0.025." in text  # the range of the opacity rate
    assert "a new colour for each step. Default black." in text


def test_every_flag_that_the_readme_names_exists(capsys: Capture) -> None:
    readme = (Path(__file__).resolve().parents[3] / "README.md").read_text()
    begin = readme.index("## Command line")
    section = readme[begin : readme.index("\n## ", begin)]
    known = window_parser().format_help()
    for word in cli.WORDS:
        with pytest.raises(SystemExit):
            cli.main([word, "--help"])
        known += capsys.readouterr().out
    named = set(re.findall(r"--[a-z][a-z-]+", section))
    assert {"--resume", "--json", "--paused"} <= named
    for flag in named - {"--version", "--help"}:
        assert re.search(rf"{flag}\b", known), flag


def test_the_version_is_printed(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("splatscope 0.")


def test_words_go_to_the_command_line_and_the_rest_to_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(cli, "main", lambda given: seen.append(given) or 0)
    for word in ("train", "eval", "render", "check", "doctor", "--version"):
        assert program.run([word, "x"]) == 0
    assert [given[0] for given in seen][-1] == "--version"
    assert len(seen) == 6
