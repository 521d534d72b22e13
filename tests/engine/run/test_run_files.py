"""Run folder, journal and metrics: what stands on the disk, also after a crash."""

import dataclasses
import errno
import json
import math
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from engine.errors import RunFolderError
from engine.run.atomic_file import atomic_file
from engine.run.journal import Journal
from engine.run.metrics_log import MetricsLog, finite
from engine.run.run_folder import RunFacts, RunFolder, free_folder, user_runs_folder
from engine.scene_names import DEMO_FOLDER, referenced_scene, scene_path, scene_reference
from engine.settings import Settings
from tests.journals import read_journal

FACTS = RunFacts("../scene", "banana", "cpu", "CPU, 2 threads, AVX2", {"torch": "2"})


# --- files that appear whole or not at all -------------------------------------------------------


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half() -> None:
        with atomic_file(path) as handle:
            handle.write(b"new, but only half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_file(path) as handle:
        handle.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(("number", "is_told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_file_system_that_flushes_no_folder_keeps_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_told: bool
) -> None:
    flush = os.fsync

    def refuses_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", refuses_folders)
    told = pytest.raises(OSError, match=os.strerror(number)) if is_told else nullcontext()
    with told, atomic_file(tmp_path / "file") as handle:
        handle.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


# --- the folder ----------------------------------------------------------------------------------


def test_a_new_folder_has_its_parts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a" / "run")
    folder.create()
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "checkpoints",
        "exports",
        "views",
    ]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    RunFolder(tmp_path).create()
    assert (tmp_path / "checkpoints").is_dir()


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="already holds files"):
        RunFolder(tmp_path).create()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RunFolderError, match="is a file"):
        RunFolder(tmp_path / "run").create()


def test_only_differences_are_written_and_come_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    settings = Settings().updated({"opacity_lr": 0.05, "background": "white", "seed": 3})
    folder.write_facts(settings, FACTS)
    text = folder.facts_path.read_text()
    assert "opacity_lr = 0.05" in text
    assert "sh_dc_lr" not in text
    assert folder.read_facts() == (settings, FACTS)


