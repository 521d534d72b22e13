"""`splatscope train`: the engine that also serves the window, without one.

The main thread posts commands and listens; the engine thread works. So a run from here and a run
from the window behave as one.
"""

import argparse
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Self

from engine import messages as m
from engine.cli import fail, print_json
from engine.cli_flags import EXIT_FAILURE, given_changes, given_values
from engine.dataset.findings import worst_severity
from engine.engine_thread import Engine
from engine.errors import ExportError
from engine.export.pictures import write_png
from engine.headless_run import HeadlessRun
from engine.presets import load_preset
from engine.scene_names import scene_path
from engine.settings import Settings
from engine.training.evaluation import evaluation_background
from engine.usual_preset import usual_preset
from engine.wording import counted

VIEWS = 3  # held-out photos drawn at the end
# Signals that come so soon after the first are taken for the same one: `timeout` sends one to the
# program and one to its group, and a second one gives up saving.
SAME_SIGNAL_SECONDS = 0.5


class Signals:
    """Notes Ctrl+C, SIGTERM and a lost terminal instead of raising in the middle of something."""

    def __init__(self, woken: threading.Event) -> None:
        self.codes: list[int] = []  # of the signals that came, the first first
        self._first = float("-inf")
        self._woken = woken

    def __enter__(self) -> Self:
        wanted = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            wanted.append(signal.SIGHUP)  # nohup says that it shall mean nothing
        self._previous = {number: signal.signal(number, self._note) for number in wanted}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if now - self._first < SAME_SIGNAL_SECONDS:
            return
        if not self.codes:
            self._first = now
        self.codes.append(128 + number)
        self._woken.set()


def train(arguments: argparse.Namespace) -> int:
    """Train until the last iteration, Ctrl+C or an error; the exit code."""
    opening, notice = _opening(arguments)
    woken = threading.Event()
    with Signals(woken) as signals:  # until the last word: one that comes late undoes nothing
        engine = Engine()
        engine.set_wake(woken.set)
        run = HeadlessRun(engine, woken, notice)
        engine.start()
        engine.post(opening)
        try:
            code = _listen(run, signals)
            if code == 0:
                code = _settle(run, signals)
        finally:
            run.close()
        return _tell(run, code, arguments)


def _tell(run: HeadlessRun, code: int, arguments: argparse.Namespace) -> int:
    """The last words, by the exit code, which comes back."""
    if code == EXIT_FAILURE:
        if arguments.debug and run.details:
            print(run.details, file=sys.stderr)  # noqa: T201
        return fail(run.error or "the run did not finish.", debug=False)
    if code == 0:
        _print_result(run, as_json=arguments.json)
    else:
        print(f"splatscope: {_way_on(run, arguments.output)}", file=sys.stderr)  # noqa: T201
    return code


def _way_on(run: HeadlessRun, output: Path) -> str:
    """What became of a run that a signal ended, and how to go on."""
    go_on = f"go on with: splatscope train --output {shlex.quote(str(output))} --resume"
    if run.finished is not None:
        return f"interrupted after the run was finished; its files are in {output}."
    if run.folder is None:
        return "interrupted while loading; no step was done."
    if run.step == 0:
        return f"stopped before the first step; {go_on}"
    if run.saved_step == run.step:
        return f"stopped and saved at step {run.step:,}; {go_on}"
    if run.saved_step == 0:
        return f"stopped at step {run.step:,}, of which nothing is saved."
    return f"stopped at step {run.step:,}; saved is step {run.saved_step:,}; {go_on}"


def _opening(arguments: argparse.Namespace) -> tuple[m.Command, str]:
    """What the engine is asked for, and what is said once the run has begun."""
    output: Path = arguments.output
    if arguments.resume:
        scene = None if arguments.scene is None else scene_path(arguments.scene)
        changes = given_changes(arguments)
        return m.ResumeRun(output, tuple(changes.items()), scene=scene), ""
    settings, notice = _settings(arguments)
    return m.OpenScene(scene_path(arguments.scene), settings, run_folder=output), notice


