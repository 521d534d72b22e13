"""The demo: the built-in scene in the window, or the same training without one.

    python -m app.demo [flags as for train]

Where no window can be opened it says why, trains with a progress bar, and prints the held-out PSNR
last; the result and a few rendered views stay in a run folder.
"""

import sys
from collections.abc import Sequence

from app.display_check import display_problem
from app.start_signals import end_the_start, pass_over

DEMO = ("demo", "--preset", "demo")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    problem = display_problem()
    if problem is None:
        from app.__main__ import run

        return run([*DEMO, *given])
    print(f"{problem} Training the demo without a window.", file=sys.stderr)  # noqa: T201
    return _train_headless(given)


def _train_headless(given: Sequence[str]) -> int:
    from app.__main__ import run
    from engine.run.run_folder import free_folder, user_runs_folder

    output: list[str] = []
    if not any(flag.split("=")[0] == "--output" for flag in given):
        folder = free_folder(user_runs_folder(), "demo")
        output = ["--output", str(folder)]
        print(f"The run is kept in {folder}.", file=sys.stderr)  # noqa: T201
    return run(["train", *DEMO, *output, *given])


if __name__ == "__main__":
    end_the_start()
    try:
        sys.exit(main())
    finally:
        pass_over()
