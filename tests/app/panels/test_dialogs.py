from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.dialogs import files, open_dialog
from app.dialogs.open_dialog import OpenDialog
from app.dialogs.steps_dialog import StepsDialog, parse_steps, run_until_dialog


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    parent = QWidget()
    qtbot.addWidget(parent)
    return parent


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3000", 3_000),
        ("3,000", 3_000),
        (" 3 000 steps ", 3_000),
        ("3_000", 3_000),
        ("3k", 3_000),
        ("1.5k", 1_500),
        ("2M", 2_000_000),
        ("1e4", 10_000),
        ("1.5", None),
        ("many", None),
        ("", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_numbers_of_steps_are_understood_as_people_type_them(text: str, number: int | None) -> None:
    assert parse_steps(text) == number


def test_run_until_takes_a_step_ahead_and_refuses_one_behind(parent: QWidget) -> None:
    dialog = run_until_dialog(4_210, 30_000, parent)
    chosen: list[int] = []
    dialog.chosen.connect(chosen.append)
    assert dialog.steps == 4_300
    dialog.field.setText("4,000")
    assert not dialog.ok_button.isEnabled()
    assert dialog.problem.text() == "Expected 4,211 to 30,000."
    dialog.accept()
    assert chosen == []
    dialog.field.setText("soon")
    assert "whole number" in dialog.problem.text()
    dialog.field.setText("5k")
    dialog.accept()
    assert chosen == [5_000]
    assert dialog.result() == StepsDialog.DialogCode.Accepted


def test_recent_scenes_can_be_opened_and_missing_ones_are_greyed(
    parent: QWidget, tmp_path: Path
) -> None:
    here, gone = tmp_path / "here", tmp_path / "gone"
    here.mkdir()
    dialog = OpenDialog([here, gone], tmp_path, parent=parent)
    chosen: list[tuple[Path, bool]] = []
    dialog.chosen.connect(lambda path, start: chosen.append((path, start)))
    assert dialog.recent.item(0).flags() & Qt.ItemFlag.ItemIsEnabled
    assert not dialog.recent.item(1).flags() & Qt.ItemFlag.ItemIsEnabled
    assert "missing" in dialog.recent.item(1).text()
    dialog.start_box.setChecked(False)
    dialog.recent.itemActivated.emit(dialog.recent.item(0))
    assert chosen == [(here, False)]


def test_a_path_with_nothing_at_it_cannot_be_opened(parent: QWidget, tmp_path: Path) -> None:
    dialog = OpenDialog([], tmp_path, parent=parent)
    assert not dialog.open_button.isEnabled()
    assert dialog.problem.text().strip() == ""
    dialog.field.setText(str(tmp_path / "gone"))
    assert "nothing at this path" in dialog.problem.text()
    assert not dialog.open_button.isEnabled()
    dialog.field.setText(str(tmp_path))
    assert dialog.open_button.isEnabled()


def test_folder_and_file_buttons_fill_the_path(
    parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "transforms.json"
    file.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(open_dialog, "ask_folder", lambda *_: tmp_path)
    monkeypatch.setattr(open_dialog, "ask_existing_file", lambda *_: file)
    dialog = OpenDialog([], tmp_path, parent=parent)
    dialog.folder_button.click()
    assert dialog.path == tmp_path
    dialog.file_button.click()
    assert dialog.path == file
    monkeypatch.setattr(open_dialog, "ask_folder", lambda *_: None)
    dialog.folder_button.click()
    assert dialog.path == file


def test_a_new_file_gets_the_suffix_of_the_suggestion(
    parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([("/x/model", ""), ("/x/model.splat", ""), ("", "")])
    monkeypatch.setattr(files.QFileDialog, "getSaveFileName", lambda *_: next(answers))
    ask = [
        files.ask_new_file(parent, "Export", Path("/x/a.ply"), files.SPLAT_FILTER) for _ in range(3)
    ]
    assert ask == [Path("/x/model.ply"), Path("/x/model.splat"), None]
