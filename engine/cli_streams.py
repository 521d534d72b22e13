"""Standard output and error that may be closed, full, or read by nobody any more."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast


class OutputLost(Exception):
    """Standard output takes nothing more; `nobody_reads` when its reader has gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror or error}.")
        self.nobody_reads = isinstance(error, BrokenPipeError)


class _Stream:
    """A text stream in front of another one that may fail."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_lost = False

    def write(self, text: str) -> int:
        """Write, as long as anybody takes it."""
        if not self._is_lost:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Flush, as long as anybody takes it."""
        if not self._is_lost:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Drop what comes; the end of the program flushes what is left into nothing."""
        self._is_lost = True
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Output(_Stream):
    """What is promised there must arrive: raises OutputLost when it does not."""

    def _lose(self, error: OSError) -> None:
        super()._lose(error)
        raise OutputLost(error) from error


@contextlib.contextmanager
def lasting_streams() -> Iterator[None]:
    """Give a command both streams, whatever it was started with.

    Standard error is for progress: once nobody takes it, the rest is dropped in silence, for
    training for hours must not end because a pager was left or the disk under a log is full.
    """
    with contextlib.ExitStack() as stack:
        out, err = (
            stream or stack.enter_context(_nothing()) for stream in (sys.stdout, sys.stderr)
        )
        if isinstance(out, io.TextIOWrapper):  # a name that it cannot show ends nothing
            out.reconfigure(errors="backslashreplace")
        stack.enter_context(contextlib.redirect_stdout(cast(TextIO, _Output(out))))
        stack.enter_context(contextlib.redirect_stderr(cast(TextIO, _Stream(err))))
        yield


def _nothing() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
