"""Every live setting of a run, built from the declaration by one walk over it.

Before a run starts the values are held here (`settings()`, `start_values_changed`); while a run is
open each change is posted as a `SetSetting` and shown as pending until its `SettingApplied` says
at which step it took hold. What a change means is the engine's business.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from app.pace import Pace
from app.panels.panel import Panel
from app.panels.preset_menu import PresetMenu
from app.panels.setting_badges import RowProgress, badge, cap_note, rate_note
from app.panels.setting_list import SettingList
from app.panels.setting_row import SettingRow
from app.panels.setting_values import ChangeHistory, gesture_numbers
from app.theme import set_role
from engine.messages import (
    CommandRefused,
    Event,
    OpacitiesReset,
    PruneNow,
    Refined,
    RunStarted,
    SceneOpened,
    SetSetting,
    SettingApplied,
    ShDegreeRaised,
    State,
    StateChanged,
    Stepped,
)
from engine.presets import CLASSIC, load_preset, nearest_preset
from engine.setting_info import Value
from engine.settings import Settings, setting_info

PresetBase = tuple[str, Settings, str]  # name, values, why that one
BADGE_INTERVAL_MS = 2000  # for what changes with the steps: each one lays the list out anew
PRESETS_TIP = "Presets, and the changes made to one"


class SettingsPanel(Panel):
    """Groups of live settings with search, presets, reset and undo."""

    start_values_changed = Signal(object)  # Settings, before a run starts
    summary_changed = Signal(str)  # such as "classic + 2 changes"
    preset_loaded = Signal(str, object)  # in a run: name, and the settings that it changes
    undo_changed = Signal(bool, bool)  # can undo, can redo

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Settings", parent)
        self._settings = Settings()  # as the user wants it
        self._in_force = Settings()  # as the engine has it
        self._base = Settings()
        self._preset = CLASSIC
        self.preset_reason = ""  # why it is that preset; "" where nothing need be said
        self._run_open = False
        self._changed_early: set[str] = set()  # while a scene loads
        self._progress: dict[str, RowProgress] = {}
        self._refusals: dict[str, str] = {}
        self._history = ChangeHistory()
        self._loads: dict[int, tuple[PresetBase, PresetBase]] = {}  # by gesture: before, after
        self._step = 0
        self._splats = 0
        self._cap_reached = False
        self._sh_degree = 0
        self._position_lr = 0.0
        self._extent = 0.0
        self._badge_pace = Pace(BADGE_INTERVAL_MS, self)
        self._badge_pace.due.connect(self._show_progress)
        self._build()
        self._show_values()

    # --- what others ask ------------------------------------------------------------------------

    def settings(self) -> Settings:
        """The values as the user wants them, those waiting for a restart included."""
        return self._settings

    def set_start_values(
        self, settings: Settings, preset: str, base: Settings, reason: str = ""
    ) -> None:
        """Begin with `settings`, which are `base` (the preset of that name) plus changes.

        `reason` says why it is that preset, where the user did not choose it.
        """
        self._settings = settings
        self._take_base(preset, base, reason)
        self._history.clear()
        self._loads.clear()
        self._show_values()

    def _take_base(self, preset: str, base: Settings, reason: str = "") -> None:
        self._base = base
        self._preset = preset
        self.preset_reason = reason

    @property
    def untouched_preset(self) -> str | None:
        """The name of the preset whose very values these are; None when something differs."""
        return None if self._settings.differences(self._base) else self._preset

    @property
    def summary(self) -> str:
        """The preset's name and the number of changes to it."""
        count = len(self._settings.differences(self._base))
        return self._preset + (f" + {count} change{'' if count == 1 else 's'}" if count else "")

    def undo(self) -> None:
        """Set the values back that the last gesture changed; in a run, a new change."""
        loaded = self._loads.get(self._history.gesture_to_undo)
        self._go_back(loaded and loaded[0], self._history.undo())

    def redo(self) -> None:
        """Set the values again that were undone last."""
        loaded = self._loads.get(self._history.gesture_to_redo)
        self._go_back(loaded and loaded[1], self._history.redo())

    def _go_back(self, base: PresetBase | None, values: Mapping[str, Value]) -> None:
        """Set `values`, which were or are measured against `base` where that is another one."""
        if base is not None:
            self._take_base(*base)
            self._tell_preset(values)
        self._set_values(values, next(gesture_numbers), remember=False)

    def load_preset(self, name: str, settings: Settings) -> None:
        """Take all values of a preset; in a run each difference is posted."""
        before, gesture = self._preset_base, next(gesture_numbers)
        self._take_base(name, settings, "Chosen in the menu; scenes opened next begin with it.")
        self._loads[gesture] = before, self._preset_base
        values = settings.differences(self._settings)
        self._tell_preset(values)
        self._set_values(values, gesture)
        self._show_values()

    @property
    def _preset_base(self) -> PresetBase:
        return self._preset, self._base, self.preset_reason

    def _tell_preset(self, values: Mapping[str, Value]) -> None:
        if self._run_open and values:
            self.preset_loaded.emit(self._preset, frozenset(values))

    def set_cap_reached(self, reached: bool) -> None:
        """Whether the splat cap has stopped the growth, for its row."""
        if reached != self._cap_reached:
            self._cap_reached = reached
            self._show_progress_soon()

    def row(self, name: str) -> SettingRow:
        """The row of one setting."""
        return self.list.rows[name]

    # --- events ---------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Follow what the engine tells about settings and steps."""
        match event:
            case StateChanged(new=State.LOADING):
                self._run_open = False
                self._changed_early.clear()
                self._step = 0
                self._show_progress_soon()
            case RunStarted():
                self._begin_run(event)
            case SceneOpened():
                self._extent = event.extent
            case SettingApplied():
                self._take_applied(event)
            case CommandRefused(command=SetSetting() as command):
                self._take_refusal(command, event.reason)
            case Refined():
                self._take_refined(event)
            case OpacitiesReset() | ShDegreeRaised():
                self._show_progress_now()
            case Stepped() if len(event.steps):
                self._step = int(event.steps[-1])
                self._splats = int(event.splats[-1])
                self._sh_degree = event.sh_degree
                self._position_lr = event.position_lr
                self._show_progress_soon()

    def showEvent(self, event: QShowEvent) -> None:
        """Bring the badges up to date; they rest while the panel is hidden."""
        super().showEvent(event)
        self._show_progress()

    def _begin_run(self, event: RunStarted) -> None:
        early = {name: self._settings[name] for name in self._changed_early}
        self._follow_resumed(event.settings)
        self._settings = self._in_force = event.settings
        self._step = event.step
        self._splats = 0
        self._position_lr = 0.0
        self._progress.clear()
        self._refusals.clear()
        self._changed_early.clear()
        self._history.clear()
        self._loads.clear()
        self._run_open = True
        self._show_values()
        self._set_values(early, next(gesture_numbers))

    def _follow_resumed(self, settings: Settings) -> None:
        """An old run goes on with its own settings: measure them against what they came from."""
        asked = self._settings.updated({name: settings[name] for name in self._changed_early})
        name = nearest_preset(settings)
        base = load_preset(name)
        ours = len(settings.differences(self._base))
        if settings != asked and len(settings.differences(base)) < ours:
            self._take_base(name, base, "The run goes on with its own settings.")

    def _take_applied(self, event: SettingApplied) -> None:
        held = event.held and event.new != self._in_force[event.name]
        if not event.held:
            self._in_force = self._in_force.changed(event.name, event.new)
        before = self._progress.get(event.name, RowProgress())
        newest = not before.pending or event.new == self._settings[event.name]
        if newest:
            self._settings = self._settings.changed(event.name, event.new)
        self._progress[event.name] = RowProgress(
            pending=not newest, applied_step=event.step, held=held
        )
        self._refusals.pop(event.name, None)
        self._show_values()

    def _take_refusal(self, command: SetSetting, reason: str) -> None:
        if command.value != self._settings[command.name]:
            return  # an older wish than the one that waits
        self._settings = self._settings.changed(command.name, self._in_force[command.name])
        before = self._progress.get(command.name, RowProgress())
        self._progress[command.name] = dataclasses.replace(before, pending=False)
        info = setting_info(command.name)
        self._refusals[command.name] = reason.replace(info.name, info.label)
        self._show_values()

    def _take_refined(self, event: Refined) -> None:
        self._splats = event.splats
        for name, progress in self._progress.items():
            waits = progress.applied_step is not None and progress.refined_step is None
            if waits and event.step > (progress.applied_step or 0):
                self._progress[name] = dataclasses.replace(progress, refined_step=event.step)
        self._show_progress_now()

    # --- changes --------------------------------------------------------------------------------

    def _set_values(
        self, values: Mapping[str, Value], gesture: int, *, remember: bool = True
    ) -> None:
        if not values:
            return
        before = self._settings
        self._settings = before.updated(values)
        self.list.search.setModified(False)  # undo is of the values now, not of older typing
        if remember:
            self._history.record(gesture, before, self._settings)
        for name in values:
            self._refusals.pop(name, None)
            if self._run_open:
                progress = self._progress.get(name, RowProgress())
                self._progress[name] = dataclasses.replace(progress, pending=True)
                self.posted.emit(SetSetting(name, self._settings[name], gesture))
            elif self.state is State.LOADING:
                self._changed_early.add(name)
        self._show_values()
        if not self._run_open:
            self.start_values_changed.emit(self._settings)

    def _take_edit(self, name: str, value: Value, gesture: int) -> None:
        self._set_values({name: value}, gesture)

    def _reset_row(self, name: str) -> None:
        if self._settings[name] != self._base[name]:
            self._set_values({name: self._base[name]}, next(gesture_numbers))
        else:
            self.list.rows[name].show_value(self._settings[name])

    def _reset_all(self) -> None:
        self._set_values(self._base.differences(self._settings), next(gesture_numbers))

    def _take_row_action(self, _name: str) -> None:
        self.posted.emit(PruneNow())

    def _take_preset(self, name: str, settings: Settings) -> None:
        self.show_message("")
        self.load_preset(name, settings)

    def _preset_saved(self, path: Path) -> None:
        self.show_message("")
        self._take_base(path.stem, self._settings)
        self._show_values()

    def show_message(self, text: str) -> None:
        """A sentence under the heading, such as why a preset cannot be read; "" takes it away."""
        self.message.setText(text)
        self.message.setVisible(bool(text))

    # --- showing --------------------------------------------------------------------------------

    def _show_values(self) -> None:
        for name, row in self.list.rows.items():
            row.show_value(self._settings[name])
            row.set_changed(self._settings[name] != self._base[name], self._base[name])
        self.list.preset = self._preset
        self.presets.tick(self._preset)
        self.list.count_changes()
        self._summary.setText(f"{self.summary} ▾")
        self._summary.setAccessibleName(f"Presets; now {self.summary}")
        self._summary.setToolTip("\n".join(filter(None, (self.preset_reason, PRESETS_TIP))))
        self.summary_changed.emit(self.summary)
        self.undo_changed.emit(self._history.can_undo, self._history.can_redo)
        self._show_progress()

    def _is_changed(self, name: str) -> bool:
        return self._settings[name] != self._base[name]

    def _show_progress_now(self) -> None:
        """What a badge announced has just happened."""
        if self.isVisible():
            self._badge_pace.hurry()

    def _show_progress_soon(self) -> None:
        if self.isVisible():
            self._badge_pace.ask()

    def _show_progress(self) -> None:
        for name, row in self.list.rows.items():
            progress = self._progress.get(name, RowProgress())
            shown = (
                badge(row.info, progress, self._step, self._sh_degree, self._in_force)
                if self._run_open
                else None
            )
            row.set_badge(shown)
            row.set_note(*self._note(name))

    def _note(self, name: str) -> tuple[str, str, str]:
        if name in self._refusals:
            return self._refusals[name], "bad", ""
        if not self._run_open:
            return "", "muted", ""
        if name == "max_splats":
            note = cap_note(self._settings[name], self._splats, self._cap_reached)
            above = self._splats > int(self._settings[name])
            return note, "changed", "Prune" if above else ""
        if name == "position_lr_start":
            return rate_note(self._position_lr, self._extent), "muted", ""
        return "", "muted", ""

    # --- building -------------------------------------------------------------------------------

    def _build(self) -> None:
        self._summary = QToolButton(self)
        self._summary.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        set_role(self._summary, "quiet")
        self.presets = menu = PresetMenu(self.settings, self)
        menu.chosen.connect(self._take_preset)
        menu.saved.connect(self._preset_saved)
        menu.failed.connect(self.show_message)
        menu.reset_asked.connect(self._reset_all)
        self._summary.setMenu(menu)
        self.header.addWidget(self._summary)
        self.message = QLabel(self)
        self.message.setWordWrap(True)
        set_role(self.message, "bad")
        self.message.setVisible(False)
        self.body.addWidget(self.message)
        self.list = SettingList(self._is_changed, self)
        self.list.edited.connect(self._take_edit)
        self.list.reset_asked.connect(self._reset_row)
        self.list.action_asked.connect(self._take_row_action)
        self.body.addWidget(self.list, 1)
