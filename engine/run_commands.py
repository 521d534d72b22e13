"""What each command does to the open run. Opening and closing runs is in `run_opening`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cuda_rasterizer
from engine import messages as m
from engine.device import set_low_priority, set_threads
from engine.errors import EngineError, SettingError
from engine.messages import Command, State
from engine.open_run import OpenRun
from engine.session import Session
from engine.setting_info import Applies, Value
from engine.settings import setting_info
from engine.training.densification import RefineCounts


class CommandRefusal(EngineError):
    """A legal command that cannot be carried out now; its text is a sentence for the user."""


class RunCommands:
    """Carries out commands on the open run, between two steps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._handlers: dict[type[Command], Callable[[OpenRun, Any], None]] = {
            m.Start: self._start,
            m.Pause: self._pause,
            m.Stop: self._stop,
            m.StepN: self._step_n,
            m.RunUntil: self._run_until,
            m.ContinueFor: self._continue_for,
            m.SetSetting: self._set_setting,
            m.ResetOpacity: self._reset_opacity,
            m.PruneNow: self._prune_now,
            m.DensifyNow: self._densify_now,
            m.Evaluate: self._evaluate,
            m.Save: self._save,
            m.Export: self._export,
        }

    def carry_out(self, run: OpenRun, command: Command) -> None:
        """Note it in the journal, do it and tell. Raises CommandRefusal or EngineError."""
        self._handlers[type(command)](run, command)

    def _note(self, run: OpenRun, command: Command) -> None:
        """Write a command that is not refused to the journal, before anybody hears of it."""
        self._session.notice(run.journal(type(command).__name__, run.step, _details(command)))

    def apply_setting(self, run: OpenRun, name: str, value: Value, gesture: int = 0) -> None:
        """Put a change into force, or hold it back for a restart, and tell. Raises SettingError."""
        checked = setting_info(name).check(value)
        held = setting_info(name).applies is Applies.RESTART
        old = run.held.get(name, run.settings[name]) if held else run.settings[name]
        if not held:
            self._touch_device(name, checked)
            run.trainer.apply_setting(name, checked)
        elif checked == run.settings[name]:
            run.held.pop(name, None)
            held = False
        else:
            run.held[name] = checked
        self._session.notice(run.journal_setting(name, old, checked, gesture=gesture, held=held))
        self._session.publish(m.SettingApplied(run.run_id, run.step, name, old, checked, held=held))
        if name == "threads" and checked != old:
            self._session.publish(m.DeviceChanged(run.run_id, run.device))

    def _touch_device(self, name: str, value: Value) -> None:
        if name == "threads":
            set_threads(int(value))
        elif name == "deterministic":
            cuda_rasterizer.set_deterministic(bool(value))
        elif name == "low_priority":
            self._session.notice(set_low_priority(bool(value)))

    # --- going and stopping ----------------------------------------------------------------------

    def _train(self, run: OpenRun, command: Command, pause_at: int | None) -> None:
        if run.is_complete:
            raise CommandRefusal(
                f"All {run.settings.run.iterations:,} iterations are done: continue for more "
                "steps, or raise the number of iterations first."
            )
        self._note(run, command)
        self._session.pause_at = pause_at
        self._session.set_state(State.TRAINING)

    def _start(self, run: OpenRun, command: m.Start) -> None:
        self._train(run, command, None)

    def _pause(self, run: OpenRun, command: m.Pause) -> None:
        self._note(run, command)
        self._session.pause_at = None
        self._session.set_state(State.PAUSED)

    def _stop(self, run: OpenRun, command: m.Stop) -> None:
        self._note(run, command)
        self._session.finish(run, evaluate=False)

    def _step_n(self, run: OpenRun, command: m.StepN) -> None:
        if command.count < 1:
            raise CommandRefusal(f"{command.count} steps cannot be done; ask for at least one.")
        self._train(run, command, run.step + command.count)

    def _run_until(self, run: OpenRun, command: m.RunUntil) -> None:
        if command.step <= run.step:
            raise CommandRefusal(
                f"Step {command.step:,} is past: {run.step:,} steps are done. Choose a later one."
            )
        self._train(run, command, command.step)

    def _continue_for(self, run: OpenRun, command: m.ContinueFor) -> None:
        if command.count < 1:
            raise CommandRefusal(f"{command.count} more steps cannot be done; ask for one or more.")
        try:
            self.apply_setting(run, "iterations", run.step + command.count)
        except SettingError as error:
            raise CommandRefusal(str(error)) from error
        self._train(run, command, None)

    # --- steering --------------------------------------------------------------------------------

    def _set_setting(self, run: OpenRun, command: m.SetSetting) -> None:
        try:
            self.apply_setting(run, command.name, command.value, command.gesture)
        except SettingError as error:
            raise CommandRefusal(str(error)) from error

    def _reset_opacity(self, run: OpenRun, command: m.ResetOpacity) -> None:
        self._note(run, command)
        value = run.trainer.reset_opacity()
        self._session.notice(run.log_reset(value))
        self._session.changed_by_hand(run)
        self._session.publish(m.OpacitiesReset(run.run_id, run.step, value, by_hand=True))

    def _prune_now(self, run: OpenRun, command: m.PruneNow) -> None:
        self._note(run, command)
        counts, notices = run.trainer.prune_now()
        self._refined(run, counts, notices)

    def _densify_now(self, run: OpenRun, command: m.DensifyNow) -> None:
        if run.step == 0:
            raise CommandRefusal(
                "Nothing can be densified: no step is done, so no gradient is known. Train first."
            )
        self._note(run, command)
        counts, notices = run.trainer.densify_now()
        self._refined(run, counts, notices)

    def _refined(self, run: OpenRun, counts: RefineCounts, notices: tuple[str, ...]) -> None:
        self._session.changed_by_hand(run)
        self._session.publish_refine(run, counts, by_hand=True)
        for message in notices:
            self._session.notice(message)

    # --- results ---------------------------------------------------------------------------------

    def _evaluate(self, run: OpenRun, command: m.Evaluate) -> None:
        if not run.scene.held_out:
            raise CommandRefusal(
                "Nothing can be evaluated: no photo is held out. Set 'hold out every' and restart."
            )
        self._note(run, command)
        self._session.evaluate(run)

    def _save(self, run: OpenRun, command: m.Save) -> None:
        self._note(run, command)
        self._session.save(run)

    def _export(self, run: OpenRun, command: m.Export) -> None:
        self._note(run, command)
        self._session.export(run, command.path)


def _details(command: Command) -> dict[str, object]:
    """The fields of a command as the journal holds them."""
    return {
        field.name: value.as_posix() if isinstance(value, Path) else value
        for field in dataclasses.fields(command)
        if (value := getattr(command, field.name)) is not None
    }
