"""`splatscope`: a word such as `train` goes to the command line, anything else opens the window."""

import sys
from collections.abc import Sequence

from app.start_signals import end_the_start
from engine import cli

_FOR_CLI = (*cli.WORDS, "--version", "--help", "-h")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code. Qt is imported for the window only."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in _FOR_CLI:
        return cli.main(given)
    end_the_start()
    from app.application import run_window

    return run_window(given, shows_sign=True)


if __name__ == "__main__":
    sys.exit(main())
