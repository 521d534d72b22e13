"""Which commands do what in which state, and that every command is answered."""

import dataclasses
from pathlib import Path

import pytest

from engine import messages as m
from engine.inbox import Inbox, Report
from engine.messages import Command, State
from engine.settings import Settings
from engine.states import LEGAL, is_legal, refusal
from tests.engine.driving import Driver, quick
from tests.journals import read_journal


def all_commands() -> set[type[Command]]:
    return {kind for kind in vars(m).values() if isinstance(kind, type)} & set(
        Command.__subclasses__()
    )


def test_the_table_knows_every_command() -> None:
    assert set(LEGAL) == all_commands()


def test_every_illegal_pair_has_a_sentence() -> None:
    samples = [m.Start(), m.Pause(), m.Save(), m.CancelLoading(), m.OpenScene(Path("x"))]
    for command in samples:
        for state in State:
            if not is_legal(command, state):
                text = refusal(command, state)
                assert text.endswith(".")
                assert ":" in text


def test_start_without_a_scene_is_refused_with_a_reason(driver: Driver) -> None:
    refused = driver.ask(m.Start(), m.CommandRefused)
    assert refused.command == m.Start()
    assert "no scene is open" in refused.reason
    assert driver.state is State.EMPTY


def test_a_run_goes_through_its_states_to_the_end(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=12))
    finished = driver.wait(m.Finished)
    states = [event.new for event in driver.all(m.StateChanged)]
    assert states == [State.LOADING, State.READY, State.TRAINING, State.FINISHED]
    assert finished.step == 12
    assert finished.checkpoint.is_file()
    assert finished.export.is_file()
    assert finished.checkpoint.name == "step-000012.safetensors"
    assert driver.wait(m.Evaluated).step == 12
    steps = [int(step) for event in driver.all(m.Stepped) for step in event.steps]
    assert steps == list(range(1, 13))


def test_every_event_carries_the_id_of_its_run(driver: Driver, scene: Path, tmp_path: Path) -> None:
    driver.open(scene, tmp_path / "a", quick(iterations=3))
    driver.wait(m.Finished)
    driver.open(scene, tmp_path / "b", quick(iterations=3))
    driver.wait(m.Finished, 2)
    second = [i for i, event in enumerate(driver.events) if event.run_id == 2]
    assert {event.run_id for event in driver.events} == {1, 2}
    assert min(second) > max(i for i, event in enumerate(driver.events) if event.run_id == 1)


def test_pause_stops_stepping_and_start_goes_on(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=100_000))
    driver.until(lambda: driver.steps > 3)
    paused = driver.ask(m.Pause(), m.StateChanged)
    assert paused.new is State.PAUSED
    driver.take()
    assert driver.steps == paused.step
    driver.post(m.Start())
    driver.until(lambda: driver.steps > paused.step)


def test_step_n_does_exactly_n_steps_then_pauses(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", start=False)
    driver.reach(State.READY)
    driver.post(m.StepN(1))
    driver.reach(State.PAUSED)
    assert driver.steps == 1
    driver.post(m.StepN(5))
    driver.until(lambda: driver.steps == 6 and driver.state is State.PAUSED)
    driver.post(m.RunUntil(9))
    driver.until(lambda: driver.steps == 9 and driver.state is State.PAUSED)
    refused = driver.ask(m.RunUntil(9), m.CommandRefused)
    assert "Step 9 is past" in refused.reason


def test_stop_ends_the_run_with_its_files(driver: Driver, scene: Path, tmp_path: Path) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=100_000))
    driver.until(lambda: driver.steps > 2)
    finished = driver.ask(m.Stop(), m.Finished)
    assert driver.state is State.FINISHED
    assert finished.step == driver.steps
    assert finished.checkpoint.is_file()
    assert finished.export.is_file()


def test_a_stop_posted_right_behind_an_evaluation_ends_it(
    driver: Driver, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    real = Inbox.take

    def both_at_once(inbox: Inbox) -> list[Command | Report]:
        items = real(inbox)
        if any(isinstance(item, m.Evaluate) for item in items) and not asked:
            asked.append(True)
            items.append(m.Stop())
        return items

    monkeypatch.setattr(Inbox, "take", both_at_once)
    driver.open(scene, tmp_path / "run", start=False)
    driver.post(m.StepN(1))
    driver.reach(State.PAUSED)
    driver.ask(m.Evaluate(), m.Finished)
    assert asked
    assert not driver.all(m.Evaluated)


def test_a_finished_run_continues_for_more_steps(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=5))
    driver.wait(m.Finished)
    refused = driver.ask(m.Start(), m.CommandRefused)
    assert "continue for more steps" in refused.reason
    driver.post(m.ContinueFor(4))
    assert driver.wait(m.Finished, 2).step == 9
    applied = driver.all(m.SettingApplied)[-1]
    assert (applied.name, applied.old, applied.new) == ("iterations", 5, 9)


