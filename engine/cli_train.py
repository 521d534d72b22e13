"""`splatscope train`: the engine that also serves the window, without one.

The main thread posts commands and listens; the engine thread works. So a run from here and a run
from the window behave as one.
"""

import argparse
import signal
import sys
import threading
from pathlib import Path

from engine import messages as m
from engine.cli import fail, print_json
from engine.cli_flags import EXIT_FAILURE, given_changes
from engine.engine_thread import Engine
from engine.errors import ExportError, SettingError
from engine.export.pictures import write_png
from engine.headless_run import HeadlessRun
from engine.presets import load_preset
from engine.scene_names import scene_path
from engine.settings import Settings

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
LISTEN_SECONDS = 0.2  # how soon a signal is noticed
VIEWS = 3  # held-out photos drawn at the end


class _Terminated(Exception):
    """SIGTERM came."""


def train(arguments: argparse.Namespace) -> int:
    """Train until the last iteration, Ctrl+C or an error; the exit code."""
    opening = _opening(arguments)
    previous = signal.signal(signal.SIGTERM, _raise_terminated)
    engine = Engine()
    woken = threading.Event()
    engine.set_wake(woken.set)
    run = HeadlessRun(engine)
    engine.start()
    engine.post(opening)
    try:
        code = _listen(engine, woken, run)
        if code == 0:
            code = _settle(engine, woken, run)
    finally:
        run.close()
        signal.signal(signal.SIGTERM, previous)
    if code == EXIT_FAILURE:
        if arguments.debug and run.details:
            print(run.details, file=sys.stderr)  # noqa: T201
        return fail(run.error or "the run did not finish.", debug=False)
    if code == 0:
        _print_result(run, as_json=arguments.json)
    return code


def _opening(arguments: argparse.Namespace) -> m.Command:
    output: Path = arguments.output
    scene = None if arguments.scene is None else scene_path(arguments.scene)
    if arguments.resume:
        return m.ResumeRun(output, tuple(given_changes(arguments).items()), scene=scene)
    if scene is None:
        raise SettingError("name a scene: a folder, or 'demo' for the built-in one.")
    base = load_preset(arguments.preset) if arguments.preset else Settings()
    return m.OpenScene(scene, base.updated(given_changes(arguments)), run_folder=output)


def _raise_terminated(number: int, frame: object) -> None:
    raise _Terminated


def _listen(engine: Engine, woken: threading.Event, run: HeadlessRun) -> int:
    """Until the run is over; after Ctrl+C the state is saved, a second one gives that up."""
    code: int | None = None
    while not run.is_stopped:
        try:
            woken.wait(LISTEN_SECONDS)
            woken.clear()
            run.take(engine.take_events())
            if code is None and (run.finished is not None or run.has_failed):
                code = 0 if run.finished is not None else EXIT_FAILURE
                if code == 0:
                    return code
                engine.post(m.Shutdown(save=True))
        except (KeyboardInterrupt, _Terminated) as stop:
            engine.post(m.Shutdown(save=code is None))
            code = EXIT_INTERRUPTED if isinstance(stop, KeyboardInterrupt) else EXIT_TERMINATED
    return EXIT_FAILURE if code is None else code


def _settle(engine: Engine, woken: threading.Event, run: HeadlessRun) -> int:
    """Draw a few held-out views, end the engine, and see that every promised file exists."""
    code = 0
    try:
        _draw_views(engine, woken, run)
    except ExportError as error:
        run.error, code = str(error), EXIT_FAILURE
    engine.post(m.Shutdown(save=True))
    while not run.is_stopped:
        woken.wait(LISTEN_SECONDS)
        woken.clear()
        run.take(engine.take_events())
    finished = run.finished
    promised = [finished.checkpoint, finished.export] if finished else []
    missing = [str(path) for path in promised if not path.is_file()]
    if missing:
        run.error, code = f"{', '.join(missing)} is missing though it was written.", EXIT_FAILURE
    return code


def _draw_views(engine: Engine, woken: threading.Event, run: HeadlessRun) -> None:
    settings = run.settings
    if run.folder is None or settings is None or settings.preview.preview == "off":
        return
    white = settings.loss.background == "white"
    for number, photo in enumerate(run.held_out[:VIEWS], start=1):
        background = (1.0, 1.0, 1.0) if white else (0.0, 0.0, 0.0)
        engine.request_view(m.View(number, photo.camera, background=background))
        frame = None
        while not run.is_stopped and (frame is None or frame.view_id != number):
            woken.wait(LISTEN_SECONDS)
            woken.clear()
            run.take(engine.take_events())
            frame = engine.take_frame() or frame
            if run.has_failed:
                return
        if frame is not None:
            name = photo.name.replace("/", "_")
            write_png(run.folder / "views" / f"step-{frame.step:06d}-{name}.png", frame.pixels)
    engine.request_view(None)


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
    print(f"{finished.export} holds {run.splats:,} splats after {finished.step:,} steps.")  # noqa: T201
    if scores is None:
        print("No photo is held out, so there is no PSNR.")  # noqa: T201
    else:
        print(  # noqa: T201
            f"Held-out PSNR {scores.psnr:.2f} dB, SSIM {scores.ssim:.4f}, over "
            f"{len(scores.photos)} photos."
        )
