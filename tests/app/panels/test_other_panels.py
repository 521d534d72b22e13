import logging
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.palette import DARK
from app.panels.action_panel import ActionPanel
from app.panels.findings_panel import FindingsPanel
from app.panels.log_lines import LINE_LIMIT, LogLine, LogLines, line_for, without_home
from app.panels.log_panel import LogPanel
from app.panels.panel import Panel
from engine.dataset.scene import Finding
from engine.messages import (
    Command,
    CommandRefused,
    DensifyNow,
    Evaluate,
    Evaluated,
    Failed,
    Noticed,
    OpacitiesReset,
    PhotoScore,
    PruneNow,
    Refined,
    ResetOpacity,
    SettingApplied,
    State,
)
from engine.states import LEGAL
from tests.app.panels.engine_events import history_read, run_started, scene_opened, stepped
from tests.settling import LIMIT_MS, settle, show


def shown(qtbot: QtBot, panel: Panel) -> None:
    qtbot.addWidget(panel)
    panel.resize(280, 300)
    show(qtbot, panel)


@pytest.fixture
def actions(qtbot: QtBot) -> ActionPanel:
    panel = ActionPanel()
    shown(qtbot, panel)
    return panel


@pytest.fixture
def log_panel(qtbot: QtBot, tmp_path: Path) -> LogPanel:
    panel = LogPanel(tmp_path)
    shown(qtbot, panel)
    return panel


@pytest.mark.parametrize("state", list(State))
def test_buttons_can_be_pressed_exactly_where_their_commands_are_legal(
    actions: ActionPanel, state: State
) -> None:
    actions.set_state(state)
    for command, button in actions.buttons.items():
        assert button.isEnabled() == (state in LEGAL[command])


def test_each_button_posts_its_command_and_waits_for_the_result(actions: ActionPanel) -> None:
    posted: list[Command] = []
    actions.posted.connect(posted.append)
    actions.set_state(State.TRAINING)
    for button in actions.buttons.values():
        button.click()
    assert posted == [ResetOpacity(), PruneNow(), DensifyNow(), Evaluate()]
    assert actions.results[PruneNow].full_text == "waiting…"


def test_the_last_result_stands_beside_its_button(actions: ActionPanel) -> None:
    actions.set_state(State.TRAINING)
    actions.handle(Refined(1, 900, 120, 80, 1_203, 35_000))
    actions.handle(OpacitiesReset(1, 3_000, 0.01))
    score = PhotoScore("a", 27.84, 0.9)
    actions.handle(Evaluated(1, 4_000, 27.84, 0.91, (score, score)))
    assert actions.results[PruneNow].full_text == "1,203 removed at step 900"
    assert actions.results[DensifyNow].full_text == "200 added at step 900"
    assert actions.results[ResetOpacity].full_text == "to 0.01 at step 3,000"
    assert actions.results[Evaluate].full_text == "27.84 dB at step 4,000"
    assert "2 held-out photos" in actions.results[Evaluate].toolTip()


def test_the_last_measurement_of_a_run_that_goes_on_stands_beside_its_button(
    actions: ActionPanel,
) -> None:
    past = history_read(400)
    actions.handle(past)
    assert past.last_evaluation == (24.0, 400)
    assert actions.results[Evaluate].full_text == "24.00 dB at step 400"
    never = replace(past, evaluated_steps=np.empty(0), evaluated_psnr=np.empty(0))
    assert never.last_evaluation is None


def test_what_was_done_to_one_scene_is_not_told_of_the_next(actions: ActionPanel) -> None:
    actions.handle(OpacitiesReset(1, 3_000, 0.01))
    actions.handle(scene_opened())  # which may be damaged and never train
    assert {result.full_text for result in actions.results.values()} == {""}
    actions.handle(OpacitiesReset(1, 3_000, 0.01))
    actions.set_state(State.EMPTY)  # the next one cannot even be opened
    assert {result.full_text for result in actions.results.values()} == {""}


def test_where_there_is_little_room_the_number_is_told_whole_without_its_step(
    actions: ActionPanel,
) -> None:
    actions.handle(Refined(1, 12_500, 0, 0, 12_345, 35_000))
    result = actions.results[PruneNow]
    whole = result.sizeHint().width()
    for width, text in ((whole, "12,345 removed at step 12,500"), (whole - 20, "12,345 removed")):
        result.resize(width, 20)
        assert result.text() == text


def test_a_prune_by_hand_does_not_claim_to_have_densified(actions: ActionPanel) -> None:
    actions.set_state(State.PAUSED)
    actions.buttons[PruneNow].click()
    actions.handle(Refined(1, 901, 0, 0, 0, 35_000, by_hand=True))
    assert actions.results[PruneNow].full_text == "0 removed at step 901"
    assert actions.results[DensifyNow].full_text == ""


def test_a_refusal_is_told_beside_the_button(actions: ActionPanel) -> None:
    actions.handle(CommandRefused(1, Evaluate(), "No photo is held out."))
    assert actions.results[Evaluate].full_text == "No photo is held out."
    assert actions.results[Evaluate].property("role") == "bad"
    actions.handle(run_started())
    assert actions.results[Evaluate].full_text == ""


