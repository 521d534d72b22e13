"""Whether a file may be opened: a named pipe, a socket or a device keeps its reader waiting."""

import errno
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def is_there(path: Path) -> bool:
    """Whether anything but a folder lies there; whoever opens it finds out what it is."""
    return path.exists() and not path.is_dir()


def is_folder(path: Path) -> bool:
    """Whether a folder lies there; a name that no file can have is none's."""
    try:
        return path.is_dir()
    except OSError:
        return False


def listed(item: Path) -> str:
    """Its name for people, with what it is where that of a folder looks like a file's."""
    return f"{item.name} (a folder)" if item.suffix and item.is_dir() else item.name


def require_plain_file(path: Path) -> None:
    """Raise OSError that says what lies there instead of a plain file; ask before opening.

    A link to a plain file is one.
    """
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something unknown")
    raise OSError(errno.EINVAL, f"it is {kind}, not a plain file", str(path))


def is_unicode(path: Path) -> bool:
    """Whether a name can be written into a file: bytes that are no UTF-8 cannot."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def with_escapes(path: Path) -> str:
    """A name as it can be shown, whatever bytes it has."""
    return str(path).encode("utf-8", "backslashreplace").decode()