def test_changes_that_wait_for_a_restart_come_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    waiting = dataclasses.replace(FACTS, held={"seed": 4, "antialiased": True, "backend": "cpu"})
    folder.write_facts(Settings(), waiting)
    assert folder.read_facts() == (Settings(), waiting)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no toml at all", "cannot be read"),
        ("format_version = 1", "lacks the entry"),
        ("settings = 5", "cannot be read"),
        (
            'scene="a"\nscene_name="b"\nbackend="c"\ndevice="d"\nformat_version=99\n'
            "[versions]\n[settings]\nsetting_of_tomorrow=1",
            "newer version",
        ),
        ('format_version="2"\n[settings]', "format_version is '2'; expected a whole number"),
        (
            'scene="a"\nscene_name="b"\nbackend="c"\ndevice="d"\n[versions]\n[settings]\nlr=1',
            "no setting named 'lr'",
        ),
        (
            'scene="a"\nscene_name="b"\nbackend="c"\ndevice="d"\n[versions]\n[settings]\n'
            "[held]\nseed=-1",
            "seed is -1",
        ),
    ],
)
def test_a_damaged_run_file_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(RunFolderError, match=says) as caught:
        RunFolder(tmp_path).read_facts()
    assert "run.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "run.toml is empty (0 bytes)"),
        ("\n", "run.toml is empty (1 byte)"),
        ('scene = "../sce', "run.toml cannot be read"),
        ("format_version = 1", "run.toml lacks the entry 'settings'"),
    ],
)
def test_a_run_file_cut_short_is_told_with_what_can_still_be_done(
    tmp_path: Path, text: str, says: str
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.facts_path.write_text(text)
    with pytest.raises(RunFolderError, match="begin a new run") as caught:
        folder.read_facts()
    assert says in str(caught.value)
    folder.checkpoint_path(7).write_bytes(b"")
    with pytest.raises(RunFolderError, match="Put a copy of it back to go on") as caught:
        folder.read_facts()
    assert f"splatscope render take {folder.checkpoint_path(7)}" in str(caught.value)


def test_a_folder_without_run_file_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder"):
        RunFolder(tmp_path).read_facts()


def test_the_scene_is_found_again_after_both_moved(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "scene").mkdir(parents=True)
    (before / "runs" / "one").mkdir(parents=True)
    reference = scene_reference(before / "scene", RunFolder(before / "runs" / "one"))
    assert reference == "../../scene"
    before.rename(after)
    found = referenced_scene(reference, RunFolder(after / "runs" / "one"))
    assert found == after / "scene"


def test_the_built_in_scene_is_kept_by_name(tmp_path: Path) -> None:
    assert scene_path("demo") == DEMO_FOLDER
    assert scene_path("./demo") == Path("demo")
    assert scene_reference(DEMO_FOLDER, RunFolder(tmp_path)) == "demo"
    assert referenced_scene("demo", RunFolder(tmp_path)) == DEMO_FOLDER


def test_runs_are_numbered_and_never_reuse_a_name(tmp_path: Path) -> None:
    assert free_folder(tmp_path / "none", "banana").name == "banana-1"
    (tmp_path / "banana-1").mkdir()
    (tmp_path / "banana-7").mkdir()
    (tmp_path / "bananas-9").mkdir()
    assert free_folder(tmp_path, "banana").name == "banana-8"
    (tmp_path / "out").mkdir()
    assert free_folder(tmp_path, "out").name == "out-2"
    assert free_folder(tmp_path, "a b/ü?").name == "a-b-ü-1"
    assert user_runs_folder().name == "runs"


def test_the_last_checkpoint_is_the_one_of_the_highest_step(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.last_checkpoint() is None
    folder.checkpoints.mkdir()
    for name in ("step-000900", "step-001000", "step-1000000", "other"):
        (folder.checkpoints / f"{name}.safetensors").touch()
    (folder.checkpoints / "step-2000000.safetensors.part").touch()
    last = folder.last_checkpoint()
    assert last is not None
    assert last.name == "step-1000000.safetensors"
    folder.reopen()
    assert not list(folder.checkpoints.glob("*.part"))


# --- metrics -------------------------------------------------------------------------------------


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_row_is_a_line_and_evaluations_join_the_last(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path) as log:
        log.append({"step": 1, "loss": 0.5})
        log.append({"step": 2, "loss": 0.4})
        log.amend({"psnr": 20.0})
        log.append({"step": 3, "loss": 0.3})
        log.flush()
        log.amend({"psnr": 21.0})  # by hand, after the row was already on the disk
    assert rows(path) == [
        {"step": 1, "loss": 0.5},
        {"step": 2, "loss": 0.4, "psnr": 20.0},
        {"step": 3, "loss": 0.3, "psnr": 21.0},
    ]


def test_what_json_cannot_say_is_null(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path) as log:
        log.append({"step": 1, "loss": math.nan, "l1": math.inf, "splats": 5})
    assert rows(path) == [{"step": 1, "loss": None, "l1": None, "splats": 5}]
    assert finite([{"a": (-math.inf, 1.5)}]) == [{"a": [None, 1.5]}]


def test_resuming_drops_rows_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path) as log:
        for step in range(1, 8):
            log.append({"step": step})
    with path.open("a") as handle:
        handle.write('{"step": 8, "lo')  # the power went
    with MetricsLog(path, after_step=5) as log:
        log.append({"step": 6, "again": True})
    assert [row["step"] for row in rows(path)] == [1, 2, 3, 4, 5, 6]
    assert rows(path)[-1]["again"] is True
    undone = log.undone
    assert undone is not None
    assert (undone.first, undone.last) == (6, 7)
    assert rows(undone.path) == [{"step": 6}, {"step": 7}]
    with MetricsLog(path, after_step=5) as again:  # a second time: nothing is written over
        pass
    assert again.undone is not None
    assert rows(again.undone.path) == [{"step": 6, "again": True}]
    assert rows(undone.path) == [{"step": 6}, {"step": 7}]
    with MetricsLog(path, after_step=5) as whole:
        assert whole.undone is None


def test_a_new_run_starts_an_empty_file(tmp_path: Path) -> None:
    with MetricsLog(tmp_path / "metrics.jsonl") as log:
        log.amend({"psnr": 1.0})  # nothing to add to: no step was done
    assert rows(tmp_path / "metrics.jsonl") == []


def test_rows_reach_the_disk_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.run.metrics_log.FLUSH_SECONDS", 0.0)
    with MetricsLog(tmp_path / "metrics.jsonl") as log:
        log.append({"step": 1})
        log.append({"step": 2})
        assert len(rows(tmp_path / "metrics.jsonl")) == 2


class Filling:
    """A file on a disk that takes `room` more bytes; it stands in for the log's own file."""

    def __init__(self, log: MetricsLog, room: int) -> None:
        self.room, self._file = room, log._file
        log._file = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self._file.write(data[: self.room])
        self.room -= taken
        return taken


def test_rows_that_a_full_disk_cuts_are_written_whole_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path) as log:
        log.append({"step": 1})
        log.flush()
        disk = Filling(log, room=20)
        for step in (2, 3, 4):
            log.append({"step": step})
        with pytest.raises(OSError, match="No space left"):
            log.flush()
        assert rows(path) == [{"step": 1}]
        log.append({"step": 5})
        disk.room = 1_000
        log.flush()
        log.append({"step": 6})
    assert [row["step"] for row in rows(path)] == [1, 2, 3, 4, 5, 6]


