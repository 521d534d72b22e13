"""`splatscope`: a word such as `train` goes to the command line, anything else opens the window.

Until `run` has set the signals, Ctrl+C is Python's, with a traceback: little is imported before.
"""

import signal
import sys

from app.start_signals import SIGNALS, end_the_start, interrupt_by_default, pass_over


def main() -> int:
    """Run the program that the shell started; the exit code."""
    try:
        return run(sys.argv[1:])
    finally:
        pass_over()


def run(arguments: list[str]) -> int:
    """Run the program with these arguments; the exit code. Qt is imported for the window only."""
    before = [signal.getsignal(number) for number in SIGNALS]
    end_the_start()
    from engine import cli

    if arguments and arguments[0] in (*cli.WORDS, "--version", "--help", "-h"):
        interrupt_by_default()
        try:
            return cli.main(arguments)
        finally:
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)
    from app.application import run_window

    return run_window(arguments, shows_sign=True)


if __name__ == "__main__":
    sys.exit(main())
