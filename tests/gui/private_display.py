"""A virtual screen with a window manager for the tests of real windows.

Without a window manager nothing minimises, maximises or gets the focus. The manager draws no
frames here, so that a window of 1600x1000 fits a screen of 1600x1000.
"""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

LIMIT_S = 100  # for what takes a fraction of one: the machine may be busy
OPENBOX_RULES = """<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew><followMouse>no</followMouse></focus>
  <placement><policy>Smart</policy></placement>
  <desktops><number>1</number></desktops>
  <applications>
    <application class="*"><decor>no</decor><focus>yes</focus></application>
  </applications>
</openbox_config>
"""


class PrivateDisplay:
    """Xvfb and openbox on a display number of their own."""

    def __init__(self, width: int = 1600, height: int = 1000) -> None:
        for program in ("Xvfb", "openbox"):
            if shutil.which(program) is None:
                raise RuntimeError(
                    f"Tests of real windows need {program}; install the packages xvfb and openbox."
                )
        self._folder = tempfile.TemporaryDirectory()
        self._stack = contextlib.ExitStack()
        self.name = self._start_screen(width, height)
        self._start_manager()

    def environment(self) -> dict[str, str]:
        """The process environment for a program that opens windows here."""
        variables = {k: v for k, v in os.environ.items() if k != "WAYLAND_DISPLAY"}
        return variables | {"DISPLAY": self.name, "QT_QPA_PLATFORM": "xcb"}

    def close(self) -> None:
        """End the window manager and the screen."""
        self._stack.close()
        self._folder.cleanup()

    def _start_screen(self, width: int, height: int) -> str:
        reading, writing = os.pipe()
        options = f"-screen 0 {width}x{height}x24 -nolisten tcp +extension GLX -noreset"
        screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), *options.split()],
            pass_fds=(writing,),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(_end, screen)
        os.close(writing)
        number = ""
        with os.fdopen(reading, "rb", buffering=0) as answers:
            # the number and the end of its line come in two writes; Xvfb dies of a closed pipe
            while not number.endswith("\n"):
                ready, _, _ = select.select([answers], [], [], LIMIT_S)
                part = answers.read(16).decode() if ready else ""
                if not part:
                    break
                number += part
        number = number.strip()
        if not number:
            self.close()
            raise RuntimeError(f"Xvfb did not open a display within {LIMIT_S} s.")
        return f":{number}"

    def _start_manager(self) -> None:
        rules = Path(self._folder.name) / "rc.xml"
        rules.write_text(OPENBOX_RULES, encoding="utf-8")
        started = Path(self._folder.name) / "started"
        when_ready = ["--startup", f"touch {started}"]
        manager = subprocess.Popen(
            ["openbox", "--sm-disable", "--config-file", str(rules), *when_ready],
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(_end, manager)
        limit = time.monotonic() + LIMIT_S
        while not started.exists():
            if time.monotonic() > limit or manager.poll() is not None:
                self.close()
                raise RuntimeError(f"openbox did not start within {LIMIT_S} s.")
            select.select([], [], [], 0.01)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(LIMIT_S)
