"""Ctrl+C and a polite kill while the program starts: it ends at once, for nothing is open yet.

Set before anything slow is imported, so no Qt here. Once the program's loop is about to turn,
`interrupts` takes over: it closes the window, which saves first.
"""

import signal
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_code(number: int) -> int:
    """What a shell reports of a program ended by a signal: 130 for Ctrl+C, 143 for a kill."""
    return 128 + number


def end_the_start() -> None:
    """Let both signals end the program at once, with their exit codes and no traceback."""
    for number in SIGNALS:
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(exit_code(number))