def test_resuming_keeps_good_rows_behind_a_damaged_one_and_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2, "lo{"step": 3}\n[4]\n{"step": 5}\n{"step": 9}\n{"st')
    with MetricsLog(path, after_step=6) as log:
        assert log.damaged == 2
        log.append({"step": 7})
    assert [row["step"] for row in rows(path)] == [1, 5, 7]


# --- journal -------------------------------------------------------------------------------------


def test_commands_stand_in_the_journal_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.record(5, "ResetOpacity", {})
    assert read_journal(path) == [{"step": 5, "what": "ResetOpacity", "details": {}}]
    journal.close()


def test_a_gesture_becomes_one_entry_when_something_else_follows(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    for step, value in ((10, 0.1), (12, 0.2), (15, 0.3)):
        journal.record_setting(step, "opacity_lr", 0.025, value, gesture=4, held=False)
    assert journal.has_gesture
    assert read_journal(path) == []
    journal.record_setting(20, "opacity_lr", 0.3, 0.4, gesture=0, held=False)
    journal.close()
    first, second = read_journal(path)
    assert (first["old"], first["new"], first["step"]) == (0.025, 0.3, 15)
    assert first["changes"] == [[10, 0.1], [12, 0.2], [15, 0.3]]
    assert (second["old"], second["new"]) == (0.3, 0.4)


def test_a_gesture_that_nobody_continues_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.record_setting(1, "scale_lr", 0.1, 0.2, gesture=1, held=False)
    journal.end_stale_gesture()
    assert read_journal(tmp_path / "journal.jsonl") == []
    monkeypatch.setattr("engine.run.journal.GESTURE_SECONDS", 0.0)
    journal.end_stale_gesture()
    assert len(read_journal(tmp_path / "journal.jsonl")) == 1
    journal.close()


def test_a_journal_continued_after_a_crash_has_whole_entries_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"step": 1, "what": "Start", "details": {}}\n{"step": 2, "wh')
    journal = Journal(path)
    journal.record(3, "Pause", {})
    journal.close()
    assert [entry["step"] for entry in read_journal(path)] == [1, 3]