def _settings(arguments: argparse.Namespace) -> tuple[Settings, str]:
    """Of a new run; and which preset was chosen where none is named."""
    given = given_values(arguments)
    if arguments.preset:
        return load_preset(arguments.preset).updated(given), ""
    usual = usual_preset(str(given.get("backend", "auto")))
    return load_preset(usual.name).updated(given), f"Preset {usual.name}: {usual.reason}"


def _listen(run: HeadlessRun, signals: Signals) -> int:
    """Until the run is over; after Ctrl+C the state is saved, a second one gives that up.

    The code of the signal is only for a run of which nothing was lost against its will.
    """
    code: int | None = None
    answered = 0
    while run.listen():
        if run.finished is not None and code is None and not signals.codes:
            return 0
        if run.has_failed and code is None:
            code = EXIT_FAILURE
            run.engine.post(m.Shutdown(save=True))
        for number in signals.codes[answered:]:
            answered += 1
            run.engine.post(m.Shutdown(save=code is None))
            code = code or number
    return EXIT_FAILURE if code is None or run.is_unsaved else code


def _settle(run: HeadlessRun, signals: Signals) -> int:
    """Draw a few held-out views, end the engine, and see that every promised file exists."""
    code = 0
    try:
        _draw_views(run, signals)
    except ExportError as error:
        run.error, code = str(error), EXIT_FAILURE
    run.engine.post(m.Shutdown(save=True))
    while run.listen():
        pass
    finished = run.finished
    promised = [finished.checkpoint, finished.export] if finished else []
    missing = [str(path) for path in promised if not path.is_file()]
    if missing:
        run.error, code = f"{', '.join(missing)} is missing though it was written.", EXIT_FAILURE
    if run.is_unsaved:
        return EXIT_FAILURE
    return signals.codes[0] if signals.codes else code


def _draw_views(run: HeadlessRun, signals: Signals) -> None:
    """Ask the engine for pictures as a window does, and keep them in the run's `views`.

    Those of an old run that nothing has changed are left as they are.
    """
    settings = run.settings
    if run.folder is None or settings is None or settings.preview.preview == "off":
        return
    background = evaluation_background(settings)
    for number, photo in enumerate(run.held_out[:VIEWS], start=1):
        name = photo.name.replace("/", "_")
        path = run.folder / "views" / f"step-{run.step:06d}-{name}.png"
        if path.is_file() and not run.has_changed:
            continue
        run.engine.request_view(m.View(number, photo.camera, background=background))
        frame = None
        while frame is None or frame.view_id != number:
            if not run.listen() or run.has_failed or signals.codes:
                return
            frame = run.engine.take_frame()
        write_png(path, frame.pixels)


def _print_result(run: HeadlessRun, *, as_json: bool) -> None:
    finished, scores = run.finished, run.evaluated
    if finished is None:
        return
    if as_json:
        print_json(
            {
                "step": finished.step,
                "splats": run.splats,
                "psnr": scores.psnr if scores else None,
                "ssim": scores.ssim if scores else None,
                "checkpoint": str(finished.checkpoint),
                "export": str(finished.export),
            }
        )
        return
    worst = worst_severity(run.findings)
    if worst != "ok":
        print(f"The check of the scene found {worst}s; see above.", file=sys.stderr)  # noqa: T201
    splats, steps = counted(run.splats, "splat"), counted(finished.step, "step")
    print(f"{finished.export} holds {splats} after {steps}.")  # noqa: T201
    if scores is None:
        print("No photo is held out, so there is no PSNR.")  # noqa: T201
    else:
        print(  # noqa: T201
            f"Held-out PSNR {scores.psnr:.2f} dB, SSIM {scores.ssim:.4f}, over "
            f"{counted(len(scores.photos), 'photo')}."
        )
