"""The metrics panel on a screen, and waiting until it has drawn what it was told."""

from pytestqt.qtbot import QtBot

from app.panels.metrics_panel import MetricsPanel
from tests.app.panels.engine_events import run_started
from tests.settling import LIMIT_MS, show


def shown_panel(qtbot: QtBot) -> MetricsPanel:
    """Of a run that has just begun."""
    panel = MetricsPanel()
    qtbot.addWidget(panel)
    panel.resize(800, 240)
    show(qtbot, panel)
    panel.handle(run_started())
    return panel


def drawn(panel: MetricsPanel, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not panel.is_stale, timeout=LIMIT_MS)
