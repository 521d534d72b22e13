"""`splatscope`: a word such as `train` goes to the command line, anything else opens the window."""

import signal
import sys
from collections.abc import Sequence

from app.start_signals import SIGNALS, end_the_start, interrupt_by_default, pass_over


def main() -> int:
    """Run the program that the shell started; the exit code."""
    try:
        return run(sys.argv[1:])
    finally:
        pass_over()


def run(arguments: Sequence[str]) -> int:
    """Run the program with these arguments; the exit code. Qt is imported for the window only."""
    given = list(arguments)
    before = [signal.getsignal(number) for number in SIGNALS]
    end_the_start()
    from engine import cli

    if given and given[0] in (*cli.WORDS, "--version", "--help", "-h"):
        interrupt_by_default()
        try:
            return cli.main(given)
        finally:
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)
    from app.application import run_window

    return run_window(given, shows_sign=True)


if __name__ == "__main__":
    sys.exit(main())
