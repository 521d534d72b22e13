"""Files that appear whole or not at all: written beside their place, flushed, then renamed."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

TEMPORARY_SUFFIX = ".part"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_FLUSHES_NO_FOLDER = {errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file open for writing that takes the place of `path` when the block ends without error.

    On any error (a full disk, a cancelled save) what stood at `path` is left as it was and the
    partial file is removed. Raises OSError.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with temporary.open("wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Make the rename itself durable, where system and file system can.

    Windows opens no folder, and shared folders of other machines often flush none: the file is
    whole all the same.
    """
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _FLUSHES_NO_FOLDER:
            raise
    finally:
        os.close(descriptor)


def disk_error(path: Path, error: OSError) -> str:
    """A sentence for the user about a file that could not be written."""
    reason = error.strerror or str(error)
    return f"{path} could not be written: {reason}."


def what_to_mend(error: OSError) -> str:
    """What to do before trying once more, the beginning of a sentence."""
    return "Free some space" if error.errno in _NO_ROOM else "Mend that"


def other_place(error: OSError, kind: str = "place") -> str:
    """What to do about it where there is a choice, to be followed by a full stop or more."""
    room = "Free some space or choose" if error.errno in _NO_ROOM else "Choose"
    return f"{room} another {kind}"
