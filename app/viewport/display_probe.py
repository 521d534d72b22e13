"""Whether a screen can be reached, and what draws OpenGL on it; found out in a child process.

Qt aborts the process when the display is dead or a library is missing, and a broken GL driver may
take the process with it. So a child tries first. It is started early and read late, while the
parent imports torch; meanwhile it may show that the program is starting.
"""

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

CHILD = Path(__file__).with_name("display_child.py")
LIMIT_S = 20.0
SOFTWARE_RENDERERS = ("llvmpipe", "softpipe", "swrast", "software rasterizer", "gdi generic")


@dataclasses.dataclass(frozen=True)
class DisplayFound:
    """What the probe found; `trouble` is "" when windows can be opened."""

    platform: str
    renderer: str | None
    trouble: str


@dataclasses.dataclass(frozen=True)
class ViewportChoice:
    """Which viewport to make, and the reason in a sentence."""

    kind: str  # painted or gl
    reason: str


class DisplayProbe:
    """A running probe; `result` waits for what it finds, `end` for its end.

    With `sign_colors` (ground, text, quiet text) it shows a sign from then on until `put_away`.
    """

    def __init__(self, sign_colors: Sequence[str] = ()) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(CHILD), *sign_colors],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, limit_s: float = LIMIT_S) -> DisplayFound:
        """What the child found out, or why it did not."""
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        late = threading.Timer(limit_s, self._child.kill)
        late.start()
        output = self._child.stdout.read()  # ends when the child has told, or has ended
        was_killed = late.finished.is_set()
        late.cancel()
        if output:
            found = json.loads(output)
            return DisplayFound(found["platform"], found["renderer"], "")
        errors = self._child.stderr.read()
        code = self._child.wait()
        if was_killed:
            return DisplayFound("", None, f"the display gave no answer within {limit_s:g} s")
        return DisplayFound("", None, _trouble(errors, code))

    def put_away(self) -> None:
        """Take the sign off the screen."""
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.close()

    def end(self) -> None:
        """Wait for the child's end; it has nothing left to do."""
        self.put_away()
        try:
            self._child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()


def _trouble(errors: str, code: int) -> str:
    """One sentence out of what Qt printed before it gave up."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if not lines:
        return f"Qt ended with code {code} and no word"
    telling = ("could not connect", "Could not load", "is needed", "No module", "cannot open")
    best = next((line for line in lines if any(word in line for word in telling)), lines[-1])
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        return f"no display is set (DISPLAY is empty); Qt says: {best}"
    return best


def choose_viewport(wish: str, found: DisplayFound) -> ViewportChoice:
    """`auto`, `gl` or `painted` as one of the latter two, with the reason."""
    renderer = found.renderer
    if wish == "painted":
        return ViewportChoice("painted", "The view is painted, as asked.")
    if renderer is None:
        asked = " OpenGL was asked for but" if wish == "gl" else ""
        return ViewportChoice(
            "painted", f"The view is painted:{asked} no OpenGL context can be had here."
        )
    if wish == "gl":
        return ViewportChoice("gl", f"The view uses OpenGL ({renderer}), as asked.")
    if any(name in renderer.lower() for name in SOFTWARE_RENDERERS):
        return ViewportChoice(
            "painted", f"The view is painted: OpenGL would be drawn in software ({renderer})."
        )
    return ViewportChoice("gl", f"The view uses OpenGL ({renderer}).")