def test_lowering_the_iterations_below_the_step_finishes_the_run(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=100_000))
    driver.until(lambda: driver.steps > 5)
    finished = driver.ask(m.SetSetting("iterations", 5), m.Finished)
    assert finished.step >= 5
    assert driver.state is State.FINISHED


def test_an_applied_setting_is_acknowledged_with_its_step_and_journalled(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=100_000))
    driver.until(lambda: driver.steps > 2)
    applied = driver.ask(m.SetSetting("opacity_lr", 0.1), m.SettingApplied)
    assert (applied.old, applied.new, applied.held) == (0.025, 0.1, False)
    assert applied.step >= 2
    entry = read_journal(tmp_path / "run" / "journal.jsonl")[-1]
    assert entry["what"] == "SetSetting"
    assert entry["step"] == applied.step
    assert (entry["name"], entry["old"], entry["new"]) == ("opacity_lr", 0.025, 0.1)


def test_wrong_values_and_names_are_refused_and_change_nothing(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", start=False)
    driver.reach(State.READY)
    assert "expected 0 to 1" in driver.ask(m.SetSetting("opacity_lr", 7.0), m.CommandRefused).reason
    reason = driver.ask(m.SetSetting("opacity_lrr", 0.1), m.CommandRefused).reason
    assert "Did you mean opacity_lr?" in reason
    assert not driver.all(m.SettingApplied)


def test_restart_settings_are_held_until_a_restart(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=4))
    driver.wait(m.Finished)
    held = driver.ask(m.SetSetting("seed", 9), m.SettingApplied)
    assert held.held
    assert held.old == 0
    taken_back = driver.ask(m.SetSetting("seed", 0), m.SettingApplied)
    assert not taken_back.held
    driver.ask(m.SetSetting("seed", 7), m.SettingApplied)
    driver.post(m.Restart(start=False))
    started = driver.wait(m.RunStarted, 2)
    assert started.settings.run.seed == 7
    assert started.folder == tmp_path / "run-2"
    assert started.step == 0
    assert (tmp_path / "run" / "exports" / "step-000004.ply").is_file()  # the old run is kept


def test_actions_by_hand_are_announced(driver: Driver, scene: Path, tmp_path: Path) -> None:
    driver.open(scene, tmp_path / "run", start=False)
    driver.reach(State.READY)
    refused = driver.ask(m.DensifyNow(), m.CommandRefused)
    assert "no step is done" in refused.reason
    driver.post(m.StepN(3))
    driver.reach(State.PAUSED)
    reset = driver.ask(m.ResetOpacity(), m.OpacitiesReset)
    assert (reset.by_hand, reset.value, reset.step) == (True, 0.01, 3)
    assert driver.ask(m.DensifyNow(), m.Refined).by_hand
    assert driver.ask(m.PruneNow(), m.Refined).by_hand
    saved = driver.ask(m.Save(), m.Saved)
    assert saved.path.is_file()
    exported = driver.ask(m.Export(tmp_path / "mine.ply"), m.Exported)
    assert exported.path.is_file()
    assert driver.ask(m.Evaluate(), m.Evaluated).step == 3
    what = [entry["what"] for entry in read_journal(tmp_path / "run" / "journal.jsonl")]
    assert what == [
        *("RunStarted", "StepN", "ResetOpacity", "DensifyNow", "PruneNow"),
        *("Save", "Export", "Evaluate"),
    ]


def test_a_used_folder_is_refused_and_the_open_run_stays(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=3))
    driver.wait(m.Finished)
    refused = driver.ask(m.OpenScene(scene, run_folder=tmp_path / "run"), m.CommandRefused)
    assert "already holds an earlier run" in refused.reason
    assert driver.state is State.FINISHED
    assert driver.ask(m.Export(tmp_path / "still.ply"), m.Exported).splats > 0


def test_an_event_of_steps_comes_before_the_event_that_followed_them(
    driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open(scene, tmp_path / "run", quick(iterations=40, evaluation_interval=7))
    driver.wait(m.Finished)
    done = 0
    for event in driver.events:
        if isinstance(event, m.Stepped):
            done = int(event.steps[-1])
        elif isinstance(event, m.Refined | m.OpacitiesReset | m.ShDegreeRaised | m.Evaluated):
            assert done == event.step
    assert [event.step for event in driver.all(m.Refined)] == [10, 20, 30, 40]
    assert [event.step for event in driver.all(m.Evaluated)] == [7, 14, 21, 28, 35, 40]
    assert [event.degree for event in driver.all(m.ShDegreeRaised)] == [1, 2]


def test_every_kind_of_message_is_frozen() -> None:
    for value in vars(m).values():
        if isinstance(value, type) and dataclasses.is_dataclass(value):
            assert value.__dataclass_params__.frozen, value  # type: ignore[attr-defined]
    assert Settings.__dataclass_params__.frozen  # type: ignore[attr-defined]
