"""Ctrl+C and SIGTERM while training without a window."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from engine import cli, cli_train
from engine.run.run_folder import RunFolder
from tests.child_process import (
    BUSY_SECONDS,
    PROJECT,
    interrupted_on_import,
    run_program,
    run_python,
)
from tests.engine.cli.commands import SHORT, Capture, strict, wait_for_steps


@pytest.fixture(autouse=True)
def heeded_signals() -> Iterator[None]:
    """As in a terminal, however the tests were started: nohup and `&` ignore some of them."""
    wanted = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    wanted[signal.SIGTERM] = lambda *_: None  # one that comes late does not end the tests
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_ctrl_c_saves_and_leaves_with_130(scene: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "train", str(scene), "--output", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_steps(folder)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=BUSY_SECONDS)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    last = RunFolder(folder).last_checkpoint()
    assert last is not None
    steps = int(last.stem.removeprefix("step-"))
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == steps
    go_on = f"go on with: splatscope train --output {folder} --resume"
    assert err.splitlines()[-1] == f"splatscope: stopped and saved at step {steps:,}; {go_on}"
    assert f"saved {last}" in (folder / "run.log").read_text()


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGTERM], 143),
        ([signal.SIGHUP], 129),  # the terminal is gone
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
)
def test_signals_end_a_run_in_order(
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    signals: list[signal.Signals],
    code: int,
) -> None:
    folder = tmp_path / "r"

    def send() -> None:
        wait_for_steps(folder)
        for number in signals:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(cli_train, "SAME_SIGNAL_SECONDS", 0.0)  # a second one is another one
    before = signal.getsignal(signal.SIGTERM)
    sender = threading.Thread(target=send)
    sender.start()
    assert cli.main(["train", str(scene), "--output", str(folder), "--threads", "1"]) == code
    sender.join()
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not list(folder.rglob("*.part"))


def test_a_signal_that_comes_twice_at_once_is_one_and_a_later_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`timeout` sends one to the program, and one to its group."""
    with cli_train.Signals(threading.Event()) as signals:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        assert signals.codes == [143]
        later = time.monotonic() + 1.1 * cli_train.SAME_SIGNAL_SECONDS
        monkeypatch.setattr(time, "monotonic", lambda: later)
        signal.raise_signal(signal.SIGTERM)
        assert signals.codes == [143, 143]


def test_ctrl_c_with_a_full_disk_fails_with_the_reason(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = tmp_path / "r"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def send() -> None:
        wait_for_steps(folder)
        monkeypatch.setattr("os.fsync", full)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    assert cli.main(["train", str(scene), "--output", str(folder), "--threads", "1"]) == 1
    sender.join()
    assert capsys.readouterr().err.count("No space left on device") == 1
    assert list((folder / "checkpoints").iterdir()) == []


def test_ctrl_c_while_the_result_is_printed_changes_nothing(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted(document: Mapping[str, object]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        cli.print_json(document)

    monkeypatch.setattr(cli_train, "print_json", interrupted)
    arguments = ["train", str(scene), "--output", str(tmp_path / "r"), "--json", *SHORT]
    assert cli.main(arguments) == 0
    assert strict(capsys.readouterr().out)["step"] == 6


def test_ctrl_c_is_heeded_while_torch_loads_though_the_shell_had_it_ignored(
    scene: Path, tmp_path: Path
) -> None:
    """As in the background of a script, `splatscope train ... &`."""
    program = interrupted_on_import("torch.nn", "train", scene, "--output", tmp_path / "r", *SHORT)
    ended = subprocess.run(
        program,
        capture_output=True,
        text=True,
        timeout=BUSY_SECONDS,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert "interrupted" in ended.stderr.splitlines()[-1]


def test_ctrl_c_before_the_command_line_is_imported_is_told_as_later() -> None:
    ended = run_program(*interrupted_on_import("engine.cli", "doctor"))
    assert (ended.returncode, ended.stderr) == (130, "splatscope: interrupted.\n")


def test_ctrl_c_ends_the_start_also_where_python_passes_exceptions_over() -> None:
    """As where an import lock is let go: in what is called when a thing nobody holds goes."""
    program = (
        "import os, signal, weakref\n"
        "from app.start_signals import end_the_start\n"
        "end_the_start()\n"
        "class Lock: pass\n"
        "lock = Lock()\n"
        "watch = weakref.ref(lock, lambda gone: os.kill(os.getpid(), signal.SIGINT))\n"
        "del lock\n"
        "print('went on')\n"
    )
    ended = run_python("-c", program)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "splatscope: interrupted.\n"


def test_little_is_imported_before_ctrl_c_is_heeded() -> None:
    """Python's own start aside: Ctrl+C would print a traceback of whatever is being imported."""
    program = "import sys, app.__main__; print('typing' in sys.modules, 're' in sys.modules)"
    ended = run_python("-S", "-c", program, variables={"PYTHONPATH": str(PROJECT)})
    assert ended.stdout.split() == ["False", "False"], ended.stderr


def test_ctrl_c_while_the_libraries_clean_up_is_passed_over() -> None:
    program = (
        "import atexit, os, signal, sys, app.__main__\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "atexit.register(lambda: (os.kill(os.getpid(), signal.SIGINT), print('cleaned up')))\n"
        "sys.argv = ['splatscope', '--version']\n"
        "sys.exit(app.__main__.main())\n"
    )
    ended = run_python("-c", program)
    assert ended.returncode == 0
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[-1] == "cleaned up"


def test_nohup_is_heeded(scene: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"

    def send() -> None:
        wait_for_steps(folder)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sender = threading.Thread(target=send)
    sender.start()
    code = cli.main(["train", str(scene), "--output", str(folder), "--threads", "1"])
    sender.join()
    signal.signal(signal.SIGHUP, before)
    assert code == 143
