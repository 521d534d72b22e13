"""One program at a time writes into a run folder.

The operating system keeps the lock while the file is open, so that a program that crashed or was
killed leaves none behind. The file stays when the lock is gone: to take it away would let two
programs lock two files of one name.
"""

import errno
import os
import socket
import sys
from pathlib import Path

from engine.errors import RunFolderError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "run.lock"
_HELD = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}
_UNKNOWN_HERE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
_LOCKED_BYTE = 2**30  # on Windows nobody else may read what is locked, so it is not the text


class FolderLock:
    """The right to write into a run folder, from its making until `release` or the process's end.

    Each `share` needs a `release` of its own. `problem` is a sentence where the file system of the
    folder knows no locks; the run goes on.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock; RunFolderError when somebody else holds it or the folder is read-only."""
        self._holders = 1
        self._descriptor, self.problem = _locked_file(folder)

    def take_anew(self, folder: Path) -> None:
        """Hold `folder`, made anew or another one, in the place of the one before.

        Every holder then has that. Raises RunFolderError as at first, and holds what it held.
        """
        before = self._descriptor
        self._descriptor, self.problem = _locked_file(folder)
        os.close(before)

    def stands_in(self, folder: Path) -> bool:
        """Whether the file that is locked is still the one which others would find there."""
        try:
            found = (folder / LOCK_NAME).stat()
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._descriptor))

    def share(self) -> "FolderLock":
        """The same lock for one more holder."""
        self._holders += 1
        return self

    def release(self) -> None:
        """Let others in, once every holder has let go."""
        self._holders -= 1
        if self._holders == 0:
            os.close(self._descriptor)


def _locked_file(folder: Path) -> tuple[int, str | None]:
    """The descriptor of the lock's file, and a sentence where no locks are known."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _not_writable(folder, error) from error
    try:
        return descriptor, _take(descriptor, folder)
    except OSError as error:
        os.close(descriptor)
        raise _not_writable(folder, error) from error
    except RunFolderError:
        os.close(descriptor)
        raise


def _take(descriptor: int, folder: Path) -> str | None:
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in _UNKNOWN_HERE:
            return (
                f"The file system of {folder} knows no locks ({error.strerror}), so nothing "
                "keeps another program from writing there. Open this run only once at a time."
            )
        if error.errno not in _HELD:
            raise
        raise _in_use(folder, _text_of(descriptor)) from None
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, _own_name().encode("utf-8"))
    return None


def _lock(descriptor: int) -> None:
    """Lock or OSError at once; closing the descriptor ends the lock."""
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _own_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _text_of(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 1000).decode("utf-8", errors="replace").strip()


def _not_writable(folder: Path, error: OSError) -> RunFolderError:
    return RunFolderError(
        f"The run folder {folder} cannot be written: {error.strerror or error}. Make room or make "
        "it writable, or copy it to another place.",
        path=folder,
    )


def _in_use(folder: Path, holder: str) -> RunFolderError:
    if holder == _own_name():
        return RunFolderError(
            f"The run folder {folder} is open in this very program already (process "
            f"{os.getpid()}). Close that run first.",
            path=folder,
            value=holder,
        )
    return RunFolderError(
        f"The run folder {folder} is in use by another program ({holder or 'of unknown name'}). "
        "Close the run there, or end that process, and try again.",
        path=folder,
        value=holder,
    )
