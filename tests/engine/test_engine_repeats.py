"""The same seed, settings and commands give the same bits, whatever else happens meanwhile."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from engine import messages as m
from engine.messages import State
from engine.run.checkpoint import load_checkpoint
from engine.settings import Settings
from tests.child_process import run_python
from tests.engine.driving import quick, running_engine

pytestmark = pytest.mark.slow
STEPS = 200  # by `settings` 20 refines, 8 opacity resets and all SH degrees
OTHER = ("seed", 9)  # what a second run has of its own


def settings(**changes: object) -> Settings:
    """For a run in which everything happens early, with a splat cap that keeps it short."""
    return quick(**{"max_splats": 1_000, **changes})


@pytest.fixture(scope="module")
def straight(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last checkpoint of an undisturbed run."""
    return train(scene, tmp_path_factory.mktemp("runs") / "straight")


def train(scene: Path, folder: Path) -> Path:
    with running_engine() as driver:
        driver.open(scene, folder, settings(iterations=STEPS))
        return driver.wait(m.Finished).checkpoint


def assert_same_bits(first: Path, second: Path) -> None:
    a, b = load_checkpoint(first), load_checkpoint(second)
    assert a.tensors.keys() == b.tensors.keys()
    for name, tensor in a.tensors.items():
        assert torch.equal(tensor, b.tensors[name]), name
    for name in ("step", "sh_reached", "adam_steps", "training_photos"):
        assert a.facts[name] == b.facts[name]


def losses(folder: Path) -> list[tuple[int, float]]:
    rows = (folder / "metrics.jsonl").read_text().splitlines()
    return [(row["step"], row["loss"]) for row in map(json.loads, rows)]


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """What new processes made: a run each, and the second half of one begun here."""

    first: Path
    second: Path
    halves: Path


@pytest.fixture(scope="module")
def elsewhere(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    root = tmp_path_factory.mktemp("elsewhere")
    made = Elsewhere(root / "first", root / "second", root / "halves")
    with running_engine() as driver:
        driver.open(scene, made.halves, settings(iterations=STEPS // 2))
        driver.wait(m.Finished)
    seed = [f"--{OTHER[0]}", str(OTHER[1])]
    in_new_processes(
        ["train", str(scene), "--output", str(made.first), *flags(STEPS)],
        ["train", str(scene), "--output", str(made.second), *flags(STEPS), *seed],
        ["train", "--resume", "--output", str(made.halves), "--iterations", str(STEPS)],
    )
    return made


def test_two_runs_in_one_process_one_after_the_other_equal_two_runs_in_two(
    scene: Path, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    with running_engine() as driver:
        driver.open(scene, tmp_path / "first", settings(iterations=STEPS))
        first = driver.wait(m.Finished).checkpoint
        driver.open(scene, tmp_path / "second", settings(iterations=STEPS).changed(*OTHER))
        second = driver.wait(m.Finished, 2).checkpoint
    assert_same_bits(first, elsewhere.first / "checkpoints" / first.name)
    assert_same_bits(second, elsewhere.second / "checkpoints" / second.name)
    assert first.read_bytes() != second.read_bytes()


def test_the_same_run_twice_in_one_process_gives_the_same_bits(
    scene: Path, straight: Path, tmp_path: Path
) -> None:
    assert_same_bits(straight, train(scene, tmp_path / "again"))


def test_100_steps_saved_and_100_more_in_a_new_process_equal_200(
    straight: Path, elsewhere: Elsewhere
) -> None:
    assert straight.name == "step-000200.safetensors"
    assert_same_bits(straight, elsewhere.halves / "checkpoints" / straight.name)
    assert losses(elsewhere.halves) == losses(straight.parent.parent)


def test_views_between_all_phases_change_no_bit(
    scene: Path, straight: Path, tmp_path: Path
) -> None:
    followed = settings(iterations=STEPS, preview_share_moving=0.9, preview_share_rest=0.9)
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", followed, start=False)
        camera = driver.camera().resized(48, 36)
        driver.post(m.Start())
        view = 0
        while driver.state is not State.FINISHED:
            view += 1
            driver.engine.request_view(m.View(view, camera, moving=view % 3 > 0))
            driver.listen(0.001)
        finished = driver.wait(m.Finished)
    assert len(driver.frames) > 10
    assert_same_bits(straight, finished.checkpoint)


def test_pauses_steps_and_refused_commands_change_no_bit(
    scene: Path, straight: Path, tmp_path: Path
) -> None:
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", settings(iterations=STEPS), start=False)
        driver.post(m.StepN(7))
        driver.reach(State.PAUSED)
        driver.post(m.Evaluate())
        driver.post(m.Save())
        driver.post(m.SetSetting("opacity_lr", -1.0))
        driver.post(m.RunUntil(23))
        driver.until(lambda: driver.steps == 23 and driver.state is State.PAUSED)
        driver.post(m.Start())
        finished = driver.wait(m.Finished)
    assert_same_bits(straight, finished.checkpoint)


def test_a_dropped_step_changes_no_bit(scene: Path, straight: Path, tmp_path: Path) -> None:
    with running_engine() as driver:
        driver.open(scene, tmp_path / "run", settings(iterations=STEPS))
        driver.until(lambda: driver.steps >= 5)
        driver.ask(m.Stop(), m.Finished)  # drops the unfinished step
        driver.post(m.Start())
        finished = driver.wait(m.Finished, 2)
    assert_same_bits(straight, finished.checkpoint)


def flags(iterations: int) -> list[str]:
    """What `settings` says, as flags."""
    values = settings(iterations=iterations).differences()
    return ["--preset", "classic"] + [
        part
        for name, value in values.items()
        for part in ("--" + name.replace("_", "-"), str(value))
    ]


def in_new_processes(*commands: list[str]) -> None:
    """Carry out each command in a process of its own, all at once; none imports Qt for it."""
    code = (
        "import sys, app.__main__ as program\n"
        "assert program.run(sys.argv[1:]) == 0\n"
        "found = [name for name in sys.modules if name.startswith(('PySide6', 'shiboken6'))]\n"
        "assert not found, found"
    )
    with ThreadPoolExecutor(len(commands)) as pool:
        for done in pool.map(lambda command: run_python("-c", code, *command), commands):
            assert done.returncode == 0, done.stderr
