"""Whatever anybody asks for while it trains: nothing crashes, nothing hangs, states stay true."""

import dataclasses
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from engine import messages as m
from engine.messages import Command, State
from engine.states import is_legal
from tests.engine.driving import Driver, quick, running_engine

pytestmark = pytest.mark.slow
SEEDS = range(5)
COMMANDS = 300
ENOUGH = COMMANDS // 5  # posted while it trains
MOST_COMMANDS = 5 * COMMANDS
GAP_SECONDS = (0.001, 0.050)
ENDLESS = quick(iterations=1_000_000, max_splats=2_000)


@dataclasses.dataclass(frozen=True)
class Torment:
    """All that an engine told, and how many commands were posted while it trained."""

    driver: Driver
    while_training: int


@pytest.fixture(scope="module")
def tormented(
    scene: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, Future[Torment]]]:
    """An engine for each seed, all at the same time: the gaps alone take 8 s."""
    with ThreadPoolExecutor(len(SEEDS)) as pool:
        yield {
            seed: pool.submit(torment, seed, scene, tmp_path_factory.mktemp(f"seed-{seed}"))
            for seed in SEEDS
        }


def torment(seed: int, scene: Path, folder: Path) -> Torment:
    """Train, and post commands at random."""
    chance, while_training = random.Random(seed), 0
    with running_engine() as driver:
        driver.open(scene, folder / "run-0", ENDLESS)
        for number in range(1, MOST_COMMANDS + 1):
            if number > COMMANDS and while_training > ENOUGH:
                break  # on a busy machine much of the time goes into opening: it takes longer then
            while_training += driver.state is State.TRAINING
            others = 0.5 if driver.state is State.EMPTY else 0.05
            if chance.random() < others:
                driver.post(other_run(chance, scene, folder, number))
            else:
                driver.post(random_command(chance, folder))
            if chance.random() < 0.3:
                view = m.View(number, driver.camera(), moving=chance.random() < 0.5)
                driver.engine.request_view(view)
            end = time.monotonic() + chance.uniform(*GAP_SECONDS)
            while (left := end - time.monotonic()) > 0:
                driver.listen(left)
        last = m.SetSetting("rotation_lr", 0.002)
        driver.post(last)
        driver.until(lambda: is_answered(driver, last))
    return Torment(driver, while_training)


def random_command(chance: random.Random, folder: Path) -> Command:
    """For the run that is open, if one is."""
    names = ("opacity_lr", "scale_lr", "ssim_weight", "densify_interval", "seed", "nonsense")
    commands: list[Command] = [
        *(m.Start(), m.Start(), m.Start(), m.Pause(), m.StepN(chance.randint(-1, 5))),
        *(m.RunUntil(chance.randint(0, 3000)), m.ContinueFor(chance.randint(0, 3000))),
        *(m.SetSetting(chance.choice(names), chance.choice([0.01, 1, 40, -1.0])) for _ in range(5)),
        *(m.ResetOpacity(), m.PruneNow(), m.DensifyNow(), m.Evaluate(), m.Save()),
        *(m.Export(folder / "out.ply"), m.CancelLoading()),
    ]
    return chance.choice(commands)


def other_run(chance: random.Random, scene: Path, folder: Path, number: int) -> Command:
    """Something that ends what is open, or tries to."""
    commands: list[Command] = [
        m.OpenScene(scene, ENDLESS, run_folder=folder / f"run-{number}"),
        m.OpenScene(scene, quick(), run_folder=folder / f"run-{number}"),
        m.OpenScene(folder / "nowhere", run_folder=folder / f"run-{number}"),
        m.SetSetting("iterations", 40),
        *(m.Restart(), m.ResumeRun(folder / "run-0"), m.Stop()),
    ]
    return chance.choice(commands)


@pytest.mark.parametrize("seed", SEEDS)
def test_300_random_commands_crash_nothing_and_leave_consistent_states(
    tormented: dict[int, Future[Torment]], seed: int
) -> None:
    told = tormented[seed].result()
    driver = told.driver
    assert driver.all(m.CommandRefused)
    check_states(driver)
    unexpected = [event for event in driver.all(m.Failed) if "unexpected" in event.message]
    assert unexpected == []
    assert told.while_training > ENOUGH


def is_answered(driver: Driver, command: m.SetSetting) -> bool:
    applied = any(event.name == command.name for event in driver.all(m.SettingApplied))
    return applied or any(event.command == command for event in driver.all(m.CommandRefused))


def check_states(driver: Driver) -> None:
    """Each change starts where the last one ended; steps never go back within a run."""
    state, steps = State.EMPTY, {0: 0}
    for event in driver.events:
        if isinstance(event, m.StateChanged):
            assert event.old is state
            state = event.new
        elif isinstance(event, m.Stepped):
            assert state is State.TRAINING
            assert int(event.steps[0]) == steps.get(event.run_id, int(event.steps[0]) - 1) + 1
            steps[event.run_id] = int(event.steps[-1])
        elif isinstance(event, m.CommandRefused) and not is_legal(event.command, state):
            assert event.reason
