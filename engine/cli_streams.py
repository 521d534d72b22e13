"""Standard output and error that may be closed, full, or read by nobody any more."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast


class LastingStream:
    """A text stream in front of another one: once that fails, the rest is dropped in silence.

    Training for hours must not end because a pager was left or the disk under a log is full.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_lost = False

    def write(self, text: str) -> int:
        """Write, as long as anybody takes it."""
        if not self._is_lost:
            try:
                return self._stream.write(text)
            except (OSError, ValueError):
                self._lose()
        return len(text)

    def flush(self) -> None:
        """Flush, as long as anybody takes it."""
        if not self._is_lost:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._lose()

    def _lose(self) -> None:
        self._is_lost = True
        redirect_to_nothing(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def redirect_to_nothing(stream: TextIO) -> None:
    """Let the end of the program flush what is left in `stream` without an error."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


@contextlib.contextmanager
def lasting_streams() -> Iterator[None]:
    """Give a command both streams, whatever it was started with, and an error that lasts."""
    with contextlib.ExitStack() as stack:
        if sys.stdout is None:
            nothing = stack.enter_context(open(os.devnull, "w"))  # noqa: PTH123  no path
            stack.enter_context(contextlib.redirect_stdout(nothing))
        if isinstance(sys.stdout, io.TextIOWrapper):  # a name that it cannot show ends nothing
            sys.stdout.reconfigure(errors="backslashreplace")
        if sys.stderr is None:
            nothing = stack.enter_context(open(os.devnull, "w"))  # noqa: PTH123  no path
            stack.enter_context(contextlib.redirect_stderr(nothing))
        stack.enter_context(contextlib.redirect_stderr(cast(TextIO, LastingStream(sys.stderr))))
        yield
