"""The faster steps through the engine: exact over a save, live, and in the journal."""

from pathlib import Path

import pytest

from engine import messages as m
from engine.setting_info import Value
from tests.engine.driving import Driver, quick, running_engine
from tests.engine.test_engine_repeats import assert_same_bits, in_new_processes, losses
from tests.journals import read_journal

STEPS = 200
ALL: dict[str, Value] = {
    "coarse_halvings": 1,  # of 32x24 pixels
    "coarse_steps": 130,  # over the end of the first half
    "sh_rest_interval": 3,
    "visible_only": True,
    "morton_interval": 30,
}


def test_with_all_of_them_100_steps_and_100_more_in_a_new_process_equal_200(
    scene: Path, tmp_path: Path
) -> None:
    settings = quick(**{"max_splats": 1_000, **ALL})
    with running_engine() as driver:
        driver.open(scene, tmp_path / "whole", settings.changed("iterations", STEPS))
        straight = driver.wait(m.Finished).checkpoint
        driver.open(scene, tmp_path / "halves", settings.changed("iterations", STEPS // 2))
        driver.wait(m.Finished, 2)
    resume = ["train", "--resume", "--output", str(tmp_path / "halves")]
    in_new_processes([*resume, "--iterations", str(STEPS)])
    assert_same_bits(straight, tmp_path / "halves" / "checkpoints" / straight.name)
    assert losses(tmp_path / "halves") == losses(tmp_path / "whole")


@pytest.mark.parametrize("name", ALL)
def test_each_of_them_takes_hold_at_the_acknowledged_step_and_is_journalled(
    driver: Driver, scene: Path, tmp_path: Path, name: str
) -> None:
    driver.open_paused(scene, tmp_path / "run", quick(iterations=40))
    old = quick()[name]
    applied = driver.ask(m.SetSetting(name, ALL[name]), m.SettingApplied)
    assert (applied.step, applied.old, applied.new, applied.held) == (3, old, ALL[name], False)
    back = driver.ask(m.SetSetting(name, old), m.SettingApplied)  # what Ctrl+Z posts
    assert (back.step, back.new) == (3, old)
    driver.post(m.StepN(1))
    driver.until(lambda: driver.steps == 4)
    entries = read_journal(tmp_path / "run" / "journal.jsonl")
    noted = [(entry["step"], entry["new"]) for entry in entries if entry.get("name") == name]
    assert noted == [(3, ALL[name]), (3, old)]


def test_the_user_hears_when_photos_grow(driver: Driver, scene: Path, tmp_path: Path) -> None:
    driver.open(scene, tmp_path / "run", quick(coarse_halvings=1, coarse_steps=7, iterations=10))
    driver.wait(m.Finished)
    [told] = driver.all(m.PhotosGrew)
    assert (told.step, told.divisor) == (8, 1)
    assert "across step 8: the photos now have their full size" in told.message
