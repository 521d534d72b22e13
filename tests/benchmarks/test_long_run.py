"""A long run is scored at its marks, each of the same run; the README's table takes its scenes."""

from pathlib import Path

import pytest

from benchmarks.long_run import LongRun, Marks, Score
from benchmarks.readme_numbers import LONG_CASES, chosen
from engine.settings import Settings
from tests.engine.driving import ENDLESS, quick, write_tiny_scene


def scored(folder: Path, marks: Marks, settings: Settings = ENDLESS) -> list[Score]:
    return LongRun(write_tiny_scene(folder / "scene"), settings, folder / "run", marks).scores()


def test_a_run_is_scored_at_its_times_and_exactly_at_its_number_of_steps(tmp_path: Path) -> None:
    scores = {score.mark: score for score in scored(tmp_path, Marks((0.1, 0.3), 40, 60.0))}
    assert set(scores) == {"0.1 s", "0.3 s", "40 steps"}
    assert scores["40 steps"].steps == 40
    assert 0.1 <= scores["0.1 s"].seconds < scores["0.3 s"].seconds
    assert scores["0.1 s"].steps < scores["0.3 s"].steps
    for score in scores.values():
        assert score.splats > 0
        assert score.psnr > 5.0


def test_a_run_that_does_not_come_to_its_steps_is_scored_where_it_ends(tmp_path: Path) -> None:
    scores = scored(tmp_path, Marks((0.05,), 100_000, 0.1))
    assert [score.mark for score in scores] == ["0.05 s", "0.15 s, 100,000 steps not reached"]
    assert scores[-1].seconds >= 0.15


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (quick(iterations=5), "over after 5 steps"),
        (quick(test_every=0, iterations=1_000_000), "no photo is held out"),
    ],
)
def test_a_run_that_cannot_be_scored_ends_with_the_reason(
    tmp_path: Path, settings: Settings, reason: str
) -> None:
    with pytest.raises(SystemExit, match=reason):
        scored(tmp_path, Marks((0.05,), 1000, 60.0), settings)


def test_scenes_are_chosen_by_name() -> None:
    assert [case.name for case in chosen(LONG_CASES, "fox,lego")] == ["lego_400", "fox"]
    assert chosen(LONG_CASES, None) == list(LONG_CASES)
    with pytest.raises(SystemExit, match="names none of lego_400"):
        chosen(LONG_CASES, "garden")
