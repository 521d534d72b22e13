"""`splatscope`: a word such as `train` goes to the command line, anything else opens the window."""

import sys
from collections.abc import Sequence

from engine import cli

_FOR_CLI = (*cli.WORDS, "--version", "--help", "-h")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code. Qt is imported for the window only."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in _FOR_CLI:
        return cli.main(given)
    # torch before Qt: the two bring OpenMP and C++ runtimes, and torch's must be found first
    import torch  # noqa: F401

    from app.application import run_window

    return run_window(given)


if __name__ == "__main__":
    sys.exit(main())
