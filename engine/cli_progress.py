"""How far a run without a window is: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any, Self, TextIO, cast

from tqdm import tqdm  # type: ignore[import-untyped]

from engine.wording import printable

TICK_SECONDS = 0.5  # between two pictures of a bar to which nothing happens
LOG_SECONDS = 10.0  # between two lines of progress in a file or a pipe
FIRST_SECONDS = 0.5  # an error at once comes alone


class _Lines:
    """What tqdm draws over itself, as whole lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "ascii"

    def write(self, text: str) -> None:
        """A line, unless it would be empty."""
        shown = text.strip("\r\n ")
        if shown:
            self._stream.write(shown + "\n")

    def flush(self) -> None:
        """Flush the stream behind."""
        self._stream.flush()


class Progress:
    """Says on standard error what is being done; messages go through `say`, past the bar.

    `tick` is for a loop that waits: it keeps the clock going while nothing is reported.
    """

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self._is_terminal = sys.stderr.isatty()
        self._interval = TICK_SECONDS if self._is_terminal else LOG_SECONDS
        self._next = time.monotonic() + (FIRST_SECONDS if self._is_terminal else LOG_SECONDS)
        self._stage = ""  # before the first step
        self._shown = ("", -1)
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the last picture of the bar standing."""
        if self._bar is not None:
            self._bar.leave = not self._stage
            self._bar.close()

    def say(self, message: str) -> None:
        """A line that stays."""
        message = printable(message)
        if self._is_terminal:
            tqdm.write(message, file=sys.stderr)
        else:
            print(message, file=sys.stderr, flush=True)  # noqa: T201

    def preparing(self, stage: str, done: int, total: int) -> None:
        """Something before the first step; shown only when it takes a while."""
        self._stage = f"{stage} {done:,}/{total:,}" if total > 1 else stage
        self.tick()

    def reading(self, stage: str, file: str, done: int, total: int) -> None:
        """What the readers of scenes call; the bar has no room for the file."""
        self.preparing(stage, done, total)

    def begin(self, done: int, total: int) -> None:
        """Training starts at `done` of `total` steps; the speed is of the steps to come."""
        self.close()
        self._stage = ""
        self._bar = self._made(desc="Training", total=total, initial=done)

    def step(self, done: int, text: str) -> None:
        """So many steps are done."""
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def tick(self) -> None:
        """Show what is going on, now and then."""
        if time.monotonic() < self._next or not (self._stage or self._bar):
            return
        if not self._is_terminal and self._bar is not None and self._shown == self._state():
            return  # a log needs no line that says the same again
        self._next = time.monotonic() + self._interval
        if self._bar is None:
            self._bar = self._made(bar_format="{desc}")
        if self._stage:
            self._bar.set_description_str(self._stage, refresh=False)
        self._bar.refresh()
        self._shown = self._state()

    def _state(self) -> tuple[str, int]:
        return self._stage, self._bar.n if self._bar is not None else 0

    def _made(self, **options: Any) -> Any:
        return tqdm(
            unit=" steps",
            file=sys.stderr if self._is_terminal else cast(TextIO, _Lines(sys.stderr)),
            dynamic_ncols=self._is_terminal,
            ncols=None if self._is_terminal else 100,
            mininterval=0.1 if self._is_terminal else LOG_SECONDS,
            **options,
        )
