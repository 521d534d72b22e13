"""The lock of a run folder by itself; that runs use it is shown in `test_engine_resuming`."""

import errno
import os
from pathlib import Path

import pytest

from engine.errors import RunFolderError
from engine.run.folder_lock import LOCK_NAME, FolderLock


def test_a_second_lock_is_refused_until_the_first_is_released(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(RunFolderError, match="open in this very program") as caught:
        FolderLock(tmp_path)
    assert caught.value.path == tmp_path
    lock.release()
    FolderLock(tmp_path).release()


def test_a_shared_lock_holds_until_everybody_has_let_go(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    share = lock.share()
    lock.release()
    with pytest.raises(RunFolderError):
        FolderLock(tmp_path)
    share.release()
    FolderLock(tmp_path).release()


def test_what_a_killed_program_left_in_the_file_means_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("process 123456789 on a machine with a very long name")
    lock = FolderLock(tmp_path)
    assert (tmp_path / LOCK_NAME).read_text().startswith(f"process {os.getpid()} on ")
    assert "very long name" not in (tmp_path / LOCK_NAME).read_text()
    lock.release()


def test_the_holder_is_named_and_where_it_runs(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    (tmp_path / LOCK_NAME).write_text("process 77 on the-laptop")
    with pytest.raises(RunFolderError, match=r"another program \(process 77 on the-laptop\)"):
        FolderLock(tmp_path)
    lock.release()


def test_where_no_lock_can_be_had_the_run_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("engine.run.folder_lock._lock", no_locks)
    lock = FolderLock(tmp_path)
    assert lock.problem is not None
    assert "knows no locks (No locks available)" in lock.problem
    lock.release()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="gone cannot be written: No such file"):
        FolderLock(tmp_path / "gone")
