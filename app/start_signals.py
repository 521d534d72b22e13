"""Ctrl+C and a polite kill while the program starts, where nothing is open yet, and while it ends.

Set before anything slow is imported, so no Qt here, and not even `typing`. Once the program's loop
is about to turn, `interrupts` takes over: it closes the window, which saves first.

The first tenths of a second, in which Python starts itself, nobody can answer for: Ctrl+C is an
exception there, which ends the program with a traceback, or is lost where Python may raise none.
"""

import os
import signal

_STANDARD_ERROR = 2
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_code(number: int) -> int:
    """What a shell reports of a program ended by a signal: 130 for Ctrl+C, 143 for a kill."""
    return 128 + number


def end_the_start() -> None:
    """Let both signals end the program at once, with their exit codes and no traceback.

    Ctrl+C is answered with the line that the command line has for it later.
    """
    for number in SIGNALS:
        signal.signal(number, _end)


def interrupt_by_default() -> None:
    """As a terminal starts a command line, also where a script's `&` had Ctrl+C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def pass_over() -> None:
    """Let neither signal disturb the end: all is saved and told, and the libraries clean up.

    Python would print a traceback from whatever it is tearing down just then.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, frame: object) -> None:
    """At once, for nothing is open that would be lost.

    An exception would be passed over where it comes while an import lock is let go, once in some
    hundred times: the program would say that it was interrupted, and go on.
    """
    if number == signal.SIGINT:
        try:  # noqa: SIM105  contextlib takes longer to import than all else here
            os.write(_STANDARD_ERROR, b"splatscope: interrupted.\n")
        except OSError:  # it is closed: nobody wants to know
            pass
    os._exit(exit_code(number))