def test_findings_are_grouped_by_severity_with_sign_word_and_file(qtbot: QtBot) -> None:
    panel = FindingsPanel()
    shown(qtbot, panel)
    panel.set_colors(DARK)
    assert "No scene is open" in panel.view.toPlainText()
    findings = (
        Finding("photos_undistorted", "ok", "", "14 photos were undistorted."),
        Finding("photo_missing", "error", "a<b>.jpg", "a<b>.jpg is not there."),
        Finding("few_views", "warning", "x.jpg", "There are few views."),
    )
    panel.handle(scene_opened(findings=findings))
    lines = [line for line in panel.view.toPlainText().splitlines() if line]
    assert lines == [
        "✖  Errors (1)",
        "a<b>.jpg is not there.",
        "▲  Warnings (1)",
        "x.jpg: There are few views.",
        "✔  In order (1)",
        "14 photos were undistorted.",
    ]
    panel.set_state(State.LOADING)
    assert panel.view.toPlainText() == "Checking …"
    panel.set_state(State.EMPTY)
    assert "No scene is open" in panel.view.toPlainText()


def test_a_scene_without_findings_says_so(qtbot: QtBot) -> None:
    panel = FindingsPanel()
    shown(qtbot, panel)
    panel.handle(scene_opened())
    assert panel.view.toPlainText() == "Nothing to report."


def test_many_findings_of_one_kind_stand_as_one_and_unfold(qtbot: QtBot) -> None:
    panel = FindingsPanel()
    shown(qtbot, panel)
    many = [
        Finding("photo_missing", "warning", f"{n:03}.jpg", f"{n:03}.jpg does not exist.")
        for n in range(900)
    ]
    panel.handle(scene_opened(findings=many))
    folded = panel.view.toPlainText()
    assert "Warnings (1)" in folded
    assert "900 photos" in folded
    assert len(folded.splitlines()) < 6
    panel.view.anchorClicked.emit(QUrl("photo_missing"))
    unfolded = panel.view.toPlainText()
    assert "099.jpg does not exist." in unfolded
    assert "and 800 more" in unfolded
    panel.view.anchorClicked.emit(QUrl("photo_missing"))
    assert panel.view.toPlainText() == folded


def test_the_log_is_bounded_but_keeps_the_latest_errors() -> None:
    lines = LogLines()
    lines.add(LogLine(logging.ERROR, "the one that matters"))
    for number in range(LINE_LIMIT + 100):
        lines.add(LogLine(logging.INFO, f"line {number}"))
    assert len(lines) == LINE_LIMIT
    assert [line.text for line in lines.errors] == ["the one that matters"]
    assert lines.tail(1)[0].text == f"line {LINE_LIMIT + 99}"


def test_events_of_every_step_are_not_logged_and_others_read_as_sentences() -> None:
    assert line_for(stepped([1])) is None
    line = line_for(SettingApplied(1, 2_300, "opacity_lr", 0.025, 0.05))
    assert line is not None
    assert line.text == "step 2,300: opacity_lr 0.025 → 0.05"
    failed = line_for(Failed(1, "the loss is not finite", "trace"))
    assert failed is not None
    assert failed.level == logging.ERROR


def test_the_level_filters_what_is_shown_and_brings_it_back(log_panel: LogPanel) -> None:
    log_panel.handle(Noticed(1, "few views"))
    log_panel.handle(OpacitiesReset(1, 3_000, 0.01))
    log_panel.handle(Refined(1, 600, 1, 1, 1, 10))
    assert "few views" in log_panel.view.toPlainText()
    assert "opacities reset" in log_panel.view.toPlainText()
    assert "cloned" not in log_panel.view.toPlainText()
    log_panel.level.textActivated.emit("Warnings")
    assert "opacities reset" not in log_panel.view.toPlainText()
    log_panel.level.textActivated.emit("Everything")
    assert "cloned" in log_panel.view.toPlainText()


def test_log_records_of_any_thread_reach_the_window(log_panel: LogPanel, qtbot: QtBot) -> None:
    logger = logging.getLogger("test.panels")
    log_panel.attach()
    try:
        worker = threading.Thread(target=logger.error, args=("worker says %s", "hello"))
        worker.start()
        worker.join()
        qtbot.waitUntil(
            lambda: "worker says hello" in log_panel.view.toPlainText(), timeout=LIMIT_MS
        )
    finally:
        log_panel.detach()
    logger.error("after the end")
    settle()
    assert "after the end" not in log_panel.view.toPlainText()


def test_a_notice_of_the_engine_is_one_line(log_panel: LogPanel, qtbot: QtBot) -> None:
    log_panel.attach()
    try:
        logging.getLogger("engine.session").info("Photos are large.")  # as Session.notice does
        log_panel.handle(Noticed(1, "Photos are large."))
        logging.getLogger("engine.scene_loader").warning("after it")
        qtbot.waitUntil(lambda: "after it" in log_panel.view.toPlainText(), timeout=LIMIT_MS)
    finally:
        log_panel.detach()
    assert log_panel.view.toPlainText().count("Photos are large.") == 1


def test_copied_diagnostics_tell_what_is_needed_and_name_nobody(log_panel: LogPanel) -> None:
    home = str(Path.home())
    log_panel.handle(run_started())
    log_panel.handle(SettingApplied(1, 5, "opacity_lr", 0.025, 0.05))
    log_panel.handle(Failed(1, f"cannot write {home}/runs/a", "trace"))
    log_panel.copy_button.click()
    report = QGuiApplication.clipboard().text()
    assert "Python 3" in report
    assert "Device: CPU" in report
    assert "opacity_lr = 0.05" in report
    assert "cannot write ~/runs/a" in report
    assert home not in report
    assert log_panel.copy_button.text() == "Copied"


def test_home_is_shortened_only_where_it_is_a_home() -> None:
    assert without_home("/home/ann/x", Path("/home/ann")) == "~/x"
    assert without_home("/x/y", Path("/")) == "/x/y"
