"""The settings panel on a desk: typed into, and what it posted."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.panels.setting_row import SettingRow
from app.panels.settings_panel import SettingsPanel
from engine.messages import Command, SetSetting, SettingApplied, State
from engine.settings import Settings
from tests.app.panels.engine_events import run_started, scene_opened


class Desk:
    """A shown panel, what it posted, and what it said before a run."""

    def __init__(self, panel: SettingsPanel) -> None:
        self.panel = panel
        self.posted: list[Command] = []
        self.start_values: list[Settings] = []
        panel.posted.connect(self.posted.append)
        panel.start_values_changed.connect(self.start_values.append)

    def begin_run(self, settings: Settings | None = None, step: int = 0) -> None:
        self.panel.handle(scene_opened(extent=4.0))
        self.panel.handle(run_started(settings or self.panel.settings(), step))
        self.panel.set_state(State.TRAINING)

    def type(self, name: str, text: str) -> None:
        field = self.row(name).field
        assert field is not None
        field.selectAll()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)

    def row(self, name: str) -> SettingRow:
        return self.panel.row(name)

    def text(self, name: str) -> str:
        field = self.row(name).field
        assert field is not None
        return field.text()

    def apply(self, step: int) -> None:
        """Acknowledge everything posted, as the engine does between two steps."""
        for command in self.posted:
            assert isinstance(command, SetSetting)
            self.panel.handle(SettingApplied(1, step, command.name, 0, command.value))
        self.posted.clear()
